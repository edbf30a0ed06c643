"""The delay family against the numbers of OpenMOSS's own code (delay_small, delay_vg).

Ids are compared for equality.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np
import pytest
from delay_models import Golden, Ints, started
from numpy.typing import NDArray
from vulkan_device import backend_named

from mosstalk.compute.sampling import SamplingParams
from mosstalk.compute.state import State
from mosstalk.models.moss_tts_delay.backbone import Backbone
from mosstalk.models.moss_tts_delay.config import DelayConfig
from mosstalk.models.moss_tts_delay.delay_state import DelayState, Limits
from mosstalk.models.moss_tts_delay.model import DelayModel
from mosstalk.models.moss_tts_delay.sampling import (
    CodeHistory,
    DelaySampling,
    draw_codes,
    draw_text,
)
from mosstalk.models.moss_tts_delay.session import DelaySession

pytestmark = [
    pytest.mark.parametrize("golden", ["delay_small", "delay_vg"], indirect=True),
    pytest.mark.parametrize("backend", ["cpu", "reference", "vulkan", "cuda"]),
]
TOLERANCE = 1e-5  # of the largest value; the reference's own ways to compute differ by 1e-6
GREEDY = SamplingParams(temperature=0)
NO_LIMITS = Limits(max_frames=10_000, max_text_rows=10_000)  # as the reference


def _model(golden: Golden, backend: str) -> DelayModel:
    return golden.model(backend_named(backend))


def _near(found: NDArray[Any], wanted: NDArray[Any]) -> bool:
    assert found.shape == wanted.shape
    return bool(np.abs(found - wanted).max() <= TOLERANCE * np.abs(wanted).max())


def test_golden_hidden_states_of_every_block(golden: Golden, backend: str) -> None:
    model, rows, arrays = _model(golden, backend), golden.rows(), golden.arrays
    tapped = Backbone(model.config, model.weights, model.backend, taps=True)
    hidden = tapped.run(State(model.spec, len(rows)), rows)
    layers = model.config.num_hidden_layers
    for i in range(layers):  # the row embedding, then after each block
        found = tapped.program.array(tapped.outputs[f"hidden.{i}"])[: len(rows)]
        assert _near(found, arrays[f"hidden_{i}"][0]), i
    assert _near(hidden, arrays[f"hidden_{layers}"][0])  # the original's last is after the norm


def test_golden_hidden_states_one_row_at_a_time(golden: Golden, backend: str) -> None:
    model, rows = _model(golden, backend), golden.rows()
    session = started(model, rows[:1], len(rows))
    assert session.hidden is not None
    found = np.stack([session.hidden, *(session.step(row) for row in rows[1:])])
    assert _near(found, golden.arrays[f"hidden_{model.config.num_hidden_layers}"][0])


def test_golden_logits_after_every_row(golden: Golden, backend: str) -> None:
    """The text's (delay_vg keeps those of the last row only), the slots' among them, the codes'."""
    model, rows, arrays = _model(golden, backend), golden.rows(), golden.arrays
    config, pad = model.config, model.config.audio_pad_code
    slots = [config.audio_assistant_gen_slot_token_id, config.audio_assistant_delay_slot_token_id]
    text = arrays["logits_text"].reshape(-1, config.vocab_size)
    first_text = len(rows) - len(text)
    session = model.session()
    session.begin_generation(len(rows))
    for i, row in enumerate(rows):
        session.step(row)
        found, wanted = session.audio_logits(), arrays["logits_audio"][0, i]
        assert _near(found[:, :pad], wanted[:, :pad]), i
        assert (found[:, pad] == -np.inf).all() and (wanted[:, pad] == -np.inf).all()
        if i >= first_text:
            assert _near(session.text_logits(), text[i - first_text]), i
            same = _near if backend == "cuda" else np.array_equal
            assert same(session.slot_logits(), session.text_logits()[slots])


def _likeliest(
    session: DelaySession, prompt: Ints, penalty: float, config: DelayConfig
) -> Iterator[Ints]:
    """Rows, each the likeliest that the state allows, until the model stops."""
    sampling = DelaySampling(GREEDY, replace(GREEDY, repetition_penalty=penalty), seed=0)
    state = DelayState.start(config, prompt[:, 0], NO_LIMITS)
    history = CodeHistory.of(config, prompt)
    while state.stop is None:
        decision = state.decide()
        is_open = decision.allowed is None
        logits = session.text_logits() if is_open else session.slot_logits()
        text_id = draw_text(logits, decision, sampling, state.step)
        codes = draw_codes(session.audio_logits(), history, decision, sampling, state.step)
        state, row = state.advance(text_id, codes)
        history = history.after(row)
        yield row
        session.step(row)


def _prompts(golden: Golden, name: str) -> list[Ints]:
    """What the original was given in a run, sequence by sequence, without padding."""
    if not name.startswith(("batch", "single")):
        return [golden.rows("prompt" if name == "greedy_text_start" else "audio_prompt")]
    pairs = zip(golden.arrays["batch_prompt"], golden.arrays["batch_mask"], strict=True)
    sequences = [rows[mask].astype(np.int32) for rows, mask in pairs]
    return sequences if name == "batch" else sequences[1:]


@pytest.mark.parametrize(
    ("name", "penalty"),
    [
        ("greedy_text_start", 1.0),
        ("greedy_audio", 1.0),
        ("greedy_audio_rep1.1", 1.1),
        ("batch", 1.0),
        ("single_b", 1.0),
    ],
)
def test_golden_greedy_rows(golden: Golden, backend: str, name: str, penalty: float) -> None:
    """All rows that the original returns, text and codes; a batch's one sequence at a time."""
    model = _model(golden, backend)
    for i, prompt in enumerate(_prompts(golden, name)):
        returned, kept = golden.arrays[f"{name}_rows_{i}"], golden.arrays[f"{name}_start"][i]
        given, wanted = np.split(returned, [int(kept)])  # it returns the prompt's audio too
        assert np.array_equal(given, prompt[len(prompt) - len(given) :])
        session = started(model, prompt, len(prompt) + len(wanted))
        rows = _likeliest(session, prompt, penalty, model.config)
        assert np.array_equal(list(islice(rows, len(wanted))), wanted)
