"""Large activations, which published checkpoints have, and damaged weights (spec 3.5)."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from delay_models import delay_config, random_rows, random_tensors, started

from mosstalk.checkpoint.storage import StorageType, from_float32
from mosstalk.compute.backend import Backend, ReferenceBackend
from mosstalk.compute.cpu.backend import CpuBackend
from mosstalk.compute.seats import Seat
from mosstalk.compute.state import State
from mosstalk.errors import CheckpointError
from mosstalk.models.moss_tts_delay.backbone import Backbone
from mosstalk.models.moss_tts_delay.model import DelayModel
from mosstalk.models.moss_tts_delay.session import step_together

SINK = 1.69e5  # as measured in MOSS-VoiceGenerator; float16 ends at 65504
CHANNEL = 3
ROWS = random_rows(40)


def _largest_sink(model: DelayModel, layer: int = 1) -> float:
    """The largest value of the channel after some blocks."""
    tapped = Backbone(model.config, model.weights, model.backend, taps=True)
    tapped.run(State(model.spec, len(ROWS)), ROWS)
    after = tapped.program.array(tapped.outputs[f"hidden.{layer}"])
    return float(np.abs(after[: len(ROWS), CHANNEL]).max())


def _sink_tensors(config: dict[str, Any]) -> dict[str, Any]:
    """Weights, all within the range of float16, whose first block makes a sink of one channel."""
    tensors = dict(random_tensors(config))
    name = "language_model.layers.0.mlp.down_proj.weight"
    values = tensors[name].to_float32().copy()
    values[CHANNEL] *= np.float32(1e4)
    for _ in range(2):  # the second time from near its aim: the rest of the channel adds little
        tensors[name] = from_float32(name, values.copy(), StorageType.F32)
        values[CHANNEL] *= SINK / _largest_sink(DelayModel(config, tensors, CpuBackend(1)))
    assert np.abs(values).max() < 65504
    return tensors


@pytest.mark.parametrize("storage", [StorageType.F16, StorageType.BF16, StorageType.Q8_0])
def test_a_sink_beyond_float16_leaves_packed_weights_unharmed(storage: StorageType) -> None:
    """Activations are float32: the hidden vectors are finite, and those of exact sums.

    Within 1e-4, as backends must agree: the channel makes a rounding of 1e-7 some 1e5 as large.
    """
    config = delay_config()
    tensors = _sink_tensors(config)

    def hidden(backend: Backend) -> Any:
        return started(DelayModel(config, tensors, backend, storage), ROWS, 40).prefill(ROWS)

    found, wanted = hidden(CpuBackend(2)), hidden(ReferenceBackend())
    sink = _largest_sink(DelayModel(config, tensors, CpuBackend(1), storage))
    assert abs(sink - SINK) < 0.02 * SINK
    assert np.isfinite(found).all()
    assert np.abs(found - wanted).max() <= 1e-4 * np.abs(wanted).max()


def _damaged(config: dict[str, Any], name: str, row: int, value: float) -> DelayModel:
    tensors = dict(random_tensors(config))
    values = tensors[name].to_float32().copy()
    values[row, 0] = value
    tensors[name] = replace(tensors[name], data=values)
    return DelayModel(config, tensors, CpuBackend(2))


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_damaged_layer_is_named(value: float) -> None:
    name = "language_model.layers.1.mlp.down_proj.weight"
    model = _damaged(delay_config(layers=3), name, 5, value)
    with pytest.raises(CheckpointError, match="row 0 becomes .* in layer 1; the weights are dam"):
        started(model, ROWS, 40)


def test_a_damaged_row_is_named_in_a_long_prompt_and_in_a_step() -> None:
    """The rows before it stay cached, and the session goes on without it."""
    model = _damaged(delay_config(), "language_model.embed_tokens.weight", 10, np.nan)
    rows = random_rows(150)
    assert (rows[:, 0] != 10).all()
    session = started(model, rows, 200)
    wanted = session.text_logits()
    bad = rows[140].copy()
    bad[0] = 10
    with pytest.raises(CheckpointError, match="row 150 becomes infinite or no number in the emb"):
        session.step(bad)
    assert session.cached_positions == 150
    with pytest.raises(CheckpointError, match="row 140 becomes infinite or no number in the emb"):
        session.prefill(np.concatenate([rows[:140], bad[None], rows[141:]]))
    session.prefill(rows, reuse_rows=session.cached_positions)
    assert np.array_equal(session.text_logits(), wanted)


def test_a_damaged_row_is_the_fault_of_its_own_stream() -> None:
    model = _damaged(delay_config(), "language_model.embed_tokens.weight", 10, np.nan)
    rows = random_rows(30)
    state = State(model.spec, 40, num_streams=3)
    sessions = [started(model, rows[: 20 + i], 40).fork(seat=Seat(state, i)) for i in range(3)]
    good, bad = rows[25], rows[25].copy()
    bad[0] = 10
    errors = step_together(sessions, [good, bad, good])
    assert errors[0] is None and errors[2] is None
    assert isinstance(errors[1], CheckpointError)
    assert str(errors[1]).startswith("row 21 becomes infinite or no number in the emb")
    assert state.lengths == [21, 21, 23]
    for i in (0, 2):
        alone = started(model, np.concatenate([rows[: 20 + i], good[None]]), 40)
        assert np.array_equal(sessions[i].audio_logits(), alone.audio_logits())


def test_a_damaged_final_norm_is_named() -> None:
    config = delay_config()
    tensors = dict(random_tensors(config))
    gains = np.full(64, np.inf, np.float32)
    tensors["language_model.norm.weight"] = replace(
        tensors["language_model.norm.weight"], data=gains
    )
    with pytest.raises(CheckpointError, match="in the final norm; the weights are damaged"):
        started(DelayModel(config, tensors, CpuBackend(1)), ROWS, 40)
