"""States and buffers that live in a device's memory, seen from the host."""

import gc

import numpy as np
import pytest
from compute_programs import AttentionBench, outputs_of, random_floats, random_weight
from cuda_device import cuda_backend, need_torch

from mosstalk.compute.backend import ReferenceBackend
from mosstalk.compute.cpu.backend import CpuBackend
from mosstalk.compute.ops import RopePairs
from mosstalk.compute.program import Program
from mosstalk.compute.state import CacheSpec, State

need_torch()
import torch  # noqa: E402

from mosstalk.compute.cuda.caches import MemoryPool  # noqa: E402

CACHE, RING = CacheSpec(2, 16), CacheSpec(2, 16, window=5)


class SimpleOwner:
    """Something that a memory belongs to."""


def _bench(cache: CacheSpec = CACHE) -> AttentionBench:
    return AttentionBench(cuda_backend(), cache, 4, 4, 60)


def _filled(bench: AttentionBench, rows: int) -> State:
    state = bench.state()
    bench.sequence(random_floats(1, 60, bench.width)[:rows], 4, state)
    state.lengths[0] = rows
    return state


def _next(bench: AttentionBench, state: State) -> list[float]:
    row = random_floats(2, 1, bench.width)
    found: list[float] = bench.call(state, row, np.array([state.lengths[0]], np.int32))[0].tolist()
    return found


def test_cuda_keys_and_values_come_back_to_the_host() -> None:
    bench = _bench()
    state = _filled(bench, 37)
    x = random_floats(1, 60, bench.width)[:37]
    assert np.array_equal(state.cached_keys(0), x[:, 64:96].reshape(37, 2, 16))
    assert np.array_equal(state.cached_values(0), x[:, 96:].reshape(37, 2, 16))


@pytest.mark.parametrize("cache", [CACHE, RING])
def test_cuda_forks_and_saved_states_go_on_alike(cache: CacheSpec) -> None:
    bench = _bench(cache)
    state = _filled(bench, 20)
    fork, saved = state.fork(), state.save()
    wanted = _next(bench, state)
    assert _next(bench, fork) == wanted
    assert _next(bench, State.load(state.spec, saved)) == wanted


def test_cuda_sees_what_the_host_writes_between_runs() -> None:
    bench = _bench()
    state, other = _filled(bench, 20), _filled(bench, 20)
    state.values[0][:] *= 2
    assert _next(bench, state) != _next(bench, other)
    state.lengths[0] = other.lengths[0] = 0  # row 0 sees itself alone, whatever was there
    assert _next(bench, state) == _next(bench, other)


def test_cuda_takes_a_state_over_from_the_cpu_and_hands_it_on() -> None:
    cuda, cpu = _bench(), AttentionBench(CpuBackend(1), CACHE, 4, 4, 60)
    x = random_floats(1, 60, cuda.width)
    wanted = cpu.sequence(x, 4)
    state, found = cuda.state(), []
    for start in range(0, 60, 4):
        bench = (cuda, cpu)[start // 4 % 2]
        positions = np.arange(start, start + 4, dtype=np.int32)
        found.append(bench.call(state, x[start : start + 4], positions))
    assert np.allclose(np.concatenate(found), wanted, rtol=0, atol=1e-5)


def test_cuda_states_of_one_shape_hand_on_their_memory() -> None:
    """Graphs are bound to addresses: the next text must run at those of the last."""
    bench = _bench()
    numbers = []
    for _ in range(3):
        state = _filled(bench, 8)
        copy = state.caches.copy
        assert copy is not None
        numbers.append(copy.memory.number)  # type: ignore[attr-defined]
        wanted = _next(bench, state)
        del state, copy
        gc.collect()
    assert len(set(numbers)) == 1
    assert _next(bench, _filled(bench, 8)) == wanted


def test_cuda_keeps_few_memories_of_states_that_are_gone() -> None:
    pool = MemoryPool(cuda_backend().device)
    for size in range(1, 30):
        pool.take(SimpleOwner(), ((size,),), torch.float32)
    assert [memory.shapes[0][0] for memory in pool._spare] == list(range(22, 30))


def test_cuda_gives_up_spare_memory_before_it_says_that_there_is_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pool = MemoryPool(cuda_backend().device)
    pool.take(SimpleOwner(), ((4,),), torch.float32)
    zeros, room = torch.zeros, iter([False, True])

    def short(*shape: object, **options: object) -> torch.Tensor:
        if not next(room):
            raise torch.OutOfMemoryError("out of memory")
        return zeros(*shape, **options)

    monkeypatch.setattr(torch, "zeros", short)
    owner = SimpleOwner()
    assert pool.take(owner, ((5,),), torch.float32).shapes == ((5,),)
    assert not pool._spare


def test_cuda_inputs_that_a_run_changes_are_right_on_both_sides() -> None:
    """Rope turns an input in place: turned twice where the host leaves it, once where it writes."""
    program = Program(3)
    x = program.output("x", program.input("x", 8))
    turns = program.input("turns", 8)
    program.rope(x, turns, 0, 1, RopePairs.HALVES)
    angles = np.full((3, 4), 0.5, np.float32)
    turned = np.concatenate([np.cos(angles), np.sin(angles)], axis=1)
    given = random_floats(1, 3, 8)
    results = []
    for backend in (cuda_backend(), ReferenceBackend()):
        built = backend.build(program)
        built.array(x)[:], built.array(turns)[:] = given, turned
        built.run(3)
        built.run(2)  # the third row stays as it is
        once = built.array(x).copy()
        built.array(x)[:] = given
        built.run(3)
        results.append((once, built.array(x).copy()))
    for found, wanted in zip(*results, strict=True):
        assert np.allclose(found, wanted, rtol=0, atol=1e-6)


def test_cuda_weights_are_there_once_and_go_with_their_last_program() -> None:
    backend = cuda_backend()
    weight = random_weight(1, 24, 16)

    def program() -> Program:
        made = Program(1)
        made.output("out", made.linear(made.input("x", 16), weight))
        return made

    first, second = backend.build(program()), backend.build(program())
    held = backend.weights.get(weight)
    assert first._weights[0] is second._weights[0] is held
    del first, second, held
    gc.collect()
    assert id(weight) not in backend.weights._held


def test_cuda_program_without_the_state_that_it_needs_says_so() -> None:
    program = Program(1)
    ids = [program.input(name, 1, is_int=True) for name in ("positions", "streams")]
    x = program.input("x", 24)
    program.cache_write((x, 8), (x, 16), 0, ids[0], ids[1])
    with pytest.raises(RuntimeError, match="needs a state"):
        outputs_of(cuda_backend(), program, {}, 1)
