"""The promise of exactness for the delay family: the same bits whatever way rows are computed."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from delay_models import Ints, delay_config, likeliest_rows, random_rows, random_tensors, started
from instruction_sets import KERNELS
from numpy.typing import NDArray

from mosstalk.checkpoint.storage import StorageType
from mosstalk.compute.cpu.backend import CpuBackend
from mosstalk.compute.state import State
from mosstalk.models.moss_tts_delay.model import DelayModel
from mosstalk.models.moss_tts_delay.session import DelaySession

Make = Callable[[int], DelayModel]  # a model on so many threads
ROWS = 150  # more than a call of the backbone holds
STEPS = 8
STORAGES = tuple(storage for storage in StorageType if storage is not StorageType.NATIVE)
NARROW = {"hidden": 40, "heads": 6, "head_dim": 10, "inner": 56}  # q8_0 has no whole blocks there
VARIANTS = [
    *((storage, name, {}) for storage in StorageType for name in KERNELS),
    *((StorageType.Q8_0, name, NARROW) for name in KERNELS),
]


@pytest.fixture(params=VARIANTS, ids=lambda v: f"{v[0]}-{v[1]}-{'narrow' if v[2] else 'wide'}")
def make(request: pytest.FixtureRequest) -> Make:
    """Models of a storage type, instruction set and size; "native" is a checkpoint of bf16."""
    storage, kernels, sizes = request.param
    config = delay_config(**sizes)
    held = StorageType.BF16 if storage is StorageType.NATIVE else StorageType.F32
    tensors = random_tensors(config, held)
    return lambda threads: DelayModel(config, tensors, CpuBackend(threads, kernels), storage)


def _caches(model: DelayModel, state: State) -> list[NDArray[np.float32]]:
    layers = range(model.config.num_hidden_layers)
    return [
        cached(layer) for layer in layers for cached in (state.cached_keys, state.cached_values)
    ]


def _same(found: list[NDArray[np.float32]], wanted: list[NDArray[np.float32]]) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(found, wanted, strict=True))


def _logits(session: DelaySession) -> list[NDArray[np.float32]]:
    return [session.text_logits(), session.slot_logits(), session.audio_logits()]


def test_exact_prefill_whatever_the_chunks_and_threads(make: Make) -> None:
    model, rows = make(1), random_rows(ROWS)
    state = State(model.spec, ROWS)
    hidden = model.backbone.run(state, rows)
    caches = _caches(model, state)
    for calls_of in (1, 5, 64):
        other = State(model.spec, 3 * ROWS)
        assert np.array_equal(model.backbone.run(other, rows, calls_of), hidden)
        assert _same(_caches(model, other), caches)
    for threads in (2, 3):
        other = State(model.spec, ROWS)
        assert np.array_equal(make(threads).backbone.run(other, rows), hidden)
        assert _same(_caches(model, other), caches)


def test_exact_prefill_beside_another_stream(make: Make) -> None:
    model, rows, others = make(2), random_rows(40), random_rows(40, seed=6)
    alone = model.backbone.run(State(model.spec, 40), rows)
    state = State(model.spec, 40, num_streams=2)
    parts = []
    for start in range(0, 40, 8):
        model.backbone.run(state, others[start : start + 8], stream=0)
        parts.append(model.backbone.run(state, rows[start : start + 8], stream=1))
    assert np.array_equal(np.concatenate(parts), alone)


def test_exact_logits_and_rows_after_any_way_to_the_same_rows(make: Make) -> None:
    model, rows = make(1), random_rows(ROWS)
    budget = ROWS + STEPS
    session = started(model, rows, budget)
    logits = _logits(session)
    wanted = likeliest_rows(session, model, STEPS)

    def check(other: DelaySession, owner: DelayModel = model) -> None:
        assert _same(_logits(other), logits)
        assert np.array_equal(likeliest_rows(other, owner, STEPS), wanted)

    check(started(model, rows, 2 * budget, prefill_mode="single_row"))
    threaded = make(2)
    check(started(threaded, rows, budget), threaded)
    fork = started(model, rows[:100], 100).fork(budget)
    fork.prefill(rows, reuse_rows=100)
    check(fork)
    fork.prefill(rows, reuse_rows=60)  # the same session again, after its own rows
    check(fork)
    fork.truncate(ROWS - 1)
    fork.prefill(rows, reuse_rows=ROWS - 1)
    check(fork)
    fresh = model.session()
    fresh.load(started(model, rows, budget).save())
    check(fresh)
    steps = started(model, rows[:140], budget)
    for row in rows[140:]:
        steps.step(row)
    check(steps)


def test_exact_rows_after_a_fork_or_a_save_midway(make: Make) -> None:
    model, rows = make(2), random_rows(30)
    session = started(model, rows, 60)
    likeliest_rows(session, model, 5)
    fork, saved = session.fork(50), session.save()
    wanted = likeliest_rows(session, model, STEPS)
    assert np.array_equal(likeliest_rows(fork, model, STEPS), wanted)
    loaded = model.session()
    loaded.load(saved)
    assert np.array_equal(likeliest_rows(loaded, model, STEPS), wanted)


def test_exact_steps_and_the_same_rows_as_a_prompt(make: Make) -> None:
    """What incremental generation computed equals one pass over everything."""
    model, rows = make(1), random_rows(30)
    session = started(model, rows, 60)
    generated = likeliest_rows(session, model, STEPS)
    whole = started(model, np.concatenate([rows, generated]), 60)
    assert _same(_logits(session), _logits(whole))
    assert _same(_caches(model, session.state), _caches(model, whole.state))


def test_exact_slot_logits_are_those_of_the_text_head(make: Make) -> None:
    session = started(make(2), random_rows(20), 20)
    assert np.array_equal(session.slot_logits(), session.text_logits()[[9, 10]])


@pytest.mark.parametrize("storage", STORAGES)
def test_exact_packed_weights_equal_their_float32_values(storage: StorageType) -> None:
    config, rows = delay_config(), random_rows(50)
    packed = random_tensors(config, storage)
    wide = {
        name: replace(tensor, storage=StorageType.F32, data=tensor.to_float32())
        for name, tensor in packed.items()
    }
    found, wanted = (
        _hidden_and_logits(DelayModel(config, tensors, CpuBackend(1)), rows)
        for tensors in (packed, wide)
    )
    assert _same(found, wanted)


def _hidden_and_logits(model: DelayModel, rows: Ints) -> list[NDArray[Any]]:
    session = model.session()
    session.begin_generation(len(rows))
    return [session.prefill(rows), *_logits(session)]
