"""Playing through whatever player the system has."""

import shutil
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from mosstalk.audio.target import write_failure
from mosstalk.audio.write import AudioWriter, wav_header
from mosstalk.errors import OutputError

# What each player needs to play 16-bit samples from a pipe; {r} is the sample rate, {c} the
# channels. pw-cat, whose older versions have no --raw, comes after paplay.
_PIPE_PLAYERS = {
    "paplay": "--raw --format=s16le --rate={r} --channels={c}",
    "pw-cat": "--playback --raw --format=s16 --rate={r} --channels={c} -",
    "aplay": "-q -t raw -f S16_LE -r {r} -c {c} -",
    "ffplay": "-loglevel error -nodisp -autoexit -i -",
    "play": "-q -t raw -e signed -b 16 -L -r {r} -c {c} -",
}
_WAV_PIPE_PLAYERS = frozenset({"ffplay"})  # its options for raw samples changed between versions
_FILE_PLAYER = "afplay"
_GRACE_SECONDS = 1.0  # for a player that closed its pipe to say why


def open_player(sample_rate: int, num_channels: int) -> AudioWriter:
    """A writer whose output is heard, by the first player found on the system.

    Leaving its context waits until all is played; leaving it with an exception stops at once.

    Raises:
        OutputError: there is no player, or it cannot be started.
    """
    for name, arguments in _PIPE_PLAYERS.items():
        program = shutil.which(name)
        if program is not None:
            options = arguments.format(r=sample_rate, c=num_channels).split()
            wants_wav = name in _WAV_PIPE_PLAYERS
            header = wav_header(sample_rate, num_channels, None) if wants_wav else b""
            return _PipePlayer([program, *options], header, num_channels)
    program = shutil.which(_FILE_PLAYER)
    if program is not None:
        return _FilePlayer(program, sample_rate, num_channels)
    raise OutputError(
        "no audio player found: install pulseaudio-utils, pipewire, alsa-utils, ffmpeg or sox, "
        "or write a file"
    )


class _PipePlayer(AudioWriter):
    """A player program that is fed through its standard input."""

    def __init__(self, command: list[str], header: bytes, num_channels: int) -> None:
        super().__init__(num_channels)
        self._header = header
        self._name = Path(command[0]).name
        self._complaints = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the program
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=self._complaints,
            )
        except OSError as error:
            self._complaints.close()
            raise OutputError(f"cannot start {command[0]}: {error.strerror}") from error

    def _put(self, frames: NDArray[np.int16]) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(self._header + frames.tobytes())
            self._process.stdin.flush()
        except OSError:
            self._raise_failure()
        self._header = b""

    def _finish(self) -> None:
        self._close_pipe()
        if self._process.wait() != 0:
            self._raise_failure()
        self._complaints.close()

    def _discard(self) -> None:
        self._process.kill()
        self._close_pipe()
        self._process.wait()
        self._complaints.close()

    def _close_pipe(self) -> None:
        assert self._process.stdin is not None
        with suppress(OSError):
            self._process.stdin.close()

    def _raise_failure(self) -> NoReturn:
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_GRACE_SECONDS)
        self._complaints.seek(0)
        raise _failure(self._name, self._complaints.read(), self._process.poll())


class _FilePlayer(AudioWriter):
    """A player program that takes a file only: all is played at the end."""

    def __init__(self, program: str, sample_rate: int, num_channels: int) -> None:
        super().__init__(num_channels)
        self._program = program
        self._sample_rate = sample_rate
        self._file = tempfile.NamedTemporaryFile(suffix=".wav")  # noqa: SIM115 - closed below
        self._data_bytes = 0
        self._write(wav_header(sample_rate, num_channels, 0))

    def _write(self, data: bytes) -> None:
        try:
            self._file.write(data)
            self._file.flush()
        except OSError as error:
            raise write_failure(self._file.name, error) from error

    def _put(self, frames: NDArray[np.int16]) -> None:
        self._data_bytes += frames.nbytes
        self._write(frames.tobytes())

    def _finish(self) -> None:
        self._file.seek(0)
        self._write(wav_header(self._sample_rate, self._num_channels, self._data_bytes))
        played = subprocess.run([self._program, self._file.name], capture_output=True, check=False)
        if played.returncode != 0:
            raise _failure(Path(self._program).name, played.stderr, played.returncode)
        self._file.close()

    def _discard(self) -> None:
        with suppress(OSError):
            self._file.close()


def _failure(name: str, complaints: bytes, status: int | None) -> OutputError:
    said = complaints.decode(errors="replace").strip().splitlines()
    reason = said[-1].strip() if said else f"exit status {status}"
    return OutputError(f"{name} stopped playing ({reason}); write a file instead")
