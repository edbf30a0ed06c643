"""The state machine: the traces of spec voicegen.md 5.5 and 5.8, its masks, guards and ends."""

import itertools
import random
from collections.abc import Iterable, Sequence
from dataclasses import FrozenInstanceError
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from delay_models import Ints, delay_config, load_golden
from numpy.typing import NDArray

from mosstalk.models.moss_tts_delay.config import DelayConfig, parse_config
from mosstalk.models.moss_tts_delay.delay_pattern import Staircase, undelayed
from mosstalk.models.moss_tts_delay.delay_state import Decision, DelayState, Limits

CONFIG = parse_config(delay_config())
PAD, N_VQ = CONFIG.audio_pad_code, CONFIG.n_vq
ENDOFTEXT, IM_END = CONFIG.pad_token_id, CONFIG.im_end_token_id
START, END = CONFIG.audio_start_token_id, CONFIG.audio_end_token_id
GEN = CONFIG.audio_assistant_gen_slot_token_id
DELAY = CONFIG.audio_assistant_delay_slot_token_id
NAMES = {START: "START", GEN: "gen", DELAY: "delay", END: "END", IM_END: "IM_END"}
TEXT = 77
PROMPT = [CONFIG.im_start_token_id, 20, 21]
FREE = Limits(max_frames=10_000, max_text_rows=10_000)  # as the reference


def begun(prompt: Sequence[int] = PROMPT, limits: Limits = FREE) -> DelayState:
    return DelayState.start(CONFIG, prompt, limits)


def may(decision: Decision, text_id: int) -> bool:
    if decision.allowed is not None:
        return text_id in decision.allowed
    return text_id not in decision.banned


def after(
    state: DelayState, text_ids: Iterable[int], first_row: int = 1
) -> tuple[DelayState, list[Ints]]:
    """The state after rows with these text ids, and the rows.

    A code is the number of its frame where codebook 0 of frame 0 is drawn in row `first_row`.
    """
    rows: list[Ints] = []
    for number, text_id in enumerate(text_ids):
        decision = state.decide()
        assert state.stop is None
        assert may(decision, text_id), (number, text_id, decision)
        state, row = state.advance(text_id, [number - first_row - i for i in decision.codebooks])
        rows.append(row)
    return state, rows


def trace(rows: Sequence[Ints]) -> list[str]:
    """As the spec prints rows: letters are codebooks, numbers frames."""
    return [
        " ".join(
            (
                NAMES[int(row[0])],
                *("." if c == PAD else f"{'abcd'[i]}{c}" for i, c in enumerate(row[1:])),
            )
        )
        for row in rows
    ]


def frames_of(rows: Sequence[Ints]) -> list[list[int]]:
    staircase, frames = Staircase(N_VQ, PAD), []
    for row in rows:
        staircase, frame = staircase.push(row[1:])
        frames += [] if frame is None else [frame.tolist()]
    return frames


def test_delay_trace_of_a_generation() -> None:
    """Spec 5.5: three gen-slots make four frames."""
    state, rows = after(begun(), [START, GEN, GEN, GEN, *[DELAY] * 4, END, IM_END])
    assert trace(rows) == [
        "START . . . .",
        "gen a0 . . .",
        "gen a1 b0 . .",
        "gen a2 b1 c0 .",
        "delay a3 b2 c1 d0",
        "delay . b3 c2 d1",
        "delay . . c3 d2",
        "delay . . . d3",
        "END . . . .",
        "IM_END . . . .",
    ]
    assert state.stop == "end"
    assert state.frames == 4
    assert frames_of(rows) == [[t] * 4 for t in range(4)]
    assert len(rows) == 4 + N_VQ + 2  # spec 5.4


def test_delay_trace_of_a_continuation() -> None:
    """Spec 5.8: after five frames of prompt, two gen-slots make three new frames."""
    state = begun([*PROMPT, START, *[GEN] * 5])
    assert (state.audio_length, state.is_audio) == (6, True)
    assert state.decide() == Decision((GEN,), (), range(4))
    state, rows = after(state, [GEN, GEN, *[DELAY] * 4, END, IM_END], first_row=0)
    assert [line.split()[0] for line in trace(rows)] == [
        *["gen"] * 2, *["delay"] * 4, "END", "IM_END",
    ]  # fmt: skip
    drawn = [[c != PAD for c in row[1:]] for row in rows]
    assert drawn == [
        [True] * 4, [True] * 4, [True] * 4,
        [False, True, True, True],
        [False, False, True, True],
        [False, False, False, True],
        [False] * 4, [False] * 4,
    ]  # fmt: skip
    assert frames_of(rows) == [[t] * 4 for t in range(3)]
    assert state.frames == 3


def test_delay_trace_after_a_bare_audio_start() -> None:
    """Spec 5.8: the first row holds a code already, so a run is one row shorter."""
    state = begun([*PROMPT, START])
    assert state.audio_length == 1
    _, rows = after(state, [GEN, GEN, GEN, *[DELAY] * 4, END, IM_END], first_row=0)
    assert trace(rows)[:5] == [
        "gen a0 . . .",
        "gen a1 b0 . .",
        "gen a2 b1 c0 .",
        "delay a3 b2 c1 d0",
        "delay . b3 c2 d1",
    ]
    assert len(frames_of(rows)) == 4


def test_a_delay_slot_straight_after_audio_start_makes_one_frame() -> None:
    """Spec 10.1."""
    _, rows = after(begun(), [START, *[DELAY] * 4, END, IM_END])
    assert frames_of(rows) == [[0] * 4]


def test_the_first_frame_is_whole_after_one_row_more_than_codebooks() -> None:
    """Spec 5.5: a frame is heard as early as the staircase allows."""
    _, rows = after(begun(), [START, *[GEN] * 6])
    assert [len(frames_of(rows[:n])) for n in range(8)] == [0, 0, 0, 0, 0, 1, 2, 3]


def test_text_ids_outside_audio() -> None:
    """Spec 5.3: slots never, the end of the turn not in the first n_vq + 1 rows."""
    state = begun()
    for step in range(N_VQ + 3):
        decision = state.decide()
        assert decision.allowed is None and decision.forced is None
        assert {ENDOFTEXT, GEN, DELAY, END} <= set(decision.banned)
        assert may(decision, START) and may(decision, TEXT)
        assert may(decision, IM_END) == (step > N_VQ)
        assert len(decision.codebooks) == 0
        state, _ = after(state, [TEXT])


def test_text_ids_inside_audio() -> None:
    state, _ = after(begun(), [START])
    assert state.decide() == Decision((GEN, DELAY), (), range(1))
    state, _ = after(state, [GEN, DELAY])
    for opened in range(1, N_VQ):
        assert state.decide() == Decision((DELAY,), (), range(opened, min(3 + opened - 1, N_VQ)))
        assert state.decide().forced == DELAY
        state, _ = after(state, [DELAY])
    assert state.decide().forced == END
    state, _ = after(state, [END])
    assert not state.is_audio and state.audio_length == 0


def test_a_second_stretch_of_audio_is_a_run_of_its_own() -> None:
    audio = [START, GEN, *[DELAY] * 4, END]
    state, rows = after(begun(), [*audio, TEXT, *audio, IM_END])
    frames = frames_of(rows)
    assert len(frames) == state.frames == 4
    assert frames[2:] == [[t + 8] * 4 for t in range(2)]


def test_a_run_that_begins_in_text_is_seen_at_once() -> None:
    state = begun()
    assert not state.began_in_text
    state, _ = after(state, [TEXT])
    assert state.began_in_text and state.stop is None
    speaking, _ = after(state, [START, GEN])
    assert not speaking.began_in_text
    good, _ = after(begun(), [START])
    assert not good.began_in_text
    assert not begun([*PROMPT, START]).began_in_text


def test_a_run_without_audio_says_so() -> None:
    state, _ = after(begun(), [*[TEXT] * (N_VQ + 1), IM_END])
    assert state.stop == "no_audio"
    state, _ = after(begun(limits=Limits(10, max_text_rows=3)), [TEXT] * 4)
    assert state.stop == "no_audio"


def test_a_run_that_writes_on_after_its_audio_ends() -> None:
    limits = Limits(10, max_text_rows=3)
    state, _ = after(begun(limits=limits), [START, *[DELAY] * 4, END, *[TEXT] * 4])
    assert state.stop == "end"


@pytest.mark.parametrize("max_frames", [1, 2, 3, 7])
@pytest.mark.parametrize("prompt", [PROMPT, [*PROMPT, START], [*PROMPT, START, GEN, GEN]])
def test_a_run_ends_at_the_cap_with_whole_frames(max_frames: int, prompt: list[int]) -> None:
    state, rows = begun(prompt, Limits(max_frames)), []
    while state.stop is None:
        decision = state.decide()
        wanted = START if decision.allowed is None else decision.allowed[0]  # never by itself
        state, row = state.advance(wanted, [0] * len(decision.codebooks))
        rows.append(row)
    assert state.stop == "max_frames"
    assert len(frames_of(rows)) == state.frames == max_frames
    assert len(rows) <= state.limits.max_rows(N_VQ)


def test_a_run_cannot_end_below_its_least_frames() -> None:
    state, _ = after(begun(limits=Limits(50, min_frames=4)), [START])
    for _ in range(3):
        assert state.decide().allowed == (GEN,)
        state, _ = after(state, [GEN])
    assert state.decide().allowed == (GEN, DELAY)
    silent = begun(limits=Limits(50, min_frames=4))
    silent, _ = after(silent, [TEXT] * (N_VQ + 2))
    assert not may(silent.decide(), IM_END)


def test_a_state_is_a_value() -> None:
    state, _ = after(begun(), [START, GEN])
    before = repr(state)
    one, _ = after(state, [GEN])
    other, _ = after(state, [DELAY])
    assert one != other and one.draining is None and other.draining == 1
    assert repr(state) == before
    with pytest.raises(FrozenInstanceError):
        state.step = 3  # type: ignore[misc]


def test_random_runs_keep_to_the_pattern() -> None:
    """Whatever is drawn: frames are the whole diagonals of the rows, and no run exceeds its cap."""
    chance = random.Random(3)
    for _ in range(300):
        n_vq = chance.choice([1, 2, 4, 7])
        config = parse_config({**delay_config(), "n_vq": n_vq})
        limits = Limits(chance.randrange(1, 20), 0, chance.randrange(0, 6))
        prompt = [*PROMPT, START, *[GEN] * 3][: chance.choice([3, 4, 7])]
        rows = random_run(DelayState.start(config, prompt, limits), chance)
        staircase, frames = Staircase(n_vq, PAD), []
        for row in rows:
            staircase, frame = staircase.push(row[1:])
            frames += [] if frame is None else [frame]
        whole = undelayed(np.array(rows)[:, 1:])
        wanted = whole[(whole != PAD).any(axis=1)]
        assert np.array_equal(np.array(frames).reshape(-1, n_vq), wanted)
        assert PAD not in wanted


def random_run(state: DelayState, chance: random.Random) -> list[Ints]:
    rows = []
    while state.stop is None:
        decision = state.decide()
        likely = [START, START, TEXT, *([IM_END] if may(decision, IM_END) else [])]
        text_id = chance.choice(decision.allowed or likely)
        state, row = state.advance(text_id, [chance.randrange(PAD) for _ in decision.codebooks])
        rows.append(row)
    assert len(rows) <= state.limits.max_rows(state.config.n_vq)
    assert state.frames <= state.limits.max_frames
    return rows


RUNS = {
    "greedy_text_start_rows_0": ("prompt", 0),
    "greedy_audio_rows_0": ("audio_prompt", 0),
    "greedy_audio_rep1.1_rows_0": ("audio_prompt", 0),
    "batch_rows_0": ("batch_prompt", 0),
    "batch_rows_1": ("batch_prompt", 1),
    "single_b_rows_0": ("batch_prompt", 1),
}


@pytest.mark.parametrize("key", RUNS)
@pytest.mark.parametrize("name", ["delay_small", "delay_vg"])
def test_delay_golden_rows_are_what_the_states_allow(golden_dir: Path, name: str, key: str) -> None:
    golden = load_golden(golden_dir, name)
    prompt, stream = RUNS[key]
    start = int(golden.arrays[f"{key.split('_rows_')[0]}_start"][int(key[-1])])
    rows = golden.arrays[key][start:]  # before that the original repeats the prompt
    assert len(rows) >= 12
    follow(parse_config(golden.checkpoint.config), golden.arrays[prompt][stream], rows)


def test_delay_golden_rows_of_a_sampled_run(golden_dir: Path) -> None:
    """Its text ids were drawn under the original's masks."""
    config = parse_config(load_golden(golden_dir, "delay_vg").checkpoint.config)
    with np.load(golden_dir / "reference" / "delay_e2e.npz") as arrays:
        prompt, rows = arrays["gen_prompt"][0], arrays["gen_rows"][1:]
    assert len(rows) == 48
    follow(config, prompt, rows)


def follow(config: DelayConfig, prompt: NDArray[Any], rows: NDArray[Any]) -> None:
    """The states allow each of `rows`, and make the same rows of what was drawn."""
    state = DelayState.start(config, prompt[:, 0], FREE)
    for row in rows:
        decision = state.decide()
        assert may(decision, int(row[0]))
        drawn = np.flatnonzero(row[1:] != config.audio_pad_code)
        assert drawn.tolist() == list(decision.codebooks)
        state, found = state.advance(int(row[0]), row[1:][drawn])
        assert np.array_equal(found, row)


def test_delay_states_of_every_short_script() -> None:
    """No order of ids that a state allows breaks the machine."""
    for script in itertools.product((START, GEN, DELAY, END, IM_END, TEXT), repeat=6):
        state = begun()
        for text_id in script:
            decision = state.decide()
            if state.stop is not None or not may(decision, text_id):
                break
            assert 0 <= decision.codebooks.start <= N_VQ
            state, row = state.advance(text_id, [1] * len(decision.codebooks))
            assert (row[1:] != PAD).sum() == len(decision.codebooks)
