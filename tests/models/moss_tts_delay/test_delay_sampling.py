"""How the delay family draws: the original's probabilities, its rules one by one, its runs."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from delay_models import Golden, Ints, delay_config, load_golden, started
from numpy.typing import NDArray

from mosstalk.compute.backend import open_backend
from mosstalk.compute.sampling import SamplingParams, probabilities
from mosstalk.models.moss_tts_delay.config import parse_config
from mosstalk.models.moss_tts_delay.delay_state import Decision, DelayState, Limits
from mosstalk.models.moss_tts_delay.members import TTS, TTSD, VOICE_GENERATOR, member_of
from mosstalk.models.moss_tts_delay.sampling import (
    TEXT_SAMPLING,
    CodeHistory,
    DelaySampling,
    PenaltyScope,
    draw_codes,
    draw_id,
    draw_text,
    kept,
    retry_seed,
)
from mosstalk.models.moss_tts_delay.session import DelaySession

CONFIG = parse_config(delay_config())
GREEDY = SamplingParams(temperature=0)
Arrays = Mapping[str, NDArray[Any]]


def chances(
    logits: NDArray[np.float32], seen: NDArray[np.uint8] | None, params: SamplingParams
) -> NDArray[np.float64]:
    """The distribution that `draw_id` draws from."""
    ids, scores = kept(logits, seen, params)
    spread = np.zeros(len(logits))
    spread[ids] = probabilities(scores, None, SamplingParams(top_p=params.top_p).row())
    return spread


def golden_params(case: NDArray[Any]) -> SamplingParams:
    top_p, top_k, penalty = case.tolist()
    return SamplingParams(1.0, int(top_k), top_p, penalty)


def seen_ids(earlier: NDArray[Any], size: int) -> NDArray[np.uint8]:
    seen = np.zeros(size, np.uint8)
    seen[np.unique(earlier)] = 1
    return seen


@pytest.mark.parametrize("name", ["delay_small", "delay_vg"])
def test_delay_golden_sampler_probabilities_per_codebook(golden_dir: Path, name: str) -> None:
    """Logits [batch, codebooks, codes]: each codebook's own past, over the whole batch (5.6)."""
    arrays = load_golden(golden_dir, name).arrays
    logits, earlier = arrays["sampler_logits"], arrays["sampler_prev"]
    batch, codebooks, size = logits.shape
    for number, case in enumerate(arrays["sampler_cases_topp_topk_rep"]):
        params = golden_params(case)
        wanted = arrays[f"sampler_probs_{number}"].reshape(batch, codebooks, size)
        for b, k in np.ndindex(batch, codebooks):
            found = chances(logits[b, k], seen_ids(earlier[:, :, k], size), params)
            assert np.allclose(found, wanted[b, k], rtol=0, atol=1e-6), (number, b, k)
            assert np.array_equal(np.flatnonzero(found), np.flatnonzero(wanted[b, k]))


def golden_2d(golden_dir: Path) -> Arrays:
    path = golden_dir / "reference" / "delay_sampler_2d.npz"
    if not path.exists():
        pytest.skip(f"{path} is not there")
    with np.load(path) as arrays:
        return dict(arrays)


def test_delay_golden_sampler_probabilities_of_the_union(golden_dir: Path) -> None:
    """Logits [codebooks, codes], as the original calls it: one set of seen ids for all."""
    arrays = golden_2d(golden_dir)
    logits = arrays["logits"]
    seen = seen_ids(arrays["prev"], logits.shape[1])
    for number, case in enumerate(arrays["cases_topp_topk_rep"]):
        params = golden_params(case)
        greedy = SamplingParams(0, params.top_k, params.top_p, params.repetition_penalty)
        for row, wanted in enumerate(arrays[f"probs_{number}"]):
            found = chances(logits[row], seen, params)
            assert np.allclose(found, wanted, rtol=0, atol=1e-6), (number, row)
            assert np.array_equal(np.flatnonzero(found), np.flatnonzero(wanted))
            likeliest = int(arrays[f"argmax_{number}"][row])
            assert draw_id(logits[row], seen, greedy, np.float32(0.9)) == likeliest


def test_top_k_keeps_exactly_k_where_logits_tie() -> None:
    """The lower ids: `compute.sampling` would keep all that tie."""
    logits = np.array([1, 3, 2, 3, 2, 2, 0], np.float32)
    for top_k, ids in ((1, [1]), (2, [1, 3]), (3, [1, 2, 3]), (4, [1, 2, 3, 4]), (7, [*range(7)])):
        found, scores = kept(logits, None, SamplingParams(top_k=top_k))
        assert found.tolist() == ids
        assert np.array_equal(scores, logits[ids])
    assert len(kept(np.zeros(1024, np.float32), None, SamplingParams(top_k=50))[0]) == 50


def test_top_p_keeps_the_id_that_crosses_it() -> None:
    """Spec voicegen.md 5.6."""
    logits = np.log(np.array([0.05, 0.5, 0.15, 0.3], np.float32))
    found = chances(logits, None, SamplingParams(top_p=0.6))
    assert np.allclose(found, [0, 0.5 / 0.8, 0, 0.3 / 0.8])


def test_the_penalty_lowers_by_the_sign_and_once_an_id() -> None:
    logits = np.array([2, 2, -2, -2, 0], np.float32)
    history = CodeHistory.of(CONFIG, np.full((3, 5), 1, np.int32))
    seen = history.counted(PenaltyScope.PER_CODEBOOK)[0, :5]
    assert seen.tolist() == [0, 1, 0, 0, 0]  # three rows, one id
    _, scores = kept(logits, np.array([0, 1, 0, 1, 1], np.uint8), SamplingParams(1, 0, 1, 4))
    assert scores.tolist() == [2, 0.5, -2, -8, 0]


def test_what_a_penalty_counts() -> None:
    """Spec 5.6: codebook 0 its own past; the others, in the original, that of all others."""
    rows = np.array([[9, 1, 2, 3, 4], [9, 5, 6, 7, 32]], np.int32)
    history = CodeHistory.of(CONFIG, rows[:1]).after(rows[1])
    ids = {
        scope: [np.flatnonzero(seen).tolist() for seen in history.counted(scope)]
        for scope in PenaltyScope
    }
    assert ids[PenaltyScope.PER_CODEBOOK] == [[1, 5], [2, 6], [3, 7], [4, 32]]
    assert ids[PenaltyScope.UNION] == [[1, 5], *[[2, 3, 4, 6, 7, 32]] * 3]


def test_a_history_is_a_value() -> None:
    row = np.array([9, 1, 2, 3, 4], np.int32)
    before = CodeHistory.of(CONFIG, row[None])
    copy = before.seen.copy()
    before.after(row + 1)
    assert np.array_equal(before.seen, copy)


def sampling(seed: int = 1, chunk: int = 0, audio: SamplingParams | None = None) -> DelaySampling:
    return DelaySampling(TEXT_SAMPLING, audio or VOICE_GENERATOR.audio_sampling, seed, chunk)


def test_text_ids_are_drawn_among_the_allowed() -> None:
    never = np.full(128, np.nan, np.float32)
    assert draw_text(never, Decision((7,), (), range(0)), sampling(), 0) == 7
    slots = Decision((9, 10), (), range(4))
    drawn = {draw_text(np.zeros(2, np.float32), slots, sampling(), step) for step in range(40)}
    assert drawn == {9, 10}
    assert draw_text(np.array([-50, 50], np.float32), slots, sampling(), 3) == 10
    free = Decision(None, (0, 1, 2), range(0))
    logits = np.array([9, 9, 9, 1, 1, -90], np.float32)
    before = logits.copy()
    drawn = {draw_text(logits, free, sampling(), step) for step in range(40)}
    assert drawn == {3, 4}
    assert np.array_equal(logits, before)


def test_the_pad_is_never_drawn() -> None:
    logits = np.zeros((4, 33), np.float32)
    logits[:, 32] = 90
    decision = Decision((9, 10), (), range(1, 3))
    history = CodeHistory.of(CONFIG, np.empty((0, 5), np.int32))
    for params in (GREEDY, VOICE_GENERATOR.audio_sampling):
        codes = draw_codes(logits, history, decision, sampling(audio=params), 0)
        assert codes.shape == (2,) and codes.dtype == np.int32
        assert (codes < 32).all()


def test_a_draw_depends_on_seed_chunk_row_and_codebook_alone() -> None:
    """Which other codebooks are drawn, and in which order rows are computed, changes nothing."""
    logits = np.random.default_rng(2).standard_normal((4, 33)).astype(np.float32)
    history = CodeHistory.of(CONFIG, np.empty((0, 5), np.int32))
    wide = SamplingParams()

    def codes(codebooks: range, **given: int) -> Ints:
        step = given.pop("step", 5)
        decision = Decision((9, 10), (), codebooks)
        return draw_codes(logits, history, decision, sampling(**given, audio=wide), step)

    whole = codes(range(4))
    assert np.array_equal(codes(range(2, 4)), whole[2:])
    assert np.array_equal(codes(range(4)), whole)
    for other in ({"seed": 2}, {"chunk": 1}, {"step": 6}):
        assert not np.array_equal(codes(range(4), **other), whole)


@pytest.mark.parametrize(
    "params",
    [
        SamplingParams(1e-5),
        SamplingParams(1e30),
        SamplingParams(1, 2**40),
        SamplingParams(1, 5, 1e-30),
        SamplingParams(1, 5, 1, 1e-30),
        SamplingParams(1, 5, 1, 1e30),
    ],
)
def test_extreme_parameters_draw_without_a_warning(params: SamplingParams) -> None:
    logits = np.array([3, 1, -2, 0, 5, 4], np.float32)
    seen = np.array([1, 0, 1, 1, 0, 0], np.uint8)
    for uniform in (0.0, 0.5, 1 - 2**-24):
        assert 0 <= draw_id(logits, seen, params, np.float32(uniform)) < 6


def test_draws_follow_the_probabilities() -> None:
    logits = np.random.default_rng(4).standard_normal(12).astype(np.float32) * 2
    seen = np.array([1, 0] * 6, np.uint8)
    params = SamplingParams(1.3, 6, 0.9, 1.2)
    count = 20_000
    drawn = [draw_id(logits, seen, params, np.float32((i + 0.5) / count)) for i in range(count)]
    ids, scores = kept(logits, seen, params)
    wanted = np.zeros(12)
    wanted[ids] = probabilities(scores, None, SamplingParams(1.3, top_p=0.9).row())
    assert np.allclose(np.bincount(drawn, minlength=12) / count, wanted, atol=1e-3)


def test_seeds_of_further_attempts() -> None:
    assert retry_seed(7, 0) == 7
    seeds = {retry_seed(seed, attempt) for seed in (0, 7, 2**63 - 1) for attempt in range(5)}
    assert len(seeds) == 15
    assert all(0 <= seed < 2**63 for seed in seeds)
    assert retry_seed(7, 3) == retry_seed(7, 3)


@pytest.mark.parametrize(
    ("n_vq", "hidden", "member"),
    [(16, 2048, VOICE_GENERATOR), (32, 4096, TTS), (16, 4096, TTSD), (4, 64, VOICE_GENERATOR)],
)
def test_members_are_told_by_their_sizes(n_vq: int, hidden: int, member: Any) -> None:
    """Spec 1.1; the codes' defaults are those of 5.7."""
    config = parse_config({**delay_config(hidden=hidden), "n_vq": n_vq})
    assert member_of(config) is member
    params = member.audio_sampling
    assert (params.temperature, params.top_p, params.top_k, params.repetition_penalty) == {
        "MOSS-VoiceGenerator": (1.5, 0.6, 50, 1.1),
        "MOSS-TTS": (1.7, 0.8, 25, 1.0),
        "MOSS-TTSD": (1.1, 0.9, 50, 1.1),
    }[member.name]
    assert SamplingParams(1.5, 50, 1.0, 1.0) == TEXT_SAMPLING


def run(
    session: DelaySession, rows: Ints, state: DelayState, drawing: DelaySampling, count: int
) -> Ints:
    """Up to `count` rows after the prompt `rows`."""
    history, made = CodeHistory.of(state.config, rows), []
    while len(made) < count and state.stop is None:
        decision, step = state.decide(), state.step
        logits = session.slot_logits() if decision.allowed else session.text_logits()
        if decision.allowed and decision.forced is None:
            assert len(decision.allowed) == len(logits)
        text_id = draw_text(logits, decision, drawing, step)
        codes = draw_codes(session.audio_logits(), history, decision, drawing, step)
        state, row = state.advance(text_id, codes)
        session.step(row)
        history = history.after(row)
        made.append(row)
    return np.array(made)


@pytest.mark.parametrize("backend", ["cpu", "reference"])
@pytest.mark.parametrize("golden", ["delay_small", "delay_vg"], indirect=True)
@pytest.mark.parametrize(("key", "penalty"), [("greedy_audio", 1.0), ("greedy_audio_rep1.1", 1.1)])
def test_golden_rows_drawn_with_a_penalty(
    golden: Golden, backend: str, key: str, penalty: float
) -> None:
    """The likeliest codes after the original's penalty, whose scope is the union."""
    model, rows = golden.model(open_backend(backend, 2)), golden.rows("audio_prompt")
    wanted = golden.arrays[f"{key}_rows_0"][1:]  # the first is the prompt's audio start
    drawing = DelaySampling(GREEDY, SamplingParams(0, repetition_penalty=penalty), seed=0)
    session = started(model, rows, len(rows) + len(wanted))
    state = DelayState.start(model.config, rows[:, 0], Limits(10_000, max_text_rows=10_000))
    assert np.array_equal(run(session, rows, state, drawing, len(wanted)), wanted)


@pytest.mark.parametrize("golden", ["delay_small"], indirect=True)
def test_sampled_runs_are_the_same_for_a_seed_and_end(golden: Golden) -> None:
    model, rows = golden.model(open_backend("cpu", 2)), golden.rows("audio_prompt")
    limits = Limits(12, max_text_rows=3)

    def rows_for(seed: int) -> Ints:
        session = started(model, rows, len(rows) + limits.max_rows(4))
        state = DelayState.start(model.config, rows[:, 0], limits)
        return run(session, rows, state, sampling(seed), 10_000)

    runs = [rows_for(seed) for seed in range(4)]
    assert all(np.array_equal(rows_for(seed), found) for seed, found in enumerate(runs))
    assert len({found.tobytes() for found in runs}) == 4
    assert all(len(found) <= limits.max_rows(4) for found in runs)
