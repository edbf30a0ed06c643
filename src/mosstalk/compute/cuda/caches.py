"""A state's arrays in a device's memory, and the memory that states hand on to each other.

A captured graph is bound to addresses. So memory that a state no longer needs is kept for the next
one of the same shape, and the graphs that were captured with it serve that one too.
"""

import weakref
from collections.abc import Sequence
from itertools import count
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor

from mosstalk.compute.cuda.errors import device_errors
from mosstalk.compute.host_arrays import HostArrays
from mosstalk.compute.state import KEY_BLOCK, CacheSpec, State

# Positions that an unwindowed cache is rounded up to, so that texts of about one length share.
_LENGTH_STEP = 256
_MOST_SPARE = 8  # memories that are kept for states to come

Shapes = tuple[tuple[int, ...], ...]


class Memory:
    """Tensors at addresses that stay; `number` tells it from every other."""

    _numbers = count(1)

    def __init__(self, shapes: Shapes, dtype: torch.dtype, device: torch.device) -> None:
        self.shapes, self.dtype = shapes, dtype
        self.tensors = [torch.zeros(shape, dtype=dtype, device=device) for shape in shapes]
        self.number = next(self._numbers)


class MemoryPool:
    """Hands out memories of a device and takes them back; the last ones that it got are kept."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self._spare: list[Memory] = []

    def take(self, owner: object, shapes: Shapes, dtype: torch.dtype) -> Memory:
        """A memory for as long as `owner` lives; what it holds is not defined."""
        memory = self._fitting(shapes, dtype)
        if memory is None:
            try:
                memory = Memory(shapes, dtype, self.device)
            except torch.OutOfMemoryError:
                self._spare.clear()
                torch.cuda.empty_cache()
                memory = Memory(shapes, dtype, self.device)
        weakref.finalize(owner, self._give_back, memory)
        return memory

    def _fitting(self, shapes: Shapes, dtype: torch.dtype) -> Memory | None:
        """The last that came back of this kind, taken out of those that are kept."""
        for memory in reversed(self._spare):
            if (memory.shapes, memory.dtype) == (shapes, dtype):
                self._spare.remove(memory)
                return memory
        return None

    def _give_back(self, memory: Memory) -> None:
        self._spare.append(memory)
        del self._spare[:-_MOST_SPARE]


class CacheCopy:
    """Keys, then values, of all caches: [heads, streams * length, head_dim] each.

    The length is that of the host or, of an unwindowed cache, a larger one.
    """

    def __init__(self, pool: MemoryPool, state: State) -> None:
        self.pool = pool
        self._num_streams = state.num_streams
        arrays = state.caches.read()
        shapes = [
            (cache.heads, state.num_streams * _device_len(cache, length), cache.head_dim)
            for cache, length in zip(state.spec.caches, state.cache_lens, strict=True)
        ]
        self.memory = pool.take(self, (*shapes, *shapes), torch.float32)
        for tensor, array in zip(self.memory.tensors, arrays, strict=True):
            given = torch.from_numpy(array).to(tensor.device)
            self._as_on_host(tensor, array).copy_(given)

    def cache(self, index: int) -> tuple[Tensor, Tensor]:
        """Keys and values of one cache."""
        tensors = self.memory.tensors
        return tensors[index], tensors[len(tensors) // 2 + index]

    def fetch(self, arrays: Sequence[NDArray[Any]]) -> None:
        """Copy the device's values into the state's arrays."""
        with device_errors(self.pool.device):
            for tensor, array in zip(self.memory.tensors, arrays, strict=True):
                torch.from_numpy(array).copy_(self._as_on_host(tensor, array).contiguous())

    def _as_on_host(self, tensor: Tensor, array: NDArray[Any]) -> Tensor:
        """The view of a tensor that has the axes of a state's array; see State."""
        positions = tensor.unflatten(1, (self._num_streams, -1)).transpose(0, 1)
        if array.ndim == 4:
            return positions[:, :, : array.shape[2]]
        blocks = positions[:, :, : array.shape[2] * KEY_BLOCK].unflatten(2, (-1, KEY_BLOCK))
        return blocks.transpose(3, 4)


def _device_len(cache: CacheSpec, length: int) -> int:
    if cache.window or cache.fixed_len:
        return length
    return -(-length // _LENGTH_STEP) * _LENGTH_STEP


class SeenCopy:
    """The sets of seen ids: bool [streams, size] each."""

    def __init__(self, pool: MemoryPool, state: State) -> None:
        self.pool = pool
        arrays = state.seen_sets.read()
        self.memory = pool.take(self, tuple(array.shape for array in arrays), torch.bool)
        for tensor, array in zip(self.memory.tensors, arrays, strict=True):
            tensor.copy_(torch.from_numpy(array.astype(bool)))

    def fetch(self, arrays: Sequence[NDArray[Any]]) -> None:
        """Copy the device's values into the state's arrays."""
        with device_errors(self.pool.device):
            for tensor, array in zip(self.memory.tensors, arrays, strict=True):
                array[:] = tensor.cpu().numpy()


class StateCopies:
    """A state's copies in one device's memory, made where they are not there or no longer count."""

    def __init__(self, pool: MemoryPool, state: State) -> None:
        self.num_streams = state.num_streams
        self.caches = self._counting(state.caches, CacheCopy, pool, state)
        self.seen = self._counting(state.seen_sets, SeenCopy, pool, state)
        self.numbers = (self.caches.memory.number, self.seen.memory.number)

    @staticmethod
    def _counting(held: HostArrays, kind: type[Any], pool: MemoryPool, state: State) -> Any:
        copy = held.copy
        if not isinstance(copy, kind) or copy.pool is not pool:
            copy = kind(pool, state)
        held.run_on(copy)
        return copy
