"""Samples as PyAV's audio frames, and back."""

from fractions import Fraction
from typing import Any

import av
import numpy as np
from numpy.typing import NDArray


def audio_frame(
    samples: NDArray[np.float32] | NDArray[np.int16], sample_rate: int
) -> av.AudioFrame:
    """A packed frame of [1 or 2, n] samples, of the same type."""
    layout = "mono" if samples.shape[0] == 1 else "stereo"
    kind = "flt" if samples.dtype == np.float32 else "s16"
    packed: Any = np.ascontiguousarray(samples.T.reshape(1, -1))
    frame = av.AudioFrame.from_ndarray(packed, format=kind, layout=layout)
    frame.sample_rate = sample_rate
    frame.time_base = Fraction(1, sample_rate)
    return frame


def frame_samples(frame: av.AudioFrame, num_channels: int) -> NDArray[np.float32]:
    """The samples [channels, n] of a packed float frame."""
    return np.ascontiguousarray(frame.to_ndarray().reshape(-1, num_channels).T)
