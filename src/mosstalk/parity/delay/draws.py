"""What may be drawn, against the rules written out (spec 5.3, 5.6)."""

import numpy as np
from numpy.typing import NDArray

from mosstalk.compute.sampling import SamplingParams
from mosstalk.models.moss_tts_delay.config import DelayConfig
from mosstalk.models.moss_tts_delay.delay_state import Decision, DelayState
from mosstalk.models.moss_tts_delay.sampling import (
    TEXT_SAMPLING,
    CodeHistory,
    DelaySampling,
    draw_codes,
    draw_text,
    kept,
)
from mosstalk.parity.comparison import Comparison
from mosstalk.parity.delay.replay import NO_LIMITS, is_allowed
from mosstalk.parity.delay.rules import Rules, named_ids, small_config

_CODEBOOKS = (1, 4, 16)
_RUNS = 20  # for each number of codebooks
_ROWS = 60
_PENALTY = 1.1
_DRAWS = 20
_GREEDY = SamplingParams(temperature=0.0)


def check_masks(comparison: Comparison) -> None:
    """Text ids and codebooks of every row of random runs, whose prompts end before speech, with
    its start or within it."""
    for n_vq in _CODEBOOKS:
        check_masks_of(small_config(n_vq), comparison)


def check_masks_of(config: DelayConfig, comparison: Comparison) -> None:
    """The same with a model's own ids."""
    generator = np.random.default_rng(0)
    start, gen = config.audio_start_token_id, config.audio_assistant_gen_slot_token_id
    for run in range(_RUNS):
        spoken = [[], [start], [start, *[gen] * run]][run % 3]
        state = DelayState.start(config, [config.im_start_token_id, *spoken], NO_LIMITS)
        rules = Rules(config, audio_length=len(spoken), is_audio=bool(spoken))
        what = f"{config.n_vq} codebooks, run {run}"
        if not _same_masks(comparison, what, state, rules, generator):
            return


def _same_masks(
    comparison: Comparison,
    what: str,
    state: DelayState,
    rules: Rules,
    generator: np.random.Generator,
) -> bool:
    """Draw text ids at random, as the rules have it; False where the state has it otherwise."""
    config = rules.config
    names = named_ids(config)
    for index in range(_ROWS):
        decision = state.decide()
        allowed = [text_id for text_id in names if is_allowed(decision, text_id)]
        drawn = _mask(list(decision.codebooks), config.n_vq)
        at = f"{what}, row {index}"
        comparison.add_ids(f"{at}: text ids", _ids(rules.text_ids()), _ids(allowed))
        comparison.add_ids(f"{at}: codebooks", _mask(rules.codebooks(), config.n_vq), drawn)
        going_on = [i for i in rules.text_ids() if i != config.im_end_token_id]
        text_id = int(generator.choice(going_on))
        if not is_allowed(decision, text_id):
            return False
        state, _ = state.advance(text_id, [0] * len(decision.codebooks))
        rules.advance(text_id)
    return True


def check_pad(comparison: Comparison) -> None:
    """A pad code is not drawn, however likely the heads make it."""
    config = small_config(4)
    logits = np.zeros((4, config.audio_table_size), np.float32)
    logits[:, :-1] = np.random.default_rng(1).standard_normal((4, config.audio_vocab_size))
    expected = logits[:, :-1].argmax(axis=1).astype(np.int32)
    logits[:, config.audio_pad_code] = 1e9
    decision = Decision(None, (), range(4))
    empty = CodeHistory(np.zeros((4, config.audio_table_size), np.uint8))
    greedy = DelaySampling(_GREEDY, _GREEDY, seed=0)
    comparison.add_ids("greedy", expected, draw_codes(logits, empty, decision, greedy, 0))
    hot = DelaySampling(_GREEDY, SamplingParams(temperature=5.0), seed=0)
    for step in range(50):
        drawn = draw_codes(logits, empty, decision, hot, step)
        comparison.require(bool((drawn < config.audio_pad_code).all()), "a pad code was drawn")


def check_penalty(comparison: Comparison) -> None:
    """Which codes a repetition penalty counts: codebook 0 its own, the others those of all others
    but 0 together; prompt included, each code once."""
    config, generator = small_config(4), np.random.default_rng(2)
    codes = generator.integers(config.audio_vocab_size, size=(300, 4))
    rows = np.concatenate([np.zeros((300, 1), np.int64), codes], axis=1).astype(np.int32)
    history = CodeHistory.of(config, rows[:200])
    for row in rows[200:]:
        history = history.after(row)
    own, others = set(codes[:, 0].tolist()), set(codes[:, 1:].reshape(-1).tolist())
    penalised = SamplingParams(temperature=0.0, repetition_penalty=_PENALTY)
    sampling = DelaySampling(_GREEDY, penalised, seed=0)
    decision = Decision(None, (), range(4))
    for draw in range(_DRAWS):
        logits = generator.standard_normal((4, config.audio_table_size)).astype(np.float32)
        expected = _by_formula(logits, own, others)
        found = draw_codes(logits, history, decision, sampling, 0)
        comparison.add_ids(f"draw {draw}", expected.argmax(axis=1), found)
        scores = _scores(logits, history, sampling, penalised)
        comparison.add(f"draw {draw}, penalised logits", expected, scores)


def check_text(comparison: Comparison) -> None:
    """Text ids are drawn among those allowed, with exactly so many as top-k says."""
    generator = np.random.default_rng(3)
    logits = generator.standard_normal(500).astype(np.float32)
    banned = tuple(np.argsort(-logits)[:3].tolist())
    decision = Decision(None, banned, range(0))
    sampling = DelaySampling(TEXT_SAMPLING, _GREEDY, seed=0)
    ordered = [i for i in np.argsort(-logits).tolist() if i not in banned]
    likeliest = set(ordered[: TEXT_SAMPLING.top_k])
    drawn = {draw_text(logits, decision, sampling, step) for step in range(400)}
    comparison.add_ids("banned or cut off", _ids([0]), _ids([len(drawn - likeliest)]))
    comparison.require(len(drawn) > 10, "the draws do not vary")
    ids, _ = kept(np.zeros(500, np.float32), None, TEXT_SAMPLING)
    comparison.add_ids("of equal logits", np.arange(TEXT_SAMPLING.top_k), ids)


def _penalised(value: float, is_counted: bool) -> float:
    if not is_counted:
        return value
    return value / _PENALTY if value > 0 else value * _PENALTY


def _by_formula(
    logits: NDArray[np.float32], own: set[int], others: set[int]
) -> NDArray[np.float64]:
    return np.array(
        [
            [_penalised(float(v), c in (own if q == 0 else others)) for c, v in enumerate(row)]
            for q, row in enumerate(logits[:, :-1])
        ]
    )


def _scores(
    logits: NDArray[np.float32],
    history: CodeHistory,
    sampling: DelaySampling,
    params: SamplingParams,
) -> NDArray[np.float32]:
    counted = history.counted(sampling.penalty_scope)[:, :-1]
    return np.stack(
        [kept(row, seen, params)[1] for row, seen in zip(logits[:, :-1], counted, strict=True)]
    )


def _mask(codebooks: list[int], n_vq: int) -> NDArray[np.int32]:
    mask = np.zeros(n_vq, np.int32)
    mask[codebooks] = 1
    return mask


def _ids(values: list[int]) -> NDArray[np.int32]:
    return np.array(values, np.int32)
