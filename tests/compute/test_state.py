"""What a stream remembers: as a value that can be cut, copied, saved."""

import numpy as np
import pytest
from compute_programs import AttentionBench, random_floats, state_of

from mosstalk.compute.cpu.backend import CpuBackend
from mosstalk.compute.seats import Seat, Seats
from mosstalk.compute.state import CacheSpec, State, StateSpec, cache_len

CACHE = CacheSpec(2, 16)
RING = CacheSpec(2, 16, window=5)


def _bench(cache: CacheSpec, capacity: int = 60) -> AttentionBench:
    return AttentionBench(CpuBackend(1), cache, 2, 4, capacity)


def _filled(bench: AttentionBench, rows: int) -> State:
    state = bench.state()
    bench.sequence(random_floats(1, 60, bench.width)[:rows], 4, state)
    state.lengths[0] = rows
    return state


def _next(bench: AttentionBench, state: State) -> object:
    """The result of a row after those that the state holds."""
    row = random_floats(2, 1, bench.width)
    return bench.call(state, row, np.array([state.lengths[0]], np.int32))[0].tolist()


def test_cached_keys_and_values_are_what_was_written() -> None:
    bench = _bench(CACHE)
    state = _filled(bench, 37)
    x = random_floats(1, 60, bench.width)[:37]
    assert np.array_equal(state.cached_keys(0), x[:, 32:64].reshape(37, 2, 16))
    assert np.array_equal(state.cached_values(0), x[:, 64:].reshape(37, 2, 16))


@pytest.mark.parametrize("cache", [CACHE, RING])
def test_a_fork_goes_on_alike_and_apart(cache: CacheSpec) -> None:
    bench = _bench(cache)
    state = _filled(bench, 20)
    fork = state.fork()
    assert _next(bench, fork) == _next(bench, state)
    bench.call(fork, random_floats(3, 4, bench.width), np.arange(20, 24, dtype=np.int32))
    fork.lengths[0] = 24
    assert _next(bench, state) == _next(bench, _filled(bench, 20))
    assert state.lengths == [20]


def test_a_fork_may_have_more_room_but_not_too_little() -> None:
    bench = _bench(CACHE)
    state = _filled(bench, 20)
    assert _next(bench, state.fork(500)) == _next(bench, state)
    assert _next(bench, state.fork(21)) == _next(bench, state)
    with pytest.raises(ValueError, match="20 cached rows do not fit in 19"):
        state.fork(19)


def test_a_fork_takes_one_stream_of_many() -> None:
    state = state_of(CACHE, 16, 4, streams=3, seen=(4,))
    state.values[0][2] = 7
    state.seen[0][2, 1] = 1
    state.lengths = [1, 2, 3]
    fork = state.fork(stream=2)
    assert fork.num_streams == 1 and fork.lengths == [3]
    assert (fork.cached_values(0) == 7).all() and fork.seen[0].tolist() == [[0, 1, 0, 0]]


@pytest.mark.parametrize("cache", [CACHE, RING])
def test_a_stream_becomes_a_copy_of_another_state_s(cache: CacheSpec) -> None:
    bench = _bench(cache)
    state, many = _filled(bench, 20), state_of(cache, 60, 4, streams=3)
    many.values[0][:] = 7
    many.copy_stream(state, 0, to_stream=1)
    assert many.lengths == [0, 20, 0]
    assert (many.values[0][[0, 2]] == 7).all()
    assert _next(bench, many.fork(stream=1)) == _next(bench, state)


def test_a_stream_has_no_room_for_a_longer_one() -> None:
    state = _filled(_bench(CACHE), 20)
    with pytest.raises(ValueError, match="20 cached rows do not fit in 19"):
        State(state.spec, 19, 2).copy_stream(state, 0, 1)


def test_seats_are_lent_one_by_one() -> None:
    state = state_of(CACHE, 16, 4, streams=2, seen=(4,))
    seats = Seats(state)
    first, second = seats.take(16), seats.take(1)
    assert first == Seat(state, 0) and second == Seat(state, 1)
    assert seats.take() is None and seats.num_free == 0
    state.lengths = [3, 4]
    state.seen[0][:] = 1
    seats.give_back(first)
    assert state.lengths == [0, 4] and state.seen[0].sum(axis=1).tolist() == [0, 4]
    assert seats.take(17) is None  # longer than any
    assert seats.take(2) == first


def test_windowed_caches_keep_their_capacity_and_rows() -> None:
    state = _filled(_bench(RING), 20)
    with pytest.raises(ValueError, match="keeps its capacity"):
        state.fork(500)
    with pytest.raises(ValueError, match="windowed cache cannot be truncated"):
        state.truncate(19)
    state.truncate(20)


def test_a_windowed_cache_needs_only_its_window_and_a_call() -> None:
    assert cache_len(RING, capacity=10_000, max_rows=4) == 16
    assert cache_len(CacheSpec(1, 8, window=125, multiple=8), 10_000, 2) == 144
    assert cache_len(CACHE, capacity=100, max_rows=4) == 112  # whole blocks of 16
    assert cache_len(CacheSpec(1, 8, fixed_len=17), capacity=100, max_rows=4) == 32


def test_truncate_forgets_the_newest_rows() -> None:
    bench = _bench(CACHE)
    state = _filled(bench, 30)
    state.truncate(20)
    assert _next(bench, state) == _next(bench, _filled(bench, 20))
    with pytest.raises(ValueError, match="cannot keep 21 of 20"):
        state.truncate(21)
    with pytest.raises(ValueError, match="cannot keep -1 of 20"):
        state.truncate(-1)


@pytest.mark.parametrize("cache", [CACHE, RING])
def test_a_saved_state_goes_on_alike(cache: CacheSpec) -> None:
    bench = _bench(cache)
    state = _filled(bench, 33)
    wanted = _next(bench, state.fork())
    arrays = state.save()
    state.values[0][:] = 0  # what was saved is a copy
    loaded = State.load(state.spec, arrays)
    assert (loaded.capacity, loaded.lengths) == (60, [33])
    assert _next(bench, loaded) == wanted


def test_saved_sets_of_seen_ids_come_back() -> None:
    state = State(StateSpec((), (3, 2)), 4)
    state.seen[0][0, 2] = state.seen[1][0, 1] = 1
    loaded = State.load(state.spec, state.save())
    assert [seen.tolist() for seen in loaded.seen] == [[[0, 0, 1]], [[0, 1]]]
    loaded.reset()
    assert not any(seen.any() for seen in loaded.seen)


def test_room_ends_at_the_capacity() -> None:
    state = State(StateSpec((CACHE,), max_rows=4), 10)
    state.lengths[0] = 7
    state.check_room(3)
    with pytest.raises(ValueError, match="4 rows do not fit after 7 of at most 10"):
        state.check_room(4)
