"""A session: what is cached, what is drawn, and what it refuses."""

from dataclasses import replace

import numpy as np
import pytest
from nano_models import GREEDY, USUAL, Golden, frames_of, random_rows, started

from mosstalk.compute.backend import ReferenceBackend
from mosstalk.compute.cpu.backend import CpuBackend
from mosstalk.compute.state import State
from mosstalk.errors import UsageError
from mosstalk.models.moss_tts_nano.frame_decoder import FrameSampling
from mosstalk.models.moss_tts_nano.model import NanoModel

ROWS = random_rows(24)


@pytest.fixture
def model(nano_a: Golden) -> NanoModel:
    return nano_a.model(CpuBackend(1))


def test_a_seed_and_a_chunk_decide_the_codes(model: NanoModel) -> None:
    def drawn(sampling: FrameSampling) -> object:
        return frames_of(started(model, ROWS, 60), sampling, 10)[0].tolist()

    assert drawn(USUAL) == drawn(USUAL)
    assert drawn(USUAL) != drawn(replace(USUAL, seed=12))
    assert drawn(USUAL) != drawn(replace(USUAL, chunk=1))


def test_a_seed_draws_the_same_codes_on_both_backends(nano_a: Golden, model: NanoModel) -> None:
    wanted, _ = frames_of(started(nano_a.model(ReferenceBackend()), ROWS, 60), USUAL, 20)
    found, _ = frames_of(started(model, ROWS, 60), USUAL, 20)
    assert np.array_equal(found, wanted)


def test_codes_are_valid_and_rows_are_counted(model: NanoModel) -> None:
    session = started(model, ROWS, 60)
    frames, stopped = frames_of(session, USUAL, 20)
    assert ((frames >= 0) & (frames < 32)).all()
    assert session.cached_positions == len(ROWS) + len(frames)
    assert stopped or len(frames) == 20


def test_unused_codebooks_stay_empty(model: NanoModel) -> None:
    frames, _ = frames_of(started(model, ROWS, 60, num_codebooks=2), USUAL, 5)
    assert (frames[:, :2] < 32).all() and (frames[:, 2:] == 32).all()


def test_a_stop_adds_no_row(nano_a: Golden, model: NanoModel) -> None:
    """A gate pushed to "stop" by its bias: no codes, no row."""
    weights = dict(nano_a.checkpoint.tensors)
    bias, wte = weights["local_transformer.ln_f.bias"], weights["transformer.wte.weight"]
    way = 20 * (wte.to_float32()[7] - wte.to_float32()[9])
    weights[bias.name] = replace(bias, data=bias.to_float32() + way)
    stopping = NanoModel(nano_a.checkpoint.config, weights, CpuBackend(1))
    session = started(stopping, ROWS, 60)
    assert session.next_frame(FrameSampling(GREEDY, GREEDY, 0)) is None
    assert session.cached_positions == len(ROWS)


def test_a_prefill_starts_with_empty_sets_of_seen_codes(model: NanoModel) -> None:
    session = started(model, ROWS, 60)
    wanted, _ = frames_of(session, USUAL, 8)
    assert any(seen.any() for seen in session.state.seen)
    session.prefill(ROWS, reuse_rows=len(ROWS) - 1)
    assert np.array_equal(frames_of(session, USUAL, 8)[0], wanted)


def test_prefill_returns_the_rows_that_it_computed(model: NanoModel) -> None:
    session = started(model, ROWS, 60)
    whole = session.prefill(ROWS)
    assert whole.shape == (24, 64)
    assert np.array_equal(session.prefill(ROWS, reuse_rows=20), whole[20:])
    assert session.hidden is not None and np.array_equal(session.hidden, whole[-1])


@pytest.mark.parametrize("reuse", [-1, 24, 25])
def test_prefill_refuses_to_reuse_what_is_not_there(model: NanoModel, reuse: int) -> None:
    session = started(model, ROWS, 60)
    with pytest.raises(ValueError, match=f"cannot reuse {reuse} of 24 rows with 24 cached"):
        session.prefill(ROWS, reuse_rows=reuse)
    session.truncate(10)
    with pytest.raises(ValueError, match="cannot reuse 11 of 24 rows with 10 cached"):
        session.prefill(ROWS, reuse_rows=11)


def test_a_budget_beyond_the_models_reach_is_an_error(model: NanoModel) -> None:
    assert model.config.max_position_embeddings == 512
    model.session().begin_generation(512)
    with pytest.raises(UsageError, match="513 rows are more than the model's 512; shorten"):
        model.session().begin_generation(513)


def test_rows_beyond_the_budget_are_an_error(model: NanoModel) -> None:
    """They would overwrite the oldest rows, or have no memory at all."""
    with pytest.raises(ValueError, match="24 rows do not fit after 0 of at most 0"):
        model.session().prefill(ROWS)
    session = started(model, ROWS, 25)
    assert session.next_frame(USUAL) is not None
    with pytest.raises(ValueError, match="1 rows do not fit after 25 of at most 25"):
        session.next_frame(USUAL)
    with pytest.raises(ValueError, match="1 rows do not fit after 25 of at most 25"):
        session.step(9, [1, 2, 3, 4])
    with pytest.raises(ValueError, match="24 rows do not fit"):
        model.global_transformer.run(State(model.spec, 23), ROWS)


def test_a_frame_needs_a_row_before_it(model: NanoModel) -> None:
    session = started(model, ROWS, 60)
    session.truncate(20)
    with pytest.raises(AssertionError, match="prefill comes before"):
        session.next_frame(USUAL)
    session.step(9, [1, 2, 3, 4])
    assert session.next_frame(USUAL) is not None


def test_begin_generation_starts_afresh_and_keeps_its_memory(model: NanoModel) -> None:
    session = started(model, ROWS, 60)
    wanted, _ = frames_of(session, USUAL, 6)
    memory = session.state
    session.begin_generation(40)
    assert session.cached_positions == 0 and session.hidden is None
    assert session.state is memory
    session.prefill(ROWS)
    assert np.array_equal(frames_of(session, USUAL, 6)[0], wanted)
    session.begin_generation(100)
    assert session.state.capacity == 100


def test_a_fork_is_independent(model: NanoModel) -> None:
    session = started(model, ROWS, 60)
    fork = session.fork(40)
    wanted, _ = frames_of(session, USUAL, 6)
    session.reset_cache()
    assert np.array_equal(frames_of(fork, USUAL, 6)[0], wanted)
    assert fork.state.capacity == 40
