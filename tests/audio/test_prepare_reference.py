"""Preparation of a reference recording."""

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from mosstalk.audio.clip import AudioClip
from mosstalk.audio.read import read_clip
from mosstalk.audio.reference import prepare_reference
from mosstalk.audio.resample import resample
from mosstalk.errors import AudioError

RATE, FRAME = 48_000, 3_840


def noise(num_channels: int, num_samples: int, sample_rate: int = RATE) -> AudioClip:
    rng = np.random.default_rng(3)
    samples = rng.uniform(-0.5, 0.5, (num_channels, num_samples)).astype(np.float32)
    return AudioClip(samples, sample_rate)


def test_reference_of_the_codecs_form_is_left_alone() -> None:
    clip = noise(2, 2 * RATE)
    prepared = prepare_reference(clip, RATE, 2, FRAME)
    assert np.array_equal(prepared.samples, clip.samples)
    assert prepared.warnings == ()


def test_reference_golden_recording_is_left_alone(golden_dir: Path) -> None:
    path = golden_dir / "reference" / "ref_1s_stereo.wav"
    if not path.exists():
        pytest.skip("no golden recording")
    clip = read_clip(path, name="golden")
    prepared = prepare_reference(clip, RATE, 2, FRAME)
    assert np.array_equal(prepared.samples, clip.samples)
    assert prepared.samples.shape[1] // FRAME == 12
    assert prepared.warnings == ()


def test_reference_of_one_channel_is_duplicated_after_resampling() -> None:
    clip = noise(1, 24_000, 24_000)
    prepared = prepare_reference(clip, RATE, 2, FRAME)
    expected = resample(clip.samples, 24_000, RATE)
    assert np.array_equal(prepared.samples, np.concatenate([expected, expected]))


def test_reference_of_two_channels_is_averaged_for_a_mono_codec() -> None:
    clip = noise(2, 48_000)
    prepared = prepare_reference(clip, 24_000, 1, 1_920)
    resampled = resample(clip.samples, RATE, 24_000)
    np.testing.assert_allclose(prepared.samples, resampled.mean(axis=0, keepdims=True), atol=1e-7)
    assert prepared.samples.dtype == np.float32


@pytest.mark.parametrize("num_channels", [1, 2])
def test_reference_of_many_channels_gives_its_first_two(num_channels: int) -> None:
    clip = noise(6, RATE)
    prepared = prepare_reference(clip, RATE, num_channels, FRAME)
    first_two = prepare_reference(AudioClip(clip.samples[:2], RATE), RATE, num_channels, FRAME)
    assert np.array_equal(prepared.samples, first_two.samples)
    assert prepared.warnings == ("the reference has 6 channels; its first two are used",)


def test_reference_shorter_than_a_frame_is_rejected() -> None:
    with pytest.raises(AudioError, match=r"0\.050 s long; at least 0\.080 s"):
        prepare_reference(noise(2, 2_400), RATE, 2, FRAME)
    assert prepare_reference(noise(2, FRAME), RATE, 2, FRAME).samples.shape == (2, FRAME)


def test_reference_that_is_short_gets_a_warning() -> None:
    (warning,) = prepare_reference(noise(1, 24_000), RATE, 2, FRAME).warnings
    assert "only 0.50 s" in warning


@pytest.mark.parametrize("peak", [0.0, 0.0009])
def test_reference_that_is_silent_is_rejected(peak: float) -> None:
    clip = AudioClip(np.full((1, RATE), peak, np.float32), RATE)
    with pytest.raises(AudioError, match="silent"):
        prepare_reference(clip, RATE, 2, FRAME)


def test_reference_whose_channels_cancel_is_silent_for_a_mono_codec() -> None:
    left = noise(1, RATE).samples
    with pytest.raises(AudioError, match="silent"):
        prepare_reference(AudioClip(np.concatenate([left, -left]), RATE), RATE, 1, FRAME)


def test_reference_that_is_long_is_cut_with_a_warning() -> None:
    clip = noise(1, 31 * 8_000, 8_000)
    prepared = prepare_reference(clip, RATE, 2, FRAME)
    assert prepared.samples.shape == (2, 30 * RATE)
    assert prepared.warnings == ("the reference is 31.0 s long; its first 30 s are used",)
    assert prepare_reference(clip, RATE, 2, FRAME, 2.0).samples.shape == (2, 2 * RATE)


def test_reference_of_values_that_are_not_numbers_is_rejected() -> None:
    clip = noise(2, RATE)
    clip.samples[0, 5] = np.nan
    with pytest.raises(AudioError, match="not numbers"):
        prepare_reference(clip, RATE, 2, FRAME)


@pytest.mark.parametrize(
    ("samples", "sample_rate"),
    [
        (np.zeros(10, np.float32), RATE),
        (np.zeros((2, 10), np.int16), RATE),
        (np.zeros((2, 10), np.float32), 0),
    ],
)
def test_clip_of_another_form_is_rejected(samples: NDArray[np.float32], sample_rate: int) -> None:
    with pytest.raises(AudioError, match="a clip"):
        AudioClip(samples, sample_rate)
