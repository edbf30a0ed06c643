"""MOSS-TTS-Nano against the numbers of OpenMOSS's own code (tests/golden).

Ids are compared for equality. The smallest gap between the reference's two best logits is 3e-4
(nano_b), some hundred times what rounding moves them.
"""

from typing import Any

import numpy as np
import pytest
from nano_models import GREEDY, Golden, frames_of, started
from numpy.typing import NDArray
from vulkan_device import backend_named

from mosstalk.compute.sampling import SamplingParams
from mosstalk.compute.state import State
from mosstalk.models.moss_tts_nano.frame_decoder import FrameSampling
from mosstalk.models.moss_tts_nano.global_transformer import GlobalTransformer
from mosstalk.models.moss_tts_nano.model import NanoModel

pytestmark = [
    pytest.mark.parametrize("golden", ["nano_a", "nano_b", "nano_c"], indirect=True),
    pytest.mark.parametrize("backend", ["cpu", "reference", "vulkan", "cuda"]),
]
TOLERANCE = 1e-5  # of the largest value; the reference's own ways to compute differ by 1e-6
GREEDY_FRAMES = FrameSampling(GREEDY, GREEDY, seed=0)


def _model(golden: Golden, backend: str) -> NanoModel:
    return golden.model(backend_named(backend))


def _near(found: NDArray[Any], wanted: NDArray[Any]) -> bool:
    assert found.shape == wanted.shape
    return bool(np.abs(found - wanted).max() <= TOLERANCE * np.abs(wanted).max())


def test_golden_hidden_states_of_every_block(golden: Golden, backend: str) -> None:
    model, rows, arrays = _model(golden, backend), golden.rows(), golden.arrays
    tapped = GlobalTransformer(model.config, model.weights, model.backend, taps=True)
    hidden = tapped.run(State(model.spec, len(rows)), rows)
    assert _near(hidden, arrays["full_global_hidden"][0])

    def tap(block: int) -> NDArray[np.float32]:
        found: NDArray[np.float32] = tapped.program.array(tapped.outputs[f"hidden.{block}"])
        return found[: len(rows)]

    assert _near(tap(0), arrays["inputs_embeds"][0])
    layers = model.config.n_layer
    for block in range(layers):
        assert _near(tap(block), arrays[f"full_hidden_{block}"][0]), block
    assert _near(hidden, arrays[f"full_hidden_{layers}"][0])  # the original's last is after ln_f


def test_golden_keys_and_values(golden: Golden, backend: str) -> None:
    model, rows = _model(golden, backend), golden.rows()
    state = State(model.spec, 64)
    model.global_transformer.run(state, rows)
    for layer in range(model.config.n_layer):
        assert _near(state.cached_keys(layer), golden.arrays[f"full_key_{layer}"][0])
        assert _near(state.cached_values(layer), golden.arrays[f"full_value_{layer}"][0])


def test_golden_rows_one_at_a_time(golden: Golden, backend: str) -> None:
    model, rows = _model(golden, backend), golden.rows()
    hidden = model.global_transformer.run(State(model.spec, len(rows)), rows, calls_of=1)
    assert _near(hidden, golden.arrays["step_global_hidden"][0])


@pytest.mark.parametrize(
    ("name", "penalty", "codebooks", "prompt"),
    [
        ("greedy", 1.0, None, "prompt_rows"),
        ("greedy_long", 1.0, None, "prompt_rows"),
        ("greedy_rep1.2", 1.2, None, "prompt_rows"),
        ("greedy_nq3", 1.0, 3, "prompt_rows"),
        ("eos", 1.0, None, "eos_rows"),
    ],
)
def test_golden_greedy_ids_and_stop(
    golden: Golden, backend: str, name: str, penalty: float, codebooks: int | None, prompt: str
) -> None:
    """The frames of the original, and a stop of its own where the original stopped."""
    wanted = golden.arrays[f"{name}_ids"][0]
    rows = golden.rows(prompt)
    stops = len(golden.arrays[f"{name}_text_logits"]) == len(wanted) + 1
    session = started(
        _model(golden, backend), rows, len(rows) + len(wanted) + 1, num_codebooks=codebooks
    )
    audio = SamplingParams(temperature=0, repetition_penalty=penalty)
    sampling = FrameSampling(GREEDY, audio, seed=0)
    found, stopped = frames_of(session, sampling, len(wanted) + stops)
    assert np.array_equal(found, wanted)
    assert stopped == stops


def test_golden_some_run_stops_by_itself(golden: Golden, backend: str) -> None:
    """nano_a never does: what the tests above say of stops rests on nano_b and nano_c."""
    model, arrays = _model(golden, backend), golden.arrays
    stops = len(arrays["eos_text_logits"]) > arrays["eos_ids"].shape[1]
    assert stops == (model.config.n_vq == 16)


def test_golden_logits_of_every_frame(golden: Golden, backend: str) -> None:
    model, rows = _model(golden, backend), golden.rows()
    session = started(model, rows, len(rows) + 9)
    decoder = model.frame_decoder(model.config.n_vq)
    # The head is tied: the gate's logits are products with the text embedding.
    wte = model.weights.wte.to_float32()
    gate_ids = [model.config.audio_assistant_slot_token_id, model.config.audio_end_token_id]
    for frame, wanted in enumerate(golden.arrays["greedy_audio_logits"]):
        assert session.next_frame(GREEDY_FRAMES) is not None
        for q in range(model.config.n_vq):
            found = decoder.program.array(decoder.outputs[f"logits.{q}"])[0]
            assert _near(found, wanted[q, 0]), (frame, q)
        text = golden.arrays["greedy_text_logits"][frame, 0]
        assert _near(decoder.local_hidden()[0] @ wte[gate_ids].T, text[gate_ids])


@pytest.mark.parametrize("name", ["batch", "batch_eos"])
def test_golden_batches_one_sequence_at_a_time(golden: Golden, backend: str, name: str) -> None:
    """Each sequence alone, without its padding, gives the ids that it had in the batch."""
    model = _model(golden, backend)
    pad = model.config.audio_pad_token_id
    sequences = (golden.arrays[f"{name}_{part}"] for part in ("rows", "mask", "ids"))
    for rows, mask, ids in zip(*sequences, strict=True):
        wanted = ids[(ids != pad).any(axis=1)]
        prompt = rows[mask].astype(np.int32)
        stops = len(wanted) < len(ids)
        session = started(model, prompt, len(prompt) + len(ids) + 1)
        found, stopped = frames_of(session, GREEDY_FRAMES, len(wanted) + stops)
        assert np.array_equal(found, wanted)
        assert stopped == stops
