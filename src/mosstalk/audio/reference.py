"""Preparation of a recording that a voice is cloned from."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mosstalk.audio.clip import AudioClip
from mosstalk.audio.resample import resample
from mosstalk.errors import AudioError

_SILENT_PEAK = 1e-3  # -60 dB below full scale
_SHORT_SECONDS = 1.0


@dataclass(frozen=True)
class PreparedReference:
    """A recording as a codec takes it.

    Attributes:
        samples: float32 [channels, n] at the codec's rate, at least one frame.
        warnings: what a user should know about the recording.
    """

    samples: NDArray[np.float32]
    warnings: tuple[str, ...]


def prepare_reference(
    clip: AudioClip,
    sample_rate: int,
    num_channels: int,
    frame_len: int,
    max_seconds: float = 30.0,
) -> PreparedReference:
    """Bring a recording to a codec's rate and channels; change nothing else about it.

    The rate is changed before the channels are (spec 4.4): one is duplicated, the first two are
    taken of more, and a codec of one channel gets their mean. A recording longer than
    `max_seconds` is cut there, with a warning.

    Args:
        sample_rate: the codec's rate.
        num_channels: the codec's channels, 1 or 2.
        frame_len: samples per channel of one codec frame.

    Raises:
        AudioError: the recording is shorter than one frame, silent, or not all numbers.
    """
    warnings = []
    samples = clip.samples
    if clip.seconds > max_seconds:
        samples = samples[:, : int(max_seconds * clip.sample_rate)]
        warnings.append(
            f"the reference is {clip.seconds:.1f} s long; its first {max_seconds:g} s are used"
        )
    if samples.shape[0] > 2:
        warnings.append(f"the reference has {samples.shape[0]} channels; its first two are used")
        samples = samples[:2]
    samples = _to_channels(resample(samples, clip.sample_rate, sample_rate), num_channels)
    if samples.shape[1] < frame_len:
        raise AudioError(
            f"the reference is {clip.seconds:.3f} s long; "
            f"at least {frame_len / sample_rate:.3f} s are needed, best are 5 s or more"
        )
    if not np.isfinite(samples).all():
        raise AudioError("the reference holds values that are not numbers; export it again")
    if np.abs(samples).max() < _SILENT_PEAK:
        raise AudioError("the reference is silent (peak below -60 dB); record it again, louder")
    if clip.seconds < _SHORT_SECONDS:
        warnings.append(
            f"the reference is only {clip.seconds:.2f} s long; 5 s or more clone a voice better"
        )
    return PreparedReference(samples, tuple(warnings))


def _to_channels(samples: NDArray[np.float32], num_channels: int) -> NDArray[np.float32]:
    """[1 or 2, n] as [num_channels, n]."""
    if samples.shape[0] == num_channels:
        return np.ascontiguousarray(samples)
    if num_channels == 1:
        return ((samples[:1] + samples[1:]) / 2).astype(np.float32)
    return np.repeat(samples, num_channels, axis=0)
