"""What a run of the command line leaves behind, and runs as processes of their own."""

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import soundfile
from tiny_model import CHANNELS, SAMPLE_RATE

SHORT = ("--voice", "none", "--max-frames", "2", "--threads", "1")
PROGRAM = (sys.executable, "-m", "mosstalk")
_ERROR = "mosstalk: error: "
_TIMEOUT_SECONDS = 60


@dataclass(frozen=True)
class Result:
    """What a command left behind."""

    status: int
    out: str
    err: str

    def refuses(self, words: str, status: int = 2) -> None:
        """The command failed, said so in one line that has `words`, and left nothing."""
        assert self.status == status, self.err
        lines = self.err.splitlines()
        assert len(lines) == 1, self.err
        assert lines[0].startswith(_ERROR)
        assert words in lines[0]
        assert self.out == ""
        left = [path for path in Path.cwd().iterdir() if path.suffix in (".wav", ".flac")]
        assert not left

    def speaks(self, out: Path = Path("mosstalk.wav")) -> None:
        """The command worked, and its file holds audio."""
        assert self.status == 0, self.err
        assert "Traceback" not in self.err
        info = soundfile.info(out)
        assert info.frames > 0
        assert (info.samplerate, info.channels) == (SAMPLE_RATE, CHANNELS)


Command = Callable[..., Result]


def run_process(*arguments: str | Path, **options: Any) -> subprocess.CompletedProcess[bytes]:
    """`mosstalk` as a process of its own."""
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    return subprocess.run(
        [*PROGRAM, *map(str, arguments)], timeout=_TIMEOUT_SECONDS, check=False, **streams
    )
