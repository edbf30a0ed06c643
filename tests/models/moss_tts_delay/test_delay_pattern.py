"""Codes to rows and back, and frames as soon as they are whole."""

from pathlib import Path

import numpy as np
import pytest
from delay_models import load_golden

from mosstalk.models.moss_tts_delay.delay_pattern import Staircase, delayed, undelayed


@pytest.mark.parametrize("name", ["delay_small", "delay_vg"])
def test_delay_golden_pattern(golden_dir: Path, name: str) -> None:
    golden = load_golden(golden_dir, name)
    codes, rows = golden.arrays["delay_in"].astype(np.int32), golden.arrays["delay_out"]
    pad = int(golden.checkpoint.config["audio_pad_code"])  # type: ignore[call-overload]
    assert np.array_equal(delayed(codes, pad), rows)
    assert np.array_equal(undelayed(rows.astype(np.int32)), codes)


@pytest.mark.parametrize("num_frames", [1, 3, 9])
def test_delay_puts_codebook_i_i_rows_lower(num_frames: int) -> None:
    """Spec voicegen.md 5.1."""
    codes = np.arange(4 * num_frames, dtype=np.int32).reshape(num_frames, 4)
    rows = delayed(codes, 99)
    assert rows.shape == (num_frames + 3, 4)
    for t in range(num_frames):
        for i in range(4):
            assert rows[t + i, i] == codes[t, i]
    assert (rows == 99).sum() == 4 * 3


def test_undelay_of_fewer_rows_than_codebooks_is_empty() -> None:
    assert undelayed(np.zeros((3, 4), np.int32)).shape == (0, 4)
    assert undelayed(np.zeros((4, 4), np.int32)).shape == (1, 4)


def test_a_frame_comes_with_the_row_of_its_last_code() -> None:
    codes = np.arange(20, dtype=np.int32).reshape(5, 4)
    staircase, found = Staircase(4, 99), []
    for number, row in enumerate(delayed(codes, 99)):
        staircase, frame = staircase.push(row)
        assert (frame is None) == (number < 3)
        if frame is not None:
            found.append(frame)
    assert np.array_equal(found, codes)


def test_rows_around_the_audio_make_no_frames() -> None:
    codes = np.arange(8, dtype=np.int32).reshape(2, 4)
    empty = np.full((6, 4), 99, np.int32)
    staircase, found = Staircase(4, 99), []
    for row in (*empty, *delayed(codes, 99), *empty, *delayed(codes, 99), *empty):
        staircase, frame = staircase.push(row)
        found += [] if frame is None else [frame]
    assert np.array_equal(found, [*codes, *codes])


def test_a_staircase_is_a_value() -> None:
    one, _ = Staircase(1, 99).push(np.array([5], np.int32))
    two, frame = Staircase(2, 99).push(np.array([5, 99], np.int32))
    assert frame is None
    for second in (7, 8):  # the same staircase, gone on from twice
        _, frame = two.push(np.array([1, second], np.int32))
        assert frame is not None and frame.tolist() == [5, second]
    assert one.rows == ()
