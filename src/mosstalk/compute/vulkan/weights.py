"""Weights in the device's memory: packed as they are stored, rows padded to whole steps.

A shader reads a matrix four values at a time. Rows are padded with zeros to a multiple of four
values; a q8_0 row is, for each block, its scale as float32 and eight words of four int8. A matrix
larger than one binding may be lies in several parts of whole rows. Vectors are float32.
"""

from dataclasses import dataclass
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from mosstalk.checkpoint.storage import (
    Q8_BLOCK_BYTES,
    Q8_BLOCK_LEN,
    StorageType,
    StoredTensor,
)
from mosstalk.compute.vulkan.device import Device
from mosstalk.errors import DeviceError

STEP = 4  # values that a shader reads at a time


@dataclass(frozen=True, slots=True)
class Part:
    """Rows [first_row, first_row + num_rows) of a matrix."""

    buffer: Any
    first_row: int
    num_rows: int


@dataclass(frozen=True, slots=True, weakref_slot=True)
class Matrix:
    """A packed matrix; the tensor is kept so that its identity stands for the copy's."""

    tensor: StoredTensor
    columns: int
    parts: tuple[Part, ...]

    @property
    def storage(self) -> StorageType:
        return self.tensor.storage

    @property
    def steps(self) -> int:
        """Reads of four values that a row takes."""
        return -(-self.columns // STEP)


@dataclass(frozen=True, slots=True, weakref_slot=True)
class Vector:
    """A float32 vector; the tensor is kept as in Matrix."""

    tensor: StoredTensor
    buffer: Any


class PlacedWeights:
    """The weights that programs of one device have in its memory: each tensor once.

    A weight stays as long as a program holds it.
    """

    def __init__(self, device: Device) -> None:
        self._device = device
        self._matrices: WeakValueDictionary[int, Matrix] = WeakValueDictionary()
        self._vectors: WeakValueDictionary[int, Vector] = WeakValueDictionary()

    def matrix(self, tensor: StoredTensor) -> Matrix:
        """Raises DeviceError where the device has no memory left for it."""
        found = self._matrices.get(id(tensor))
        if found is None:
            found = self._matrices[id(tensor)] = _place_matrix(self._device, tensor)
        return found

    def vector(self, tensor: StoredTensor) -> Vector:
        """Raises DeviceError as `matrix` does."""
        found = self._vectors.get(id(tensor))
        if found is None:
            values = tensor.to_float32().reshape(-1)
            buffer = self._device.buffer(values.nbytes, tensor.name, values)
            found = self._vectors[id(tensor)] = Vector(tensor, buffer)
        return found


def _place_matrix(device: Device, tensor: StoredTensor) -> Matrix:
    rows, columns = tensor.shape
    row_bytes = _row_bytes(tensor.storage, columns)
    most = device.binding_limit // row_bytes
    if not most:
        raise DeviceError(
            f"a row of {tensor.name} takes {row_bytes} bytes, but {device.name} binds at most "
            f"{device.binding_limit}; give another --device"
        )
    parts = []
    data = tensor.data.reshape(rows, -1)
    for first in range(0, rows, most):
        packed = _pack(data[first : first + most], tensor.storage, columns)
        buffer = device.buffer(packed.nbytes, tensor.name, packed)
        parts.append(Part(buffer, first, len(packed)))
    return Matrix(tensor, columns, tuple(parts))


def _row_bytes(storage: StorageType, columns: int) -> int:
    if storage is StorageType.Q8_0:
        return columns // Q8_BLOCK_LEN * (Q8_BLOCK_LEN + 4)
    return -(-columns // STEP) * STEP * (4 if storage is StorageType.F32 else 2)


def _pack(data: NDArray[Any], storage: StorageType, columns: int) -> NDArray[Any]:
    """Rows of a tensor's data as the shaders read them, [rows, ...]."""
    if storage is StorageType.Q8_0:
        blocks = np.ascontiguousarray(data).view(np.uint8).reshape(len(data), -1, Q8_BLOCK_BYTES)
        scales = np.ascontiguousarray(blocks[:, :, :2]).view(np.float16).astype(np.float32)
        return np.concatenate([scales.view(np.uint8), blocks[:, :, 2:]], axis=2)
    missing = -columns % STEP
    return np.pad(data, ((0, 0), (0, missing))) if missing else np.ascontiguousarray(data)
