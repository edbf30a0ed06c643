"""Runs whose text ids are given, row by row as the specification prints them (spec 5.5, 5.8)."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mosstalk.models.moss_tts_delay.config import DelayConfig
from mosstalk.models.moss_tts_delay.delay_pattern import Staircase, delayed, undelayed
from mosstalk.models.moss_tts_delay.delay_state import DelayState
from mosstalk.parity.comparison import Comparison
from mosstalk.parity.delay.replay import NO_LIMITS, is_allowed
from mosstalk.parity.delay.rules import generation_trace, small_config

CODEBOOKS = (1, 2, 4, 16, 32)
_GEN_SLOTS = (0, 1, 3, 40)
_PROMPT = 3  # text ids before speech
# Spec 5.5, with n_vq 4 and three gen-slots: the frame of each codebook's code, None for a pad.
_PRINTED = (
    (None, None, None, None),
    (0, None, None, None),
    (1, 0, None, None),
    (2, 1, 0, None),
    (3, 2, 1, 0),
    (None, 3, 2, 1),
    (None, None, 3, 2),
    (None, None, None, 3),
    (None, None, None, None),
    (None, None, None, None),
)
# Spec 5.8: two gen-slots after a prompt of five frames.
_PRINTED_CONTINUATION = (
    (5, 4, 3, 2),
    (6, 5, 4, 3),
    (7, 6, 5, 4),
    (None, 7, 6, 5),
    (None, None, 7, 6),
    (None, None, None, 7),
    (None, None, None, None),
    (None, None, None, None),
)


def check_generation(comparison: Comparison) -> None:
    """A whole run, as printed and at other sizes; its frames, each when its last code is there."""
    config = small_config(4)
    printed = _as_codes(_PRINTED, config)
    comparison.add_ids("as printed", printed, _run(config, [], _generation(config, 3)))
    for n_vq in CODEBOOKS:
        check_generation_of(small_config(n_vq), comparison)


def check_generation_of(config: DelayConfig, comparison: Comparison) -> None:
    """Whole runs with a model's own ids; each code is the number of its frame."""
    n_vq, pad = config.n_vq, config.audio_pad_code
    for gen_slots in (slots for slots in _GEN_SLOTS if slots < pad):
        what = f"{n_vq} codebooks, {gen_slots} gen-slots"
        rows = _run(config, [], _generation(config, gen_slots))
        comparison.add_ids(what, generation_trace(n_vq, gen_slots, pad), rows)
        frames = np.repeat(np.arange(gen_slots + 1, dtype=np.int32)[:, None], n_vq, axis=1)
        comparison.add_ids(f"{what}, frames", frames, _frames(config, rows))
    for slots in (n_vq - 1, n_vq + 1):
        _refuse(comparison, config, slots)


def check_continuation(comparison: Comparison) -> None:
    """A run after frames that the prompt holds: the codes beyond its diagonal are drawn again."""
    config, frames = small_config(4), 5
    gen = config.audio_assistant_gen_slot_token_id
    prompt = [config.audio_start_token_id, *[gen] * frames]
    text_ids = _generation(config, 2)[1:]
    rows = _run(config, prompt, text_ids, first_frames=[frames - i for i in range(4)])
    comparison.add_ids("as printed", _as_codes(_PRINTED_CONTINUATION, config), rows)
    held = np.repeat(np.arange(frames, dtype=np.int32)[:, None], 4, axis=1)
    before = delayed(held, config.audio_pad_code)[:frames]
    whole = undelayed(np.concatenate([before, rows]))[: frames + 3]
    comparison.add_ids(
        "frames of prompt and run", np.repeat(np.arange(8)[:, None], 4, axis=1), whole
    )


def check_bare_start(comparison: Comparison) -> None:
    """A prompt that ends in audio start: the first row holds a code already."""
    config = small_config(4)
    rows = _run(config, [config.audio_start_token_id], _generation(config, 3)[1:])
    comparison.add_ids("rows", _as_codes(_PRINTED[1:], config), rows)


def check_pattern(comparison: Comparison) -> None:
    """Frames to rows and back, against the formula (spec 5.1)."""
    for n_vq in CODEBOOKS:
        config = small_config(n_vq)
        codes = np.arange(9 * n_vq, dtype=np.int32).reshape(9, n_vq)
        rows = np.full((9 + n_vq - 1, n_vq), config.audio_pad_code, np.int32)
        for frame, codebook in np.ndindex(*codes.shape):
            rows[frame + codebook, codebook] = codes[frame, codebook]
        comparison.add_ids(f"{n_vq} codebooks", rows, delayed(codes, config.audio_pad_code))
        comparison.add_ids(f"{n_vq} codebooks, back", codes, undelayed(rows))
        comparison.add_ids(f"{n_vq} codebooks, frame by frame", codes, _frames(config, rows))


def _refuse(comparison: Comparison, config: DelayConfig, delay_slots: int) -> None:
    """Another number of delay-slots than there are codebooks cannot be drawn."""
    start, *_, end, turn_end = _generation(config, 0)
    slots = [config.audio_assistant_delay_slot_token_id] * delay_slots
    try:
        _run(config, [], [start, *slots, end, turn_end])
    except ValueError:
        return
    comparison.fail(f"{config.n_vq} codebooks: {delay_slots} delay-slots can be drawn")


def _generation(config: DelayConfig, gen_slots: int) -> list[int]:
    """Text ids of a run with so many gen-slots."""
    return [
        config.audio_start_token_id,
        *[config.audio_assistant_gen_slot_token_id] * gen_slots,
        *[config.audio_assistant_delay_slot_token_id] * config.n_vq,
        config.audio_end_token_id,
        config.im_end_token_id,
    ]


def _run(
    config: DelayConfig,
    prompt: Sequence[int],
    text_ids: Sequence[int],
    first_frames: Sequence[int] | None = None,
) -> NDArray[np.int32]:
    """Codes [rows, n_vq] of a run with these text ids; each code is the number of its frame.

    `first_frames`: of each codebook's first code. Raises ValueError for an id that cannot be
    drawn.
    """
    state = DelayState.start(config, [config.im_start_token_id] * _PROMPT + [*prompt], NO_LIMITS)
    frames = list(first_frames or [0] * config.n_vq)
    rows = []
    for index, text_id in enumerate(text_ids):
        decision = state.decide()
        if not is_allowed(decision, text_id):
            raise ValueError(f"row {index}: text id {text_id} cannot be drawn")
        codes = [frames[codebook] for codebook in decision.codebooks]
        for codebook in decision.codebooks:
            frames[codebook] += 1
        state, row = state.advance(text_id, codes)
        rows.append(row[1:])
    return np.stack(rows)


def _frames(config: DelayConfig, rows: NDArray[np.int32]) -> NDArray[np.int32]:
    """What the engine gets of such rows: [frames, n_vq]."""
    staircase, frames = Staircase(config.n_vq, config.audio_pad_code), []
    for row in rows:
        staircase, frame = staircase.push(row)
        frames += [] if frame is None else [frame]
    return np.array(frames, np.int32).reshape(-1, config.n_vq)


def _as_codes(printed: Sequence[Sequence[int | None]], config: DelayConfig) -> NDArray[np.int32]:
    pad = config.audio_pad_code
    return np.array([[pad if c is None else c for c in row] for row in printed], np.int32)
