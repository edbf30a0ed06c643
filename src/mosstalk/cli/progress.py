"""What a person at a terminal sees on standard error while speech is made."""

import sys
import time
from contextlib import suppress
from types import TracebackType
from typing import Self, TextIO

from mosstalk.stream import SpeechStream

_SECONDS_BETWEEN = 0.1


def tell(line: str) -> None:
    """A line on standard error; it is lost where that is closed."""
    if sys.stderr is not None:
        with suppress(OSError):
            print(line, file=sys.stderr, flush=True)


def warn(message: str) -> None:
    """A line about something that the user should know and that stops nothing."""
    tell(f"mosstalk: warning: {message}")


class ProgressLine:
    """A line on a terminal that is updated in place and gone at the end; else nothing at all."""

    def __init__(self) -> None:
        shown = sys.stderr is not None and sys.stderr.isatty()
        self._terminal: TextIO | None = sys.stderr if shown else None
        self._width = 0
        self._next_update = 0.0

    def show(self, stream: SpeechStream) -> None:
        """Bring the line up to date, unless it was just now."""
        now = time.monotonic()
        if self._terminal is None or now < self._next_update:
            return
        self._next_update = now + _SECONDS_BETWEEN
        made = stream.summary
        self._put(f"{made.frames} frames, {made.seconds:.2f} s of audio, RTF {made.rtf:.2f}")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._width:
            self._put("")
            self._put("")

    def _put(self, line: str) -> None:
        """Show a line over the one before it, and leave the cursor at its end."""
        assert self._terminal is not None
        with suppress(OSError):
            self._terminal.write("\r" + line.ljust(self._width))
            self._terminal.flush()
        self._width = len(line)
