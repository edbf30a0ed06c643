"""Arrays that a device keeps a copy of: nobody sees old values, and nothing is copied unasked."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from compute_programs import random_floats
from numpy.typing import NDArray

from mosstalk.compute.state import CacheSpec, State, StateSpec

SPEC = StateSpec((CacheSpec(1, 8), CacheSpec(2, 4)), (3,))


class _Copy:
    """A device's memory, as another array; `runs` changes it."""

    def __init__(self, arrays: Sequence[NDArray[Any]]) -> None:
        self.values = [array.copy() for array in arrays]
        self.fetched = 0

    def fetch(self, arrays: Sequence[NDArray[Any]]) -> None:
        self.fetched += 1
        for array, value in zip(arrays, self.values, strict=True):
            array[:] = value


def _on_device(state: State) -> tuple[_Copy, NDArray[np.float32]]:
    """A state whose keys of cache 0 a run has just changed, and those keys."""
    copy = _Copy(state.caches.read())
    state.caches.run_on(copy)
    copy.values[0][:] = random_floats(1, *copy.values[0].shape)
    return copy, copy.values[0]


def test_readers_see_what_a_run_left_and_copy_it_once() -> None:
    state = State(SPEC, 4)
    state.lengths[0] = 4
    copy, keys = _on_device(state)
    wanted = keys[0].transpose(1, 3, 0, 2).reshape(16, 1, 8)[:4]
    assert np.array_equal(state.cached_keys(0), wanted)
    assert np.array_equal(state.fork().cached_keys(0), wanted)
    assert np.array_equal(state.save()["keys.0"], keys[0])
    assert copy.fetched == 1 and state.caches.copy is copy


def test_whoever_may_write_ends_the_copy() -> None:
    state = State(SPEC, 4)
    copy, keys = _on_device(state)
    state.values[1][:] = 7
    assert copy.fetched == 1 and state.caches.copy is None
    assert np.array_equal(state.keys[0], keys) and (state.values[1] == 7).all()
    assert copy.fetched == 1


def test_a_copy_is_behind_after_each_run() -> None:
    state = State(SPEC, 4)
    copy, keys = _on_device(state)
    state.cached_keys(0)
    state.caches.run_on(copy)
    keys[:] = 3
    assert (state.save()["keys.0"] == 3).all()
    assert copy.fetched == 2


def test_lengths_and_seen_ids_leave_the_caches_where_they_are() -> None:
    state = State(SPEC, 4)
    copy, _ = _on_device(state)
    seen = _Copy(state.seen_sets.read())
    state.seen_sets.run_on(seen)
    seen.values[0][0, 1] = 1
    assert state.seen[0].tolist() == [[0, 1, 0]]
    state.lengths[0] = 3
    state.check_room(1)
    state.truncate(2)
    state.reset()
    assert state.save()["seen.0"].tolist() == [0, 0, 0]
    assert (seen.fetched, copy.fetched) == (1, 1)  # the caches for `save`
    assert state.caches.copy is copy and state.seen_sets.copy is None


def test_a_new_state_is_blank_until_written_or_fetched() -> None:
    """A device need not copy zeros."""
    states = [State(SPEC, 4) for _ in range(3)]
    assert all(state.caches.is_blank for state in states)
    states[0].keys[0][:] = 1
    _on_device(states[1])
    assert states[1].caches.is_blank
    states[1].fork()
    assert [state.caches.is_blank for state in states] == [False, False, True]
    assert not states[1].fork().caches.is_blank
