"""What a stream remembers between runs: K/V caches and sets of seen ids, as a value.

A `State` is made by its owner, passed to each run, and can be forked, truncated and saved. It
may hold several streams, which a program then advances together. Arrays are in host memory;
they are the memory that the reference and cpu backends compute on. A backend with a memory of its
own keeps a copy there, which moves back when somebody looks (compute/host_arrays.py).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from mosstalk.compute.host_arrays import DeviceCopy, HostArrays

KEY_BLOCK = 16  # positions whose keys lie together: a vector register's worth of scores


@dataclass(frozen=True, slots=True)
class CacheSpec:
    """One attention layer's cache."""

    heads: int
    head_dim: int
    window: int = 0  # positions that a query sees; 0: all
    multiple: int = 1  # positions for each row of a call
    fixed_len: int = 0  # a scratch cache of this length, rewritten from 0; 0: grows with the rows


@dataclass(frozen=True, slots=True)
class StateSpec:
    """What a model keeps for a stream."""

    caches: tuple[CacheSpec, ...]
    seen_sizes: tuple[int, ...] = ()  # number of ids of each set
    max_rows: int = 1  # largest call of any program on it


class State:
    """K/V caches and seen-id sets of `num_streams` streams for up to `capacity` rows each.

    Position p of a cache lies at p modulo its length, so a windowed cache needs only its window
    and one call more. `lengths[s]` is the number of rows that stream s holds; programs do not
    change it, their caller does.

    Attributes:
        caches: keys, then values, of every cache.
        seen_sets: the sets of seen ids.
    """

    def __init__(self, spec: StateSpec, capacity: int, num_streams: int = 1) -> None:
        self.spec = spec
        self.capacity = capacity
        self.num_streams = num_streams
        self.lengths = [0] * num_streams
        self.cache_lens = [cache_len(cache, capacity, spec.max_rows) for cache in spec.caches]
        keys, values = [], []
        for cache, length in zip(spec.caches, self.cache_lens, strict=True):
            heads = (num_streams, cache.heads)
            keys.append(_zeros((*heads, length // KEY_BLOCK, cache.head_dim, KEY_BLOCK)))
            values.append(_zeros((*heads, length, cache.head_dim)))
        self.caches = HostArrays((*keys, *values))
        seen = [np.zeros((num_streams, size), np.uint8) for size in spec.seen_sizes]
        self.seen_sets = HostArrays(seen)
        self.native: Any = None  # a backend's handle on these arrays, made at first use

    @property
    def keys(self) -> tuple[NDArray[np.float32], ...]:
        """[streams, heads, length / KEY_BLOCK, head_dim, KEY_BLOCK] of each cache, to be read or
        written before the next run."""
        return self.caches.write()[: len(self.spec.caches)]

    @property
    def values(self) -> tuple[NDArray[np.float32], ...]:
        """[streams, heads, length, head_dim] of each cache, to be read or written likewise."""
        return self.caches.write()[len(self.spec.caches) :]

    @property
    def seen(self) -> tuple[NDArray[np.uint8], ...]:
        """[streams, size] of each set of ids, 1 for a seen one; to be read or written likewise."""
        return self.seen_sets.write()

    def _cached(self) -> tuple[tuple[NDArray[np.float32], ...], tuple[NDArray[np.float32], ...]]:
        """Keys and values, for reading only."""
        arrays = self.caches.read()
        return arrays[: len(self.spec.caches)], arrays[len(self.spec.caches) :]

    def cached_keys(self, cache: int, stream: int = 0) -> NDArray[np.float32]:
        """Keys of an unwindowed cache as [positions, heads, head_dim]."""
        blocks = self._cached()[0][cache][stream].transpose(
            1, 3, 0, 2
        )  # blocks, within, heads, dim
        keys: NDArray[np.float32] = blocks.reshape(-1, *blocks.shape[2:])
        return keys[: self.lengths[stream] * self.spec.caches[cache].multiple]

    def cached_values(self, cache: int, stream: int = 0) -> NDArray[np.float32]:
        """Values of an unwindowed cache as [positions, heads, head_dim]."""
        values: NDArray[np.float32] = self._cached()[1][cache][stream].transpose(1, 0, 2)
        return values[: self.lengths[stream] * self.spec.caches[cache].multiple]

    def check_room(self, rows: int, stream: int = 0) -> None:
        """Raise ValueError where `rows` more would overwrite what their queries still see.

        A state whose caches all hold a full window has room for ever.
        """
        held = self.lengths[stream]
        if held + rows > self.capacity and not self._is_endless():
            raise ValueError(f"{rows} rows do not fit after {held} of at most {self.capacity}")

    def _is_endless(self) -> bool:
        return all(
            cache.window and length >= cache.window + self.spec.max_rows * cache.multiple - 1
            for cache, length in zip(self.spec.caches, self.cache_lens, strict=True)
            if not cache.fixed_len
        )

    def reset(self, stream: int = 0) -> None:
        """Forget everything of one stream."""
        self.lengths[stream] = 0
        self.forget_seen(stream)

    def forget_seen(self, stream: int = 0) -> None:
        for seen in self.seen:
            seen[stream] = 0

    def truncate(self, length: int, stream: int = 0) -> None:
        """Keep the first `length` rows; only where no window has dropped any."""
        if not 0 <= length <= self.lengths[stream]:
            raise ValueError(f"cannot keep {length} of {self.lengths[stream]} cached rows")
        if length < self.lengths[stream] and any(c.window for c in self.spec.caches):
            raise ValueError("a windowed cache cannot be truncated")
        self.lengths[stream] = length

    def fork(self, capacity: int | None = None, stream: int = 0) -> "State":
        """A copy of one stream, with room for `capacity` rows (default: as many as here)."""
        copy = State(self.spec, capacity or self.capacity)
        copy.copy_stream(self, stream)
        return copy

    def copy_stream(self, source: "State", from_stream: int = 0, to_stream: int = 0) -> None:
        """Make a stream hold what one of `source`, a state of the same spec, holds: the same bits.

        Raises ValueError where this state has no room for its rows.
        """
        length = source.lengths[from_stream]
        if length > self.capacity:
            raise ValueError(f"{length} cached rows do not fit in {self.capacity}")
        used = []
        for cache, most in zip(self.spec.caches, self.cache_lens, strict=True):
            if cache.window and self.capacity != source.capacity:
                raise ValueError("a windowed cache keeps its capacity")
            grows = not cache.window and not cache.fixed_len
            used.append(length * cache.multiple if grows else most)
        used = [*(-(-positions // KEY_BLOCK) for positions in used), *used]  # keys lie in blocks
        streams = (to_stream, from_stream)
        if not self._copy_on_device(source, streams, used):
            arrays = zip(self.caches.write(), source.caches.read(), used, strict=True)
            for ours, theirs, count in arrays:
                ours[to_stream, :, :count] = theirs[from_stream, :, :count]
        for ours, theirs in zip(self.seen, source.seen_sets.read(), strict=True):
            ours[to_stream] = theirs[from_stream]
        self.lengths[to_stream] = length

    def _copy_on_device(
        self, source: "State", streams: tuple[int, int], used: Sequence[int]
    ) -> bool:
        """`copy_stream` of the caches in the memory of the device that has both; else False."""
        theirs = source.caches.copy
        if not isinstance(theirs, StreamsCopy):
            return False
        ours = self.caches.copy or (theirs.blank(self) if self.caches.is_blank else None)
        if not isinstance(ours, StreamsCopy) or not ours.take(theirs, streams, used):
            return False
        self.caches.run_on(ours)
        return True

    def save(self, stream: int = 0) -> dict[str, NDArray[Any]]:
        """One stream as named arrays; `load` makes a state of them again."""
        arrays: dict[str, NDArray[Any]] = {
            "length": np.array(self.lengths[stream]),
            "capacity": np.array(self.capacity),
        }
        keys, values = self._cached()
        for i in range(len(self.spec.caches)):
            arrays[f"keys.{i}"] = keys[i][stream].copy()
            arrays[f"values.{i}"] = values[i][stream].copy()
        for i, seen in enumerate(self.seen_sets.read()):
            arrays[f"seen.{i}"] = seen[stream].copy()
        return arrays

    @classmethod
    def load(cls, spec: StateSpec, arrays: Mapping[str, NDArray[Any]]) -> "State":
        state = cls(spec, int(arrays["capacity"]))
        state.lengths[0] = int(arrays["length"])
        for i in range(len(spec.caches)):
            state.keys[i][0] = arrays[f"keys.{i}"]
            state.values[i][0] = arrays[f"values.{i}"]
        for i, seen in enumerate(state.seen):
            seen[0] = arrays[f"seen.{i}"]
        return state


@runtime_checkable
class StreamsCopy(DeviceCopy, Protocol):
    """A device's copy of a state's caches that passes streams on without the host."""

    def blank(self, state: State) -> "StreamsCopy":
        """A copy, on the same device, of the caches of a state that are blank."""
        ...

    def take(self, source: DeviceCopy, streams: tuple[int, int], used: Sequence[int]) -> bool:
        """Hold in stream streams[0] what `source` holds in streams[1].

        Of array i the first used[i] places of its third axis count, of every head. False, and
        nothing is changed, where `source` is not on the same device.
        """
        ...


def cache_len(cache: CacheSpec, capacity: int, max_rows: int) -> int:
    """Positions that a cache must hold, rounded up to whole key blocks."""
    length = cache.fixed_len or capacity * cache.multiple
    if cache.window:
        length = min(length, cache.window + max_rows * cache.multiple - 1)
    return -(-length // KEY_BLOCK) * KEY_BLOCK


def _zeros(shape: tuple[int, ...]) -> NDArray[np.float32]:
    """Zeros that start on a cache line, so that no vector load crosses two."""
    size = int(np.prod(shape))
    memory = np.zeros(size * 4 + 64, np.uint8)
    start = -memory.ctypes.data % 64
    return memory[start : start + size * 4].view(np.float32).reshape(shape)
