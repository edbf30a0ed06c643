"""What a query sees: exact windows of 10 s, and the less that the original's chunks leave of them.

The oracle is the formula decoder, which knows no caches; golden vectors say that it is right.
"""

from pathlib import Path

import numpy as np
import pytest
from codec_files import FULL, Golden, random_codes, random_tensors, tiny_full_config
from codec_formula import FormulaDecoder
from numpy.typing import NDArray

from mosstalk.codec.moss_audio_tokenizer.codec import MossAudioTokenizer
from mosstalk.compute.backend import open_backend
from mosstalk.errors import UsageError

TOLERANCE = 3e-6  # of the largest sample
FRAMES = 160  # a window has 125
CHUNKS = ("0.08", "0.16", "0.4", "0.8")  # seconds


@pytest.fixture(scope="module")
def codec() -> MossAudioTokenizer:
    config = tiny_full_config()
    return MossAudioTokenizer(config, random_tensors(config), open_backend("cpu", 2))


@pytest.fixture(scope="module")
def codes(codec: MossAudioTokenizer) -> NDArray[np.int32]:
    return random_codes(FRAMES, codec)


def formula(seconds: float = 10.0, chunk: int | None = None) -> FormulaDecoder:
    config = tiny_full_config()
    return FormulaDecoder(config, random_tensors(config), seconds, chunk)


def difference(found: NDArray[np.float32], expected: NDArray[np.floating]) -> float:
    """The largest, of the largest value expected."""
    assert found.shape == expected.shape
    return float(np.abs(found - expected).max() / np.abs(expected).max())


def test_windows_end_where_the_formula_says(
    codec: MossAudioTokenizer, codes: NDArray[np.int32]
) -> None:
    audio = codec.decode(codes)
    assert difference(audio, formula()(codes)) <= TOLERANCE
    for seconds in (9.99, 10.01):  # 999 or 1001 positions at 100 a second
        other = formula(seconds)(codes)
        assert difference(audio, other) > 100 * TOLERANCE
        first = 124 * codec.frame_len
        assert difference(audio[:, :first], other[:, :first]) <= TOLERANCE


@pytest.mark.parametrize("frames", [100, 101, 125, 1])
def test_chunks_leave_what_the_formula_says(
    codec: MossAudioTokenizer, codes: NDArray[np.int32], frames: int
) -> None:
    """8 s as the original's processor asks for; the last chunk is shorter."""
    audio = codec.decode(codes, reference_chunk_seconds=0.08 * frames)
    assert difference(audio, formula(chunk=frames)(codes)) <= TOLERANCE
    assert difference(audio, codec.decode(codes)) > 100 * TOLERANCE


def test_one_chunk_is_the_exact_window(codec: MossAudioTokenizer, codes: NDArray[np.int32]) -> None:
    """Up to 8 s the original's processor has the exact window too; both to the bit."""
    whole = codec.decode(codes)
    for frames in (0, 1, 99, 100):
        part = codec.decode(codes[:frames], reference_chunk_seconds=8.0)
        np.testing.assert_array_equal(part, whole[:, : frames * codec.frame_len])
    longer = codec.decode(codes[:101], reference_chunk_seconds=8.0)
    first = 100 * codec.frame_len
    np.testing.assert_array_equal(longer[:, :first], whole[:, :first])


def test_chunks_do_not_touch_each_other(
    codec: MossAudioTokenizer, codes: NDArray[np.int32]
) -> None:
    first = codec.decode(codes, reference_chunk_seconds=8.0)
    codec.decode(codes[::-1], reference_chunk_seconds=0.4)
    codec.decode(codes[::-1])
    np.testing.assert_array_equal(codec.decode(codes, reference_chunk_seconds=8.0), first)


@pytest.mark.parametrize("seconds", [0.0, -8.0, 0.05, 0.1, 8.05])
def test_a_chunk_is_a_whole_number_of_frames(codec: MossAudioTokenizer, seconds: float) -> None:
    with pytest.raises(UsageError, match=r"whole number of frames; give a multiple of 0\.08 s"):
        codec.decode(random_codes(3, codec), reference_chunk_seconds=seconds)


def test_a_chunk_fits_into_the_context(codec: MossAudioTokenizer) -> None:
    with pytest.raises(UsageError, match="126 frames is longer than .* at most 125"):
        codec.decode(random_codes(126, codec), reference_chunk_seconds=10.08)


@pytest.mark.parametrize("seconds", CHUNKS)
@pytest.mark.parametrize("name", FULL)
@pytest.mark.parametrize("backend", ["cpu", "reference"])
def test_golden_chunks(golden_dir: Path, name: str, seconds: str, backend: str) -> None:
    golden = Golden(golden_dir, name)
    codec = golden.codec(open_backend(backend, 2))
    audio = codec.decode(golden.codes("long_codes"), reference_chunk_seconds=float(seconds))
    assert difference(audio, golden.arrays[f"long_audio_chunk{seconds}"][0]) <= TOLERANCE


def test_golden_chunks_differ_from_golden_windows(golden_dir: Path) -> None:
    """Else the tests above would show nothing: codec_full_narrow has contexts of 10 frames."""
    golden = Golden(golden_dir, "codec_full_narrow")
    exact = golden.arrays["long_audio"][0]
    for seconds in CHUNKS:
        assert difference(golden.arrays[f"long_audio_chunk{seconds}"][0], exact) > 0.01


@pytest.mark.parametrize(("name", "seconds"), [("narrow", 0.8), ("wide", 10.0), ("e2e", 10.0)])
def test_golden_agrees_with_the_formula(golden_dir: Path, name: str, seconds: float) -> None:
    golden = Golden(golden_dir, f"codec_full_{name}")
    config, tensors = golden.files()
    expected = golden.arrays["long_audio"][0]
    codes = golden.codes("long_codes")
    assert difference(expected, FormulaDecoder(config, tensors, seconds)(codes)) <= TOLERANCE
    expected = golden.arrays["long_audio_chunk0.4"][0]
    assert difference(expected, FormulaDecoder(config, tensors, seconds, 5)(codes)) <= TOLERANCE
