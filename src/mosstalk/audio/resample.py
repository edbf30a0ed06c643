"""Change of sample rate by a windowed sinc, as torchaudio's default (spec 4.4)."""

from math import gcd

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

_ZERO_CROSSINGS = 6  # torchaudio's lowpass_filter_width
_ROLLOFF = 0.99
_BLOCK_TAPS = 2**20  # products held at once, per channel


def resample(samples: NDArray[np.float32], rate_in: int, rate_out: int) -> NDArray[np.float32]:
    """Bring `samples` from one rate to another.

    With o and n the two rates over their greatest common divisor, f = 0.99 min(o, n) and
    w = ceil(6 o / f), output sample m n + j is the sum over k in [0, 2 w + o) of the input sample
    m o + k - w (0 outside the recording) times sinc(t) cos^2(pi t / 12) f / o, where
    t = ((k - w) / o - j / n) f is clamped to [-6, 6]. The window is zero where t is clamped, so
    only the taps between are computed, in float64, and stored as float32.

    Args:
        samples: [channels, length].

    Returns:
        [channels, ceil(length rate_out / rate_in)].
    """
    if rate_in == rate_out:
        return samples
    divisor = gcd(rate_in, rate_out)
    step_in, step_out = rate_in // divisor, rate_out // divisor
    taps, first_inputs = _taps(step_in, step_out)
    num_taps = taps.shape[1]
    num_out = -(-samples.shape[1] * step_out // step_in)
    left = -int(first_inputs.min())
    padded = np.pad(samples, ((0, 0), (left, step_in + num_taps)))
    windows = sliding_window_view(padded, num_taps, axis=1)
    out = np.empty((samples.shape[0], num_out), np.float32)
    block = max(1, _BLOCK_TAPS // num_taps)
    for start in range(0, num_out, block):
        index = np.arange(start, min(start + block, num_out))
        blocks, phases = np.divmod(index, step_out)
        starts = blocks * step_in + first_inputs[phases] + left
        for channel, channel_windows in enumerate(windows):
            out[channel, index] = np.einsum(
                "it,it->i", channel_windows[starts], taps[phases], dtype=np.float64
            )
    return out


def _taps(step_in: int, step_out: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """The taps of each output phase, and the input sample that each phase's first tap meets."""
    cutoff = min(step_in, step_out) * _ROLLOFF
    reach = _ZERO_CROSSINGS * step_in / cutoff
    phase = np.arange(step_out, dtype=np.float64)[:, None]
    first = np.ceil(phase * step_in / step_out - reach).astype(np.int64)
    inputs = first + np.arange(int(2 * reach) + 2)
    t = (inputs / step_in - phase / step_out) * cutoff
    t = t.clip(-_ZERO_CROSSINGS, _ZERO_CROSSINGS)
    window = np.cos(t * np.pi / (2 * _ZERO_CROSSINGS)) ** 2
    return (np.sinc(t) * window * (cutoff / step_in)).astype(np.float32), first[:, 0]
