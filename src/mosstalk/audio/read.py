"""Reading of recordings by what they contain, whatever their names say."""

import io
import re
from pathlib import Path
from typing import Any

import numpy as np
import soundfile
from numpy.typing import NDArray

from mosstalk.audio.clip import AudioClip
from mosstalk.errors import AudioError

_FORMATS = "WAV, FLAC, OGG or MP3"
_MAX_FILE_BYTES = 512 * 2**20
_MAX_SAMPLES = 2**28  # of all channels together: 1 GiB of float32
_BLOCK_SAMPLES = 2**20
_SAMPLE_RATES = range(1_000, 768_001)
_WAV_DATA_SIZES = re.compile(r"^data : (\d+) \(should be (\d+)\)", re.MULTILINE)
_WAV_UNKNOWN_SIZE = 0x7FFF_0000  # headers of streams promise this much or more


def read_clip(source: str | Path | bytes, *, name: str) -> AudioClip:
    """Read a recording: WAV, FLAC, OGG or MP3, of any rate, width and number of channels.

    Args:
        source: a file, or a file's content.
        name: how error messages call the recording.

    Raises:
        AudioError: the recording is missing, unreadable, damaged, empty, too large, or holds
            values that are not numbers.
    """
    data = source if isinstance(source, bytes) else read_file(source, name=name)
    if not data:
        raise AudioError(f"{name}: the file is empty; give a recording ({_FORMATS})")
    if len(data) > _MAX_FILE_BYTES:
        raise AudioError(
            f"{name}: the file is larger than {_MAX_FILE_BYTES >> 20} MiB; "
            "a few seconds of speech are enough"
        )
    try:
        with soundfile.SoundFile(_Content(data)) as file:
            sample_rate = int(file.samplerate)
            _reject_cut_wav(file, name)
            samples = _read_samples(file, name)
    except (soundfile.SoundFileError, RuntimeError, ValueError, TypeError) as error:
        raise AudioError(
            f"{name}: not audio that can be read ({_reason(error)}); give {_FORMATS}"
        ) from error
    if sample_rate not in _SAMPLE_RATES:
        raise AudioError(
            f"{name}: a sample rate of {sample_rate} Hz is not one of speech; export it at 48000 Hz"
        )
    if samples.shape[1] == 0:
        raise AudioError(f"{name}: the recording holds no samples; record it again")
    if not np.isfinite(samples).all():
        raise AudioError(
            f"{name}: the recording holds values that are not numbers; export it again"
        )
    return AudioClip(samples, sample_rate)


class _Content(io.BytesIO):
    """A file's content; libsndfile seeks before the start of damaged ones, which moves nothing."""

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        try:
            return super().seek(offset, whence)
        except (ValueError, OverflowError):
            return self.tell()


def read_file(source: str | Path, *, name: str) -> bytes:
    """The content of a recording's file, as `read_clip` takes it; raises AudioError.

    Of a file that is too large only so much is read that `read_clip` sees it.
    """
    path = Path(source)
    try:
        with path.open("rb") as file:
            return file.read(_MAX_FILE_BYTES + 1)
    except FileNotFoundError as error:
        raise AudioError(f"{name}: there is no file {path}; check the path") from error
    except IsADirectoryError as error:
        raise AudioError(f"{name}: {path} is a folder; give an audio file in it") from error
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise AudioError(f"{name}: cannot read {path} ({reason}); check the file") from error


def _reject_cut_wav(file: Any, name: str) -> None:
    """libsndfile reads what is there of a WAV cut short, and says so in its log only."""
    sizes = _WAV_DATA_SIZES.search(file.extra_info)
    if sizes is None:
        return
    promised, present = int(sizes[1]), int(sizes[2])
    if present < promised < _WAV_UNKNOWN_SIZE:
        raise AudioError(
            f"{name}: the file is cut short ({present} of {promised} bytes of audio); copy it again"
        )


def _read_samples(file: Any, name: str) -> NDArray[np.float32]:
    """All samples, [channels, n]; in blocks, as a header's length may be a lie."""
    block_frames = max(1, _BLOCK_SAMPLES // file.channels)
    blocks, num_samples = [np.zeros((0, file.channels), np.float32)], 0
    while len(block := file.read(block_frames, dtype="float32", always_2d=True)):
        blocks.append(block)
        num_samples += block.size
        if num_samples > _MAX_SAMPLES:
            raise AudioError(
                f"{name}: the recording is longer than "
                f"{_MAX_SAMPLES // (file.channels * file.samplerate)} s; "
                "a few seconds of speech are enough"
            )
    return np.ascontiguousarray(np.concatenate(blocks).T)


def _reason(error: Exception) -> str:
    reason = getattr(error, "error_string", "") or str(error)
    return " ".join(reason.split()).rstrip(".")
