"""How a tensor's numbers are stored: f32, f16, bf16 or q8_0, and exact conversion to float32.

Every storage type is a set of float32 values with a packing. The compute backends use those
values, so what is computed with a packed tensor equals what is computed with `to_float32` of it.
"""

import math
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from mosstalk.errors import CheckpointError, UsageError

Q8_BLOCK_LEN = 32  # values that share a scale
Q8_BLOCK_BYTES = 34  # f16 scale, then 32 int8: the block of GGUF's Q8_0
_SLAB_LEN = 2**22  # values of a matrix that are converted at a time


class StorageType(StrEnum):
    """How weights are stored. `NATIVE` asks for whatever the checkpoint holds."""

    NATIVE = "native"
    F32 = "f32"
    F16 = "f16"
    BF16 = "bf16"
    Q8_0 = "q8_0"

    @classmethod
    def parse(cls, name: str) -> "StorageType":
        """The type called `name`; raises UsageError that lists the names."""
        try:
            return cls(name.lower())
        except ValueError:
            names = ", ".join(cls)
            raise UsageError(f"unknown weight type {name!r}; choose one of {names}") from None


@dataclass(frozen=True, slots=True)
class StoredTensor:
    """One named tensor as it lies in memory or in a mapped file.

    `data` is float32, float16 or (bf16) uint16 of `shape`; for q8_0 it is uint8
    [rows, blocks * 34], where rows is the product of all axes but the last.
    """

    name: str
    shape: tuple[int, ...]
    storage: StorageType
    data: NDArray[np.generic]

    @property
    def num_bytes(self) -> int:
        return int(self.data.nbytes)

    def to_float32(self) -> NDArray[np.float32]:
        """The values as float32 of `shape`; exact for every storage type."""
        if self.storage is StorageType.F32:
            return self.data.view(np.float32).reshape(self.shape)
        if self.storage is StorageType.F16:
            return self.data.astype(np.float32).reshape(self.shape)
        if self.storage is StorageType.BF16:
            wide = self.data.astype(np.uint32) << np.uint32(16)
            return wide.view(np.float32).reshape(self.shape)
        blocks = self.data.reshape(-1, Q8_BLOCK_BYTES)
        scales = np.ascontiguousarray(blocks[:, :2]).view(np.float16).astype(np.float32)
        values = np.ascontiguousarray(blocks[:, 2:]).view(np.int8).astype(np.float32)
        return (values * scales).reshape(self.shape)


def from_float32(name: str, values: NDArray[np.float32], storage: StorageType) -> StoredTensor:
    """Pack float32 values, rounding to nearest.

    q8_0 needs a last axis that is a multiple of 32; other tensors are kept as f16 then. Raises
    CheckpointError for values that q8_0 cannot hold.
    """
    # order="C" and not ascontiguousarray, which would give a scalar an axis.
    values = np.asarray(values, np.float32, order="C")
    if storage is StorageType.Q8_0 and (values.ndim == 0 or values.shape[-1] % Q8_BLOCK_LEN):
        storage = StorageType.F16
    if storage is StorageType.F16:
        limit = np.finfo(np.float16).max
        data: NDArray[np.generic] = values.clip(-limit, limit).astype(np.float16)
    elif storage is StorageType.BF16:
        data = _round_to_bf16(values)
    elif storage is StorageType.Q8_0:
        data = _quantize_q8_0(name, values)
    else:
        storage, data = StorageType.F32, values
    return StoredTensor(name, values.shape, storage, data)


def convert(tensor: StoredTensor, storage: StorageType) -> StoredTensor:
    """`tensor` in another storage type; the same object where nothing changes.

    A large matrix is converted slab by slab, so that it never lies in memory as float32.
    """
    if storage in (StorageType.NATIVE, tensor.storage):
        return tensor
    if len(tensor.shape) != 2 or math.prod(tensor.shape) <= _SLAB_LEN:
        return from_float32(tensor.name, tensor.to_float32(), storage)
    rows, columns = tensor.shape
    slab_rows = max(1, _SLAB_LEN // columns)
    slabs = []
    for first in range(0, rows, slab_rows):
        data = tensor.data[first : first + slab_rows]
        slab = replace(tensor, shape=(len(data), columns), data=data)
        slabs.append(from_float32(tensor.name, slab.to_float32(), storage))
    whole = np.concatenate([slab.data for slab in slabs])
    return StoredTensor(tensor.name, tensor.shape, slabs[0].storage, whole)


def packed_bytes(shape: tuple[int, ...], storage: StorageType) -> int:
    """Bytes that a tensor of `shape` takes; for q8_0 its last axis must be whole blocks."""
    count = math.prod(shape)
    if storage is StorageType.Q8_0:
        return count // Q8_BLOCK_LEN * Q8_BLOCK_BYTES
    return count * (4 if storage is StorageType.F32 else 2)


def _round_to_bf16(values: NDArray[np.float32]) -> NDArray[np.uint16]:
    """The upper half of each float32, rounded to nearest with ties to even; NaN stays NaN."""
    bits = values.view(np.uint32)
    # Add half of what is dropped, less one where the kept part is even.
    rounded = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
    # Rounding up could turn a NaN into an infinity: keep its upper half, made quiet.
    quiet = (bits >> 16).astype(np.uint16) | np.uint16(0x40)
    return np.where(np.isnan(values), quiet, rounded)


def _quantize_q8_0(name: str, values: NDArray[np.float32]) -> NDArray[np.uint8]:
    """Blocks of 32 values: scale max|x| / 127 as f16, then round(x / scale) to int8."""
    blocks = values.reshape(-1, Q8_BLOCK_LEN)
    scales = np.abs(blocks).max(axis=1, keepdims=True) / np.float32(127)
    if scales.size and not scales.max() <= np.finfo(np.float16).max:
        raise CheckpointError(
            f"tensor {name} has values that q8_0 cannot hold (NaN, infinite or above 8e6); "
            "choose another weight type"
        )
    # A scale below the smallest normal float32 has no inverse; as f16 it is 0 anyway.
    usable = scales >= np.finfo(np.float32).tiny
    inverse = np.divide(1, scales, out=np.zeros_like(scales), where=usable)
    packed = np.empty((len(blocks), Q8_BLOCK_BYTES), np.uint8)
    packed[:, :2] = scales.astype(np.float16).view(np.uint8)
    # GGUF rounds halves away from zero. Adding 0.5 first would lift 0.49999997 to 1.
    scaled = blocks * inverse
    whole = np.trunc(scaled)
    rounded = whole + np.trunc(2 * (scaled - whole))
    packed[:, 2:] = rounded.astype(np.int8).view(np.uint8)
    return packed.reshape(-1, values.shape[-1] // Q8_BLOCK_LEN * Q8_BLOCK_BYTES)
