"""What a dump holds of a codec: codes and the audio they give, audio and the codes it gives."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosstalk.checkpoint.strict_config import ConfigReader
from mosstalk.parity.reference.dump_file import ArrayReader

_PREFIX = "codec."
# Of the squared distance between two vectors of length 1, by which a codebook's code is chosen.
LARGEST_DISTANCE = 4.0
_ROUNDED = 1 + 1e-6  # a difference of float32 values may be rounded upwards


@dataclass(frozen=True, slots=True)
class CodecProbe:
    """The original codec's answers.

    Attributes:
        codes: what was decoded, [frames, codebooks].
        sample_stride: one sample in so many is kept.
        samples: of the audio of `codes`, at sample 0, stride, 2 * stride, ...: [channels, n].
        peak: largest magnitude in each of its frames, [frames, channels].
        rms: root mean square of each of its frames, [frames, channels].
        sound: what was encoded, [channels, n], again and again until there are `num_samples`;
            the last frame may be partial.
        num_samples: see `sound`.
        audio_codes: the codes of its whole frames, [frames, codebooks].
        audio_gaps: how much further than the code chosen the next one was: difference of squared
            distances, [frames, codebooks].
    """

    codes: NDArray[np.int32]
    sample_stride: int
    samples: NDArray[np.float32]
    peak: NDArray[np.float32]
    rms: NDArray[np.float32]
    sound: NDArray[np.float32]
    num_samples: int
    audio_codes: NDArray[np.int32]
    audio_gaps: NDArray[np.float32]

    @property
    def audio(self) -> NDArray[np.float32]:
        """All that was encoded, [channels, num_samples]."""
        return repeated(self.sound, self.num_samples)

    def as_meta(self) -> dict[str, object]:
        return {"sample_stride": self.sample_stride, "num_samples": self.num_samples}

    def as_arrays(self) -> dict[str, NDArray[Any]]:
        names = ("codes", "samples", "peak", "rms", "sound", "audio_codes", "audio_gaps")
        return {f"{_PREFIX}{name}": getattr(self, name) for name in names}


def read_codec_probe(meta: ConfigReader, arrays: ArrayReader) -> CodecProbe:
    """Raises CheckpointError for what is missing, or does not fit together."""
    codes = arrays.ids(f"{_PREFIX}codes", (None, None))
    samples = arrays.reals(f"{_PREFIX}samples", (None, None))
    levels = (len(codes), len(samples))
    audio_codes = arrays.ids(f"{_PREFIX}audio_codes", (None, codes.shape[1]))
    probe = CodecProbe(
        codes=codes,
        sample_stride=meta.size("sample_stride"),
        samples=samples,
        peak=arrays.reals(f"{_PREFIX}peak", levels, low=0.0),
        rms=arrays.reals(f"{_PREFIX}rms", levels, low=0.0),
        sound=arrays.reals(f"{_PREFIX}sound", (len(samples), None)),
        num_samples=meta.size("num_samples"),
        audio_codes=audio_codes,
        audio_gaps=arrays.reals(
            f"{_PREFIX}audio_gaps", audio_codes.shape, low=0.0, high=LARGEST_DISTANCE * _ROUNDED
        ),
    )
    meta.finish()
    return probe


def repeated(sound: NDArray[np.float32], num_samples: int) -> NDArray[np.float32]:
    """`sound` [channels, n] again and again: [channels, num_samples]."""
    times = -(-num_samples // sound.shape[1])
    return np.tile(sound, (1, times))[:, :num_samples]


def sample_probes(audio: NDArray[np.float32], stride: int) -> NDArray[np.float32]:
    """One sample in `stride` of `audio` [channels, n]."""
    return np.ascontiguousarray(audio[:, ::stride])


def frame_levels(
    audio: NDArray[np.float32], num_frames: int
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Peak and root mean square, each [frames, channels], of `audio` [channels, n]."""
    frames = audio.reshape(len(audio), num_frames, -1).astype(np.float64)
    peak = np.abs(frames).max(axis=2).T
    rms = np.sqrt(np.square(frames).mean(axis=2)).T
    return peak.astype(np.float32), rms.astype(np.float32)
