"""Rotary position embedding: the cosines and sines that a Rope op reads."""

import numpy as np
from numpy.typing import NDArray


def inverse_frequencies(head_dim: int, base: float) -> NDArray[np.float32]:
    """base^(-2i / head_dim) for i < head_dim / 2, as the reference rounds them (float32)."""
    exponent = np.arange(0, head_dim, 2, dtype=np.float32) / np.float32(head_dim)
    return (np.float32(1) / np.float32(base) ** exponent).astype(np.float32)


def turns(positions: NDArray[np.int32], frequencies: NDArray[np.float32]) -> NDArray[np.float32]:
    """[rows, head_dim]: cosines, then sines, of position * frequency.

    The angle is rounded to float32, as in the reference; its cosine and sine are those of the
    rounded angle to float32 precision, however large it is.
    """
    angle = positions.astype(np.float32)[:, None] * frequencies
    wide = angle.astype(np.float64)
    return np.concatenate([np.cos(wide), np.sin(wide)], axis=1).astype(np.float32)
