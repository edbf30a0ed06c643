"""Loudness of a recording that a voice is cloned from."""

import numpy as np
from numpy.typing import NDArray

_TARGET_DB = -20.0  # mean power of full scale
_MAX_GAIN_DB = 3.0


def normalise_loudness(samples: NDArray[np.float32]) -> NDArray[np.float32]:
    """Bring a recording towards -20 dB below full scale, by 3 dB at most either way.

    The level is 10 log10(mean square + 1e-9). It is a step of the MOSS-TTS family with the delay
    pattern, after the change to the codec's rate and channels (spec voicegen.md 6.6); Nano has
    none.

    Args:
        samples: [channels, n], n at least 1.
    """
    power = np.mean(samples.astype(np.float64) ** 2)
    gain_db = np.clip(_TARGET_DB - 10 * np.log10(power + 1e-9), -_MAX_GAIN_DB, _MAX_GAIN_DB)
    return samples * np.float32(10 ** (gain_db / 20))
