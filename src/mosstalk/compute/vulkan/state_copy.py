"""A state's K/V caches and seen ids in the memory of a device."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosstalk.compute.host_arrays import DeviceCopy
from mosstalk.compute.state import State
from mosstalk.compute.vulkan.device import Device, Piece
from mosstalk.compute.vulkan.shader import StateKind, state_accesses


class CachesCopy:
    """Keys and values, laid out as the state's arrays are.

    Attributes:
        groups: a bind group for each cache.
    """

    def __init__(self, device: Device, state: State) -> None:
        self.device = device
        arrays = state.caches.read()
        self._shapes = [array.shape for array in arrays]
        blank = state.caches.is_blank  # as new memory is
        self._buffers = [
            device.buffer(array.nbytes, "a K/V cache", None if blank else array) for array in arrays
        ]
        specs, lengths = state.spec.caches, state.cache_lens
        sizes = [
            (length, cache.heads, cache.head_dim)
            for cache, length in zip(specs, lengths, strict=True)
        ]
        pairs = zip(self._buffers[: len(specs)], self._buffers[len(specs) :], strict=True)
        self.groups = _bind_each(device, "cache", sizes, list(pairs))

    def fetch(self, arrays: Sequence[NDArray[Any]]) -> None:
        """Copy all caches into the state's arrays."""
        sizes = [array.nbytes for array in arrays]
        held = self.device.read(list(zip(self._buffers, sizes, strict=True)))
        for array, values in zip(arrays, held, strict=True):
            array[:] = values.view(array.dtype).reshape(array.shape)

    def blank(self, state: State) -> "CachesCopy":
        """A copy, on the same device, of the caches of a state that are blank."""
        return CachesCopy(self.device, state)

    def take(self, source: DeviceCopy, streams: tuple[int, int], used: Sequence[int]) -> bool:
        """As StreamsCopy.take, head by head; False for a copy of another device, or this one."""
        if not isinstance(source, CachesCopy) or source.device is not self.device:
            return False
        if source is self:  # no memory may be copied from and to at once
            return False
        pieces: list[Piece] = []
        for i, (ours, theirs) in enumerate(zip(self._shapes, source._shapes, strict=True)):
            place_bytes = 4 * math.prod(ours[3:])
            for head in range(ours[1]):
                at = (streams[0] * ours[1] + head) * ours[2] * place_bytes
                their_at = (streams[1] * theirs[1] + head) * theirs[2] * place_bytes
                size = used[i] * place_bytes
                pieces.append(Piece(source._buffers[i], their_at, self._buffers[i], at, size))
        self.device.copy([piece for piece in pieces if piece.num_bytes])
        return True


class SeenCopy:
    """Sets of seen ids, four in a word, the words of each stream apart.

    Attributes:
        groups: a bind group for each set.
    """

    def __init__(self, device: Device, state: State) -> None:
        self.device = device
        padded = [np.pad(ids, ((0, 0), (0, -ids.shape[1] % 4))) for ids in state.seen_sets.read()]
        self._widths = [ids.shape[1] for ids in padded]
        self._buffers = [device.buffer(ids.nbytes, "a set of seen ids", ids) for ids in padded]
        sizes = [(width // 4,) for width in self._widths]
        self.groups = _bind_each(device, "seen", sizes, [(buffer,) for buffer in self._buffers])

    def fetch(self, arrays: Sequence[NDArray[Any]]) -> None:
        """Copy all sets into the state's arrays."""
        widths = zip(self._widths, arrays, strict=True)
        sizes = [width * len(array) for width, array in widths]
        held = self.device.read(list(zip(self._buffers, sizes, strict=True)))
        for array, values in zip(arrays, held, strict=True):
            array[:] = values.reshape(len(array), -1)[:, : array.shape[1]]


def groups_of(device: Device, state: State, kind: StateKind) -> list[Any]:
    """The bind groups of a state for a run that may change it: its caches, or its sets.

    What the host has written since the last run is copied to the device.
    """
    arrays, make = (state.caches, CachesCopy) if kind == "cache" else (state.seen_sets, SeenCopy)
    copy = arrays.copy
    if not isinstance(copy, make) or copy.device is not device:
        copy = make(device, state)
    arrays.run_on(copy)
    return copy.groups


def _bind_each(
    device: Device,
    kind: StateKind,
    sizes: Sequence[tuple[int, ...]],
    buffers: Sequence[tuple[Any, ...]],
) -> list[Any]:
    uniforms = device.uniforms(sizes)
    return [
        device.bind([uniform], each, state_accesses(kind))
        for uniform, each in zip(uniforms, buffers, strict=True)
    ]
