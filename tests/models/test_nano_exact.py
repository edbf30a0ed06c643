"""The promise of exactness for a whole model: the same bits whatever way rows are computed."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from instruction_sets import KERNELS
from nano_models import (
    USUAL,
    Golden,
    Ints,
    frames_of,
    nano_config,
    random_rows,
    random_tensors,
    started,
)
from numpy.typing import NDArray

from mosstalk.checkpoint.storage import StorageType
from mosstalk.compute.cpu.backend import CpuBackend
from mosstalk.compute.seats import Seat, Seats
from mosstalk.compute.state import State
from mosstalk.models.moss_tts_nano.model import NanoModel
from mosstalk.models.moss_tts_nano.session import NanoSession, next_frames

Make = Callable[[int], NanoModel]  # a model on so many threads
ROWS = 200  # more than a call of the global transformer holds
FRAMES = 12
STORAGES = tuple(storage for storage in StorageType if storage is not StorageType.NATIVE)


def _variants() -> list[Any]:
    """Width, storage and instruction set; "native" is a checkpoint that holds f16."""
    wide = [(96, StorageType.Q8_0, name) for name in KERNELS]
    each = [(64, storage, name) for storage in StorageType for name in KERNELS]
    golden = [(0, storage, "") for storage in STORAGES]
    return [pytest.param(v, id=f"{v[0] or 'nano_a'}-{v[1]}-{v[2]}") for v in each + wide + golden]


@pytest.fixture(params=_variants())
def make(golden_dir: Path, nano_a: Golden, request: pytest.FixtureRequest) -> Make:
    width, storage, kernels = request.param
    if width == 0:
        return lambda threads: nano_a.model(CpuBackend(threads), storage)
    config = nano_config(golden_dir, hidden=width)
    held = StorageType.F16 if storage is StorageType.NATIVE else StorageType.F32
    tensors = random_tensors(config, held)
    return lambda threads: NanoModel(config, tensors, CpuBackend(threads, kernels), storage)


def _caches(model: NanoModel, state: State) -> list[NDArray[np.float32]]:
    layers = range(model.config.n_layer)
    return [
        cached(layer) for layer in layers for cached in (state.cached_keys, state.cached_values)
    ]


def _same(found: list[NDArray[np.float32]], wanted: list[NDArray[np.float32]]) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(found, wanted, strict=True))


def _frames(session: NanoSession, count: int = FRAMES) -> Ints:
    frames, _ = frames_of(session, USUAL, count)
    assert len(frames) >= 5  # or the test shows little
    return frames


def test_exact_prefill_whatever_the_chunks_threads_and_neighbours(make: Make) -> None:
    model, rows = make(1), random_rows(ROWS)
    state = State(model.spec, ROWS)
    hidden = model.global_transformer.run(state, rows)
    caches = _caches(model, state)
    for calls_of in (1, 5, 64):
        other = State(model.spec, 3 * ROWS)
        assert np.array_equal(model.global_transformer.run(other, rows, calls_of), hidden)
        assert _same(_caches(model, other), caches)
    for threads in (2, 3):
        other = State(model.spec, ROWS)
        found = make(threads).global_transformer.run(other, rows)
        assert np.array_equal(found, hidden) and _same(_caches(model, other), caches)


def test_exact_prefill_beside_another_stream(make: Make) -> None:
    model, rows, others = make(2), random_rows(40), random_rows(40, seed=6)
    alone = model.global_transformer.run(State(model.spec, 40), rows)
    state = State(model.spec, 40, num_streams=2)
    parts = []
    for start in range(0, 40, 8):
        model.global_transformer.run(state, others[start : start + 8], stream=0)
        parts.append(model.global_transformer.run(state, rows[start : start + 8], stream=1))
    assert np.array_equal(np.concatenate(parts), alone)


def test_exact_frames_after_any_way_to_the_same_rows(make: Make) -> None:
    model, rows = make(1), random_rows(ROWS)
    session = started(model, rows, ROWS + FRAMES)
    assert session.hidden is not None
    hidden = session.hidden.copy()
    wanted = _frames(session)

    def check(other: NanoSession) -> None:
        assert other.hidden is not None and np.array_equal(other.hidden, hidden)
        assert np.array_equal(_frames(other), wanted)

    check(started(model, rows, 2 * ROWS, prefill_mode="single_row"))
    check(started(make(2), rows, ROWS + FRAMES))
    prefix = started(model, rows[:150], 150)
    fork = prefix.fork(ROWS + FRAMES)
    fork.prefill(rows, reuse_rows=150)
    check(fork)
    fork.prefill(rows, reuse_rows=90)  # the same session again, after its own frames
    check(fork)
    fork.truncate(ROWS - 1)
    fork.prefill(rows, reuse_rows=ROWS - 1)
    check(fork)
    fresh = model.session()
    fresh.load(started(model, rows, ROWS + FRAMES).save())
    check(fresh)
    steps = started(model, rows[:190], ROWS + FRAMES)
    for row in rows[190:]:
        steps.step(int(row[0]), row[1:].tolist())
    check(steps)


def test_exact_frames_after_a_fork_or_a_save_midway(make: Make) -> None:
    """The sets of seen codes and the count of frames come along."""
    model, rows = make(2), random_rows(30)
    session = started(model, rows, 100)
    _frames(session, 5)
    fork, saved = session.fork(70), session.save()
    wanted = _frames(session)
    assert np.array_equal(_frames(fork), wanted)
    loaded = model.session()
    loaded.load(saved)
    assert np.array_equal(_frames(loaded), wanted)


def test_exact_hidden_of_frames_and_of_the_same_rows_as_a_prompt(make: Make) -> None:
    """What incremental generation computed equals one pass over everything."""
    model, rows = make(1), random_rows(30)
    session = started(model, rows, 60)
    frames = _frames(session)
    slot = model.config.audio_assistant_slot_token_id
    generated = np.insert(frames, 0, slot, axis=1)
    whole = started(model, np.concatenate([rows, generated]), 60)
    assert session.hidden is not None and whole.hidden is not None
    assert np.array_equal(session.hidden, whole.hidden)
    assert _same(_caches(model, session.state), _caches(model, whole.state))


def test_exact_packed_weights_equal_their_float32_values(golden_dir: Path) -> None:
    config, rows = nano_config(golden_dir), random_rows(50)
    for storage in STORAGES:
        packed = random_tensors(config, storage)
        wide = {
            name: replace(tensor, storage=StorageType.F32, data=tensor.to_float32())
            for name, tensor in packed.items()
        }
        found, wanted = (
            started(NanoModel(config, tensors, CpuBackend(1)), rows, 50).prefill(rows)
            for tensors in (packed, wide)
        )
        assert np.array_equal(found, wanted)


@pytest.mark.parametrize("threads", [1, 2])
def test_exact_frames_of_sessions_that_advance_together(make: Make, threads: int) -> None:
    """Seats of one state, of different prompts and seeds, that join and leave at other frames."""
    model = make(threads)
    prompts = [random_rows(20 + 9 * i, seed=i) for i in range(5)]
    samplings = [replace(USUAL, seed=i) for i in range(5)]
    wanted = [
        frames_of(started(make(1), rows, 80), sampling, FRAMES)[0]
        for rows, sampling in zip(prompts, samplings, strict=True)
    ]
    seats = Seats(State(model.spec, 80, num_streams=3))
    found: list[list[Ints]] = [[] for _ in prompts]
    running: dict[int, tuple[NanoSession, Seat]] = {}
    waiting = list(range(5))
    while waiting or running:
        seat = seats.take() if waiting else None
        if seat is not None:
            index = waiting.pop(0)
            prefix = started(model, prompts[index], len(prompts[index]))
            running[index] = prefix.fork(seat=seat), seat
        sessions = [session for session, _ in running.values()]
        drawn = next_frames(sessions, [samplings[index] for index in running])
        for index, codes in zip(list(running), drawn, strict=True):
            if codes is not None:
                found[index].append(codes)
            if codes is None or len(found[index]) == FRAMES:
                seats.give_back(running.pop(index)[1])
    for codes, expected in zip(found, wanted, strict=True):
        assert [frame.tolist() for frame in codes] == expected.tolist()
    assert sum(map(len, wanted)) >= 5  # or the test shows little
    assert seats.num_free == 3
