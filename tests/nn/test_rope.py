"""Rotary turns by the formula, at positions near and far."""

from math import cos, sin

import numpy as np
import pytest

from mosstalk.nn.rope import inverse_frequencies, turns


@pytest.mark.parametrize("head_dim", [8, 16, 64])
def test_frequencies_fall_from_one_by_the_base(head_dim: int) -> None:
    found = inverse_frequencies(head_dim, 10_000.0)
    wanted = [10_000.0 ** (-2 * i / head_dim) for i in range(head_dim // 2)]
    assert found.dtype == np.float32
    assert np.allclose(found, wanted, rtol=3e-7, atol=0)
    assert found[0] == 1


def test_turns_are_cosines_then_sines_of_the_rounded_angle() -> None:
    frequencies = inverse_frequencies(16, 10_000.0)
    positions = np.array([0, 1, 17, 3_000, 100_000], np.int32)
    found = turns(positions, frequencies)
    assert found.shape == (5, 16) and found.dtype == np.float32
    for row, position in zip(found, positions, strict=True):
        for i, frequency in enumerate(frequencies):
            angle = float(np.float32(position) * frequency)
            assert row[i] == np.float32(cos(angle))
            assert row[8 + i] == np.float32(sin(angle))


def test_position_zero_turns_nothing() -> None:
    found = turns(np.zeros(1, np.int32), inverse_frequencies(8, 10_000.0))
    assert found[0].tolist() == [1, 1, 1, 1, 0, 0, 0, 0]
