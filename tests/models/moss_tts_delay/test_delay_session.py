"""A session: what is cached, what it offers, and what it refuses."""

import numpy as np
import pytest
from delay_models import delay_config, likeliest_rows, random_rows, random_tensors, started

from mosstalk.compute.backend import ReferenceBackend
from mosstalk.compute.cpu.backend import CpuBackend
from mosstalk.errors import UsageError
from mosstalk.models.moss_tts_delay.model import DelayModel

ROWS = random_rows(24)


@pytest.fixture(scope="module")
def model() -> DelayModel:
    return DelayModel(delay_config(), random_tensors(delay_config()), CpuBackend(1))


def test_shapes_of_what_a_session_offers(model: DelayModel) -> None:
    session = started(model, ROWS, 60)
    assert session.text_logits().shape == (128,)
    assert session.slot_logits().shape == (2,)
    assert session.audio_logits().shape == (4, 33)
    assert session.step(ROWS[0]).shape == (64,)


def test_logits_agree_with_the_reference_backend(model: DelayModel) -> None:
    config = delay_config()
    other = DelayModel(config, random_tensors(config), ReferenceBackend())
    found, wanted = started(model, ROWS, 24), started(other, ROWS, 24)
    assert np.allclose(found.text_logits(), wanted.text_logits(), atol=1e-4)
    assert np.allclose(found.audio_logits(), wanted.audio_logits(), atol=1e-4)


def test_the_pad_code_can_never_be_drawn(model: DelayModel) -> None:
    logits = started(model, ROWS, 60).audio_logits()
    assert (logits[:, 32] == -np.inf).all() and np.isfinite(logits[:, :32]).all()


def test_logits_are_copies(model: DelayModel) -> None:
    """What a caller bans in them is not banned in the next row's."""
    session = started(model, ROWS, 60)
    wanted = session.text_logits(), session.slot_logits(), session.audio_logits()
    for logits in (session.text_logits(), session.slot_logits(), session.audio_logits()):
        logits[:] = -np.inf
    found = session.text_logits(), session.slot_logits(), session.audio_logits()
    assert all(np.array_equal(a, b) for a, b in zip(found, wanted, strict=True))


def test_rows_are_counted(model: DelayModel) -> None:
    session = started(model, ROWS, 60)
    likeliest_rows(session, model, 7)
    assert session.cached_positions == 31
    session.truncate(9)
    assert session.cached_positions == 9
    session.reset_cache()
    assert session.cached_positions == 0


def test_prefill_returns_the_rows_that_it_computed(model: DelayModel) -> None:
    session = started(model, ROWS, 60)
    whole = session.prefill(ROWS)
    assert whole.shape == (24, 64)
    assert np.array_equal(session.prefill(ROWS, reuse_rows=20), whole[20:])
    assert session.hidden is not None and np.array_equal(session.hidden, whole[-1])


@pytest.mark.parametrize("reuse", [-1, 24, 25])
def test_prefill_refuses_to_reuse_what_is_not_there(model: DelayModel, reuse: int) -> None:
    session = started(model, ROWS, 60)
    with pytest.raises(ValueError, match=f"cannot reuse {reuse} of 24 rows with 24 cached"):
        session.prefill(ROWS, reuse_rows=reuse)


def test_a_budget_beyond_the_models_reach_is_an_error(model: DelayModel) -> None:
    model.session().begin_generation(512)
    with pytest.raises(UsageError, match="513 rows are more than the model's 512; shorten"):
        model.session().begin_generation(513)


def test_rows_beyond_the_budget_are_an_error(model: DelayModel) -> None:
    session = started(model, ROWS, 25)
    session.step(ROWS[0])
    with pytest.raises(ValueError, match="1 rows do not fit after 25 of at most 25"):
        session.step(ROWS[0])


def test_logits_need_a_row_before_them(model: DelayModel) -> None:
    session = started(model, ROWS, 60)
    session.truncate(20)
    for logits in (session.text_logits, session.slot_logits, session.audio_logits):
        with pytest.raises(AssertionError, match="prefill comes before logits"):
            logits()
    session.step(ROWS[20])
    session.text_logits()


def test_begin_generation_starts_afresh_and_keeps_its_memory(model: DelayModel) -> None:
    session = started(model, ROWS, 60)
    wanted = likeliest_rows(session, model, 6)
    memory = session.state
    session.begin_generation(40)
    assert session.cached_positions == 0 and session.hidden is None
    assert session.state is memory
    session.prefill(ROWS)
    assert np.array_equal(likeliest_rows(session, model, 6), wanted)
    session.begin_generation(100)
    assert session.state.capacity == 100


def test_a_fork_is_independent(model: DelayModel) -> None:
    session = started(model, ROWS, 60)
    fork = session.fork(40)
    wanted = likeliest_rows(session, model, 6)
    session.reset_cache()
    assert np.array_equal(likeliest_rows(fork, model, 6), wanted)
    assert fork.state.capacity == 40
