"""Loudness of references of the MOSS-TTS family with the delay pattern."""

from pathlib import Path

import numpy as np
import pytest

from mosstalk.audio.loudness import normalise_loudness


def test_loudness_golden(golden_dir: Path) -> None:
    path = golden_dir / "reference" / "delay_e2e.npz"
    if not path.exists():
        pytest.skip(f"{path.name} is not here")
    arrays = np.load(path)
    found = normalise_loudness(arrays["loudness_in"][None])
    np.testing.assert_allclose(found[0], arrays["loudness_out"], rtol=0, atol=1e-6)
    assert found.dtype == np.float32


@pytest.mark.parametrize(
    ("level_db", "gain_db"),
    [(-20.0, 0.0), (-18.5, -1.5), (-22.0, 2.0), (-5.0, -3.0), (-40.0, 3.0), (-200.0, 3.0)],
)
@pytest.mark.parametrize("num_channels", [1, 2])
def test_loudness_goes_towards_its_target_by_3_db(
    level_db: float, gain_db: float, num_channels: int
) -> None:
    """Spec voicegen.md 6.6; a square wave's mean square is that of its height."""
    height = np.float32(10 ** (level_db / 20))
    samples = np.full((num_channels, 1000), height)
    samples[:, ::2] *= -1
    found = normalise_loudness(samples)
    np.testing.assert_allclose(found, samples * 10 ** (gain_db / 20), rtol=1e-5)
    assert found.dtype == np.float32
