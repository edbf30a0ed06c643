"""The resampler against a direct evaluation of its formula, and against tones."""

from math import ceil, gcd, pi

import numpy as np
import pytest
from numpy.typing import NDArray

from mosstalk.audio.resample import resample


def evaluate(samples: NDArray[np.float32], rate_in: int, rate_out: int) -> NDArray[np.float64]:
    """Spec 4.4 as it is written: all taps of all phases, float64, one sample at a time."""
    o, n = rate_in // gcd(rate_in, rate_out), rate_out // gcd(rate_in, rate_out)
    f = min(o, n) * 0.99
    w = ceil(6 * o / f)
    k = np.arange(2 * w + o)
    padded = np.concatenate([np.zeros(w), samples.astype(np.float64), np.zeros(w + o)])
    out = np.empty(ceil(len(samples) * n / o))
    for i in range(len(out)):
        m, j = divmod(i, n)
        t = np.clip(((k - w) / o - j / n) * f, -6, 6)
        taps = np.sinc(t) * np.cos(pi * t / 12) ** 2 * (f / o)
        out[i] = taps @ padded[m * o : m * o + 2 * w + o]
    return out


@pytest.mark.parametrize(
    ("rate_in", "rate_out"),
    [
        (24_000, 48_000),
        (48_000, 24_000),
        (44_100, 48_000),
        (16_000, 48_000),
        (96_000, 48_000),
        (22_050, 24_000),
        (48_000, 44_100),
        (8_000, 24_000),
        (11_025, 48_000),
        (192_000, 24_000),
    ],
)
@pytest.mark.parametrize("length", [1, 7, 1_000])
def test_resample_equals_the_formula(rate_in: int, rate_out: int, length: int) -> None:
    samples = np.random.default_rng(1).uniform(-1, 1, (2, length)).astype(np.float32)
    out = resample(samples, rate_in, rate_out)
    assert out.dtype == np.float32
    assert out.shape == (2, ceil(length * rate_out / rate_in))
    for channel in range(2):
        direct = evaluate(samples[channel], rate_in, rate_out)
        np.testing.assert_allclose(out[channel], direct, rtol=0, atol=5e-7)


def test_resample_is_the_same_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    samples = np.random.default_rng(2).uniform(-1, 1, (1, 5_000)).astype(np.float32)
    whole = resample(samples, 44_100, 48_000)
    monkeypatch.setattr("mosstalk.audio.resample._BLOCK_TAPS", 1_000)
    assert np.array_equal(resample(samples, 44_100, 48_000), whole)


def test_resample_to_the_same_rate_changes_nothing() -> None:
    samples = np.ones((2, 10), np.float32)
    assert np.array_equal(resample(samples, 48_000, 48_000), samples)


def test_resample_of_rates_without_a_common_divisor_stays_small() -> None:
    """All taps of all phases would be 44,101 x 48,000 floats here."""
    seconds = np.arange(44_101) / 44_101
    tone = np.sin(2 * pi * 1_000 * seconds).astype(np.float32)[None]
    out = resample(tone, 44_101, 48_000)
    expected = np.sin(2 * pi * 1_000 * np.arange(48_000) / 48_000)
    assert np.abs(out[0] - expected)[100:-100].max() < 2e-3


def test_resample_removes_what_the_new_rate_cannot_carry() -> None:
    seconds = np.arange(48_000) / 48_000
    high = np.sin(2 * pi * 16_000 * seconds).astype(np.float32)[None]
    assert np.abs(resample(high, 48_000, 24_000))[0, 50:-50].max() < 1e-2
