"""One writer for whole recordings and for streams: files, and standard output."""

import os
import struct
import sys
from abc import ABC, abstractmethod
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

import numpy as np
import soundfile
from numpy.typing import NDArray

from mosstalk.audio.target import TargetFile, check_target, write_failure
from mosstalk.errors import OutputError, UsageError

_BYTES_PER_SAMPLE = 2
_WAV_HEADER_BYTES = 44
_UINT32_MAX = 0xFFFF_FFFF
_WAV_MAX_DATA_BYTES = _UINT32_MAX - _WAV_HEADER_BYTES
_STANDARD_OUTPUT = "standard output"


class AudioWriter(ABC):
    """Takes audio part by part; a context manager.

    Leaving the context without an exception finishes the output. Leaving it with one discards
    the output: a file that stood there before is then as it was.
    """

    def __init__(self, num_channels: int) -> None:
        self._num_channels = num_channels

    def write(self, samples: NDArray[np.float32]) -> None:
        """Add [channels, n] samples; values beyond [-1, 1] are clipped.

        Raises:
            UsageError: the number of channels is not the writer's.
            OutputError: the output cannot be written, or a sample is not a number.
        """
        if samples.ndim != 2 or samples.shape[0] != self._num_channels:
            raise UsageError(
                f"audio of shape {list(samples.shape)} does not fit a writer of "
                f"{self._num_channels} channels; give [channels, n]"
            )
        if not np.isfinite(samples).all():
            raise OutputError("the audio holds values that are not numbers; nothing is written")
        scaled = np.rint(np.clip(samples, -1.0, 1.0) * np.float32(32767.0))
        self._put(np.ascontiguousarray(scaled.T, dtype="<i2"))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is not None:
            self._discard()
            return
        try:
            self._finish()
        except BaseException:
            self._discard()
            raise

    @abstractmethod
    def _put(self, frames: NDArray[np.int16]) -> None:
        """Add [n, channels] samples."""

    @abstractmethod
    def _finish(self) -> None:
        """Complete the output."""

    @abstractmethod
    def _discard(self) -> None:
        """Remove what was written; must not raise, and may follow a failed `_finish`."""


def open_writer(out: str | Path, sample_rate: int, num_channels: int) -> AudioWriter:
    """A writer of 16-bit audio to `out`: a `.wav` or `.flac` file, or "-" for standard output.

    Standard output gets a WAV stream of unknown length, flushed at each write. A file is
    written under a temporary name beside its own and renamed when it is complete.

    Raises:
        UsageError: the file's suffix is another.
        OutputError: the file's folder is missing or cannot be written, or `out` is a folder.
    """
    if str(out) == "-":
        return _WavStream(sys.stdout.buffer, _STANDARD_OUTPUT, sample_rate, num_channels)
    check_output(out)
    path = Path(out)
    kind = _WavFile if path.suffix.lower() == ".wav" else _FlacFile
    return kind(TargetFile(path), sample_rate, num_channels)


def check_output(out: str | Path) -> None:
    """Raise what `open_writer` would for this name, before there is anything to write."""
    if str(out) == "-":
        return
    path = Path(out)
    if path.suffix.lower() not in (".wav", ".flac"):
        raise UsageError(
            f"cannot write {path}: give a name that ends in .wav or .flac, or - to pipe"
        )
    check_target(path)


def wav_header(sample_rate: int, num_channels: int, data_bytes: int | None) -> bytes:
    """The 44 bytes before 16-bit samples; `data_bytes` is None for a stream of unknown length."""
    data_size = _UINT32_MAX if data_bytes is None else data_bytes
    frame_bytes = num_channels * _BYTES_PER_SAMPLE
    return struct.pack(
        "<4sI4s4sIHHIIHH4sI",
        b"RIFF",
        min(data_size + _WAV_HEADER_BYTES - 8, _UINT32_MAX),
        b"WAVE",
        b"fmt ",
        16,
        1,
        num_channels,
        sample_rate,
        sample_rate * frame_bytes,
        frame_bytes,
        8 * _BYTES_PER_SAMPLE,
        b"data",
        data_size,
    )


class _WavFile(AudioWriter):
    def __init__(self, target: TargetFile, sample_rate: int, num_channels: int) -> None:
        super().__init__(num_channels)
        self._target = target
        self._sample_rate = sample_rate
        self._data_bytes = 0
        self._write(wav_header(sample_rate, num_channels, 0))

    def _write(self, data: bytes) -> None:
        try:
            self._target.file.write(data)
        except OSError as error:
            raise write_failure(self._target.path, error) from error

    def _put(self, frames: NDArray[np.int16]) -> None:
        self._data_bytes += frames.nbytes
        if self._data_bytes > _WAV_MAX_DATA_BYTES:
            raise OutputError(
                f"cannot write {self._target.path}: a WAV file ends at 4 GiB; write .flac instead"
            )
        self._write(frames.tobytes())

    def _finish(self) -> None:
        try:
            self._target.file.seek(0)
        except OSError as error:  # seeking writes what is still in the buffer
            raise write_failure(self._target.path, error) from error
        self._write(wav_header(self._sample_rate, self._num_channels, self._data_bytes))
        self._target.commit()

    def _discard(self) -> None:
        self._target.discard()


class _KeptErrors:
    """A file for libsndfile, whose callbacks cannot raise: the first error is kept instead."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.error: OSError | None = None
        self.seek = file.seek
        self.tell = file.tell

    def write(self, data: bytes) -> int:
        if self.error is None:
            try:
                self._file.write(data)
                self._file.flush()
            except OSError as error:
                self.error = error
        return len(data)


class _FlacFile(AudioWriter):
    def __init__(self, target: TargetFile, sample_rate: int, num_channels: int) -> None:
        super().__init__(num_channels)
        self._target = target
        self._sink = _KeptErrors(target.file)
        try:
            self._encoder = soundfile.SoundFile(
                self._sink, "w", sample_rate, num_channels, "PCM_16", format="FLAC"
            )
        except soundfile.SoundFileError as error:
            target.discard()
            raise OutputError(
                f"cannot write {target.path}: FLAC does not take {num_channels} channels at "
                f"{sample_rate} Hz; write .wav instead"
            ) from error

    def _check(self) -> None:
        if self._sink.error is not None:
            raise write_failure(self._target.path, self._sink.error) from self._sink.error

    def _put(self, frames: NDArray[np.int16]) -> None:
        self._encoder.write(frames)
        self._check()

    def _finish(self) -> None:
        if self._encoder.frames == 0:  # libsndfile would leave a file without a header
            raise OutputError(
                f"cannot write {self._target.path}: there is no audio, "
                "and FLAC cannot hold none; write .wav instead"
            )
        self._encoder.close()
        self._check()
        self._target.commit()

    def _discard(self) -> None:
        with suppress(soundfile.SoundFileError):
            self._encoder.close()
        self._target.discard()


class _WavStream(AudioWriter):
    """A WAV of unknown length, written as it comes."""

    def __init__(self, stream: BinaryIO, name: str, sample_rate: int, num_channels: int) -> None:
        super().__init__(num_channels)
        self._stream = stream
        self._name = name
        self._write(wav_header(sample_rate, num_channels, None))

    def _write(self, data: bytes) -> None:
        try:
            self._stream.write(data)
            self._stream.flush()
        except BrokenPipeError as error:
            _silence(self._stream)
            raise OutputError(f"cannot write {self._name}: the reader closed the pipe") from error
        except OSError as error:
            _silence(self._stream)
            raise write_failure(self._name, error) from error

    def _put(self, frames: NDArray[np.int16]) -> None:
        self._write(frames.tobytes())

    def _finish(self) -> None:
        pass

    def _discard(self) -> None:
        pass


def _silence(stream: BinaryIO) -> None:
    """Lead a broken stream to nowhere, so that what it still holds fails no more at exit."""
    with suppress(OSError, ValueError):
        broken = stream.fileno()
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, broken)
        os.close(nowhere)
