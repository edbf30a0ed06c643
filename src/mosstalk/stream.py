"""A stream of audio that is being made, and what it knows about itself."""

import time
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from mosstalk.types import AudioChunk, StopReason, Summary

# How many frames to decode in one call, by how far the audio handed out is ahead of the clock
# (spec nano.md 6): little lead asks for small pieces soon, much lead allows large ones.
_BUDGETS = ((0.20, 1), (0.55, 2), (1.10, 4))
_LARGEST_BUDGET = 8
# So far behind, playing has stopped long ago and what counts is when all is done: a codec takes
# less time for frames that are decoded together.
_LATE_SECONDS = -2.0


@dataclass(slots=True)
class Progress:
    """What has been made so far. Written by the engine, read by whoever shows it."""

    started: float = field(default_factory=time.monotonic)
    first_audio: float | None = None  # monotonic seconds
    frames: int = 0
    retries: int = 0
    seconds: float = 0.0  # of audio handed out
    stop_reason: StopReason = "cancelled"
    warnings: list[str] = field(default_factory=list)

    def budget(self) -> int:
        """Frames to collect before they are decoded and handed out."""
        if self.first_audio is None:
            return 1
        lead_seconds = self.seconds - (time.monotonic() - self.first_audio)
        if lead_seconds < _LATE_SECONDS:
            return _LARGEST_BUDGET
        fitting = (frames for limit, frames in _BUDGETS if lead_seconds < limit)
        return next(fitting, _LARGEST_BUDGET)


class SpeechStream:
    """An iterator of AudioChunk. Closing it, or leaving its `with` block, stops all work.

    `progress` may be read at any time; `summary` is there once the stream has ended or is closed.
    """

    def __init__(
        self,
        chunks: Generator[AudioChunk, None, None],
        progress: Progress,
        summarise: Callable[[Progress, float], Summary],
    ) -> None:
        self.progress = progress
        self._chunks = chunks
        self._summarise = summarise
        self._work_seconds = 0.0

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> AudioChunk:
        asked = time.monotonic()
        try:
            chunk = next(self._chunks)
        finally:
            now = time.monotonic()
            self._work_seconds += now - asked
        if self.progress.first_audio is None:
            self.progress.first_audio = now
        self.progress.seconds += chunk.samples.shape[1] / chunk.sample_rate
        return chunk

    def close(self) -> None:
        """Stop now; the rest is not made."""
        self._chunks.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def summary(self) -> Summary:
        """What was made; `cancelled` is its reason to stop while the stream goes on."""
        return self._summarise(self.progress, self._work_seconds)
