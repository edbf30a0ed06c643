"""What is copied between host and device: nothing that nobody asks for; states live there."""

from collections import Counter
from typing import Any

import numpy as np
import pytest
from compute_programs import AttentionBench, outputs_of, random_floats
from vulkan_device import vulkan_backend

from mosstalk.compute.backend import open_backend
from mosstalk.compute.program import Program
from mosstalk.compute.state import CacheSpec, State

CACHES = pytest.mark.parametrize("cache", [CacheSpec(2, 16), CacheSpec(2, 16, window=5)])


@pytest.fixture
def copies(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often the device was written to, read from and run."""
    device: Any = vulkan_backend().device  # type: ignore[attr-defined]
    counts: Counter[str] = Counter()

    def count(name: str) -> None:
        method = getattr(device, name)

        def counted(*arguments: Any) -> Any:
            counts[name] += 1
            return method(*arguments)

        monkeypatch.setattr(device, name, counted)

    for name in ("write", "read", "submit"):
        count(name)
    return counts


def test_vulkan_copies_inputs_once_and_outputs_when_asked(copies: Counter[str]) -> None:
    program = Program(4)
    x, y = program.input("x", 8), program.input("y", 8)
    total = program.output("total", program.add(x, y))
    program.output("more", program.add(total, y))
    built = vulkan_backend().build(program)
    built.array(x)[:], built.array(y)[:] = 1, 2
    copies.clear()
    built.run(4)
    assert copies == {"write": 3, "submit": 1}  # two inputs, the number of rows
    built.run(4)
    assert copies == {"write": 3, "submit": 2}
    assert (built.array(total) == 3).all() and copies["read"] == 1
    built.array(total), built.array(x)
    assert copies["read"] == 1
    assert (built.array(program.outputs["more"]) == 5).all() and copies["read"] == 2
    built.array(x)[0] = 7
    built.run(4)
    assert copies == {"write": 4, "submit": 3, "read": 2}
    assert built.array(total)[0, 0] == 9
    assert built.array(program.outputs["more"])[0, 0] == 11
    assert copies["read"] == 3  # both at once, as both have been asked for before


def test_vulkan_an_op_may_write_to_an_input(copies: Counter[str]) -> None:
    """As a frame's codes: what an op has written stays, beside what the host wrote."""
    program = Program(1)
    ids = program.output("ids", program.input("ids", 2, is_int=True))
    program.argmax(ids, 1, program.input("x", 4))
    built = vulkan_backend().build(program)
    built.array(ids)[:] = 5
    for best in (2, 3):
        built.array(program.inputs["x"])[:] = np.eye(4, dtype=np.float32)[best]
        built.run(1)
    assert built.array(ids).tolist() == [[5, 3]]
    built.array(ids)[0, 0] = 6
    built.run(1)
    assert built.array(ids).tolist() == [[6, 3]]


def test_vulkan_rows_beyond_a_call_keep_what_they_had() -> None:
    program = Program(3)
    x = program.input("x", 2)
    out = program.output("out", program.add(x, x))
    built = vulkan_backend().build(program)
    built.array(x)[:] = 1
    built.run(3)
    built.array(x)[:] = 4
    built.run(1)
    assert built.array(out)[:, 0].tolist() == [8, 2, 2]


def test_vulkan_a_state_stays_on_the_device(copies: Counter[str]) -> None:
    bench = AttentionBench(vulkan_backend(), CacheSpec(2, 16), 2, 4, 60)
    state = bench.state()
    x = random_floats(1, 40, bench.width)
    copies.clear()
    bench.sequence(x, 4, state)
    assert copies["read"] == 10  # the outputs
    state.lengths[0] = 40
    found = state.cached_keys(0)
    assert np.array_equal(found, x[:, 32:64].reshape(40, 2, 16))
    state.cached_values(0), state.save()
    assert copies["read"] == 11


@CACHES
def test_vulkan_streams_are_copied_within_the_device(
    cache: CacheSpec, copies: Counter[str]
) -> None:
    """Into a fork, and into a stream of a state that others use; the host sees none of it."""
    bench = _bench(cache)
    states = [_filled(bench, rows) for rows in (20, 33)]
    wanted = [_next(bench, state.fork()) for state in states]
    shared = bench.state(3)
    x = np.tile(random_floats(2, 1, bench.width), (2, 1))
    copies.clear()
    for i, state in enumerate(states):
        shared.copy_stream(state, 0, 2 * i)
    streams, positions = np.array([0, 2], np.int32), np.array([20, 33], np.int32)
    assert bench.call(shared, x, positions, streams).tolist() == wanted
    assert copies["read"] == 1  # the output


def test_vulkan_copies_a_stream_to_another_of_its_state() -> None:
    bench = _bench(CacheSpec(2, 16))
    state = bench.state(2)
    bench.sequence(random_floats(1, 20, bench.width), 4, state)
    state.lengths[0] = 20
    state.copy_stream(state, 0, 1)
    assert state.lengths == [20, 20]
    assert np.array_equal(state.cached_keys(0, 1), state.cached_keys(0, 0))


def test_vulkan_caches_are_read_in_as_many_transfers_as_it_takes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench = _bench(CacheSpec(2, 16))
    state = _filled(bench, 33)
    wanted = state.fork().save()
    monkeypatch.setattr(bench.backend.device, "_most_read", 4)
    state.caches.run_on(state.caches.copy)
    assert np.array_equal(state.save()["values.0"], wanted["values.0"])


def _bench(cache: CacheSpec) -> AttentionBench:
    return AttentionBench(vulkan_backend(), cache, 2, 4, 60)


def _filled(bench: AttentionBench, rows: int) -> State:
    state = bench.state()
    bench.sequence(random_floats(1, 60, bench.width)[:rows], 4, state)
    state.lengths[0] = rows
    return state


def _next(bench: AttentionBench, state: State) -> object:
    """The result of a row after those that the state holds."""
    row = random_floats(2, 1, bench.width)
    return bench.call(state, row, np.array([state.lengths[0]], np.int32))[0].tolist()


@CACHES
def test_vulkan_a_fork_goes_on_alike_and_apart(cache: CacheSpec) -> None:
    bench = _bench(cache)
    state = _filled(bench, 20)
    fork = state.fork()
    assert _next(bench, fork) == _next(bench, state)
    bench.call(fork, random_floats(3, 4, bench.width), np.arange(20, 24, dtype=np.int32))
    assert _next(bench, state) == _next(bench, _filled(bench, 20))


@CACHES
def test_vulkan_a_saved_state_goes_on_alike(cache: CacheSpec) -> None:
    bench = _bench(cache)
    state = _filled(bench, 33)
    wanted = _next(bench, state.fork())
    arrays = state.save()
    state.values[0][:] = 0
    assert _next(bench, state) != wanted
    assert _next(bench, State.load(state.spec, arrays)) == wanted


def test_vulkan_truncate_forgets_the_newest_rows() -> None:
    bench = _bench(CacheSpec(2, 16))
    state = _filled(bench, 30)
    state.truncate(20)
    assert _next(bench, state) == _next(bench, _filled(bench, 20))


@CACHES
def test_vulkan_and_cpu_take_turns_on_a_state(cache: CacheSpec) -> None:
    benches = [
        AttentionBench(backend, cache, 2, 4, 60)
        for backend in (open_backend("cpu", 1), vulkan_backend())
    ]
    x = random_floats(1, 48, benches[0].width)
    wanted = benches[0].sequence(x, 4)
    state = benches[0].state()
    for start in range(0, 48, 4):
        positions = np.arange(start, start + 4, dtype=np.int32)
        found = benches[start // 4 % 2].call(state, x[start : start + 4], positions)
        assert np.abs(found - wanted[start : start + 4]).max() < 1e-5


def test_vulkan_large_arrays_are_sent_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    backend = vulkan_backend()
    monkeypatch.setattr("mosstalk.compute.vulkan.device._MOST_UNSENT", 1024)
    program = Program(7)
    x = program.input("x", 101)
    program.output("out", program.add(x, x))
    values = {"x": random_floats(1, 7, 101)}
    assert np.array_equal(outputs_of(backend, program, values, 7)["out"], 2 * values["x"])


def test_vulkan_program_that_needs_a_state_says_so() -> None:
    program = Program(1)
    ids = [program.input(name, 1, is_int=True) for name in ("positions", "streams")]
    x = program.input("x", 24)
    program.cache_write((x, 8), (x, 16), 0, ids[0], ids[1])
    with pytest.raises(RuntimeError, match="needs a state"):
        vulkan_backend().build(program).run(1)
