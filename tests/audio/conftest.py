"""Recordings that tests of audio share."""

import numpy as np
import pytest
from numpy.typing import NDArray


@pytest.fixture(scope="session")
def stereo() -> NDArray[np.float32]:
    """Half a second of two tones at 48 kHz, [2, 24000]."""
    seconds = np.arange(24_000) / 48_000
    tones = [0.5 * np.sin(2 * np.pi * hertz * seconds) for hertz in (440.0, 660.0)]
    return np.stack(tones).astype(np.float32)
