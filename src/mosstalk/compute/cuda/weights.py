"""Weights in a device's memory, as they are stored, and products with them in float32.

q8_0 blocks are taken apart into int8 values and f16 scales, so that both lie aligned; the bytes are
as many as in the file.
"""

from dataclasses import dataclass
from weakref import WeakValueDictionary

import numpy as np
import torch
from torch import Tensor

from mosstalk.checkpoint.storage import Q8_BLOCK_BYTES, Q8_BLOCK_LEN, StorageType, StoredTensor

# Values of a matrix that are converted at a time: 16 MB as float32, which stay in a GPU's cache.
SLAB_LEN = 2**22


@dataclass(frozen=True, slots=True, weakref_slot=True, eq=False)
class DeviceWeight:
    """A stored tensor on a device.

    Attributes:
        stored: what it was made of.
        values: float32, float16 or bfloat16 of its shape; int8 for q8_0. A vector is float32.
        scales: float16 [rows, columns / 32] for q8_0.
    """

    stored: StoredTensor
    values: Tensor
    scales: Tensor | None = None

    def float32(self, first: int = 0, end: int | None = None) -> Tensor:
        """Rows [first, end) of a matrix, or a vector, as float32."""
        if self.values.dtype == torch.float32:
            return self.values[first:end]
        return _unpacked(
            self.values[first:end], None if self.scales is None else self.scales[first:end]
        )

    def rows(self, ids: Tensor) -> Tensor:
        """Rows of a matrix by their numbers [n]: float32 [n, columns]."""
        scales = None if self.scales is None else self.scales.index_select(0, ids)
        return _unpacked(self.values.index_select(0, ids), scales)


class WeightStore:
    """The tensors that the programs on a device use, each there once for as long as one uses it."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        # By id: a DeviceWeight holds its tensor, so that no other has the same id meanwhile.
        self._held: WeakValueDictionary[int, DeviceWeight] = WeakValueDictionary()

    def get(self, tensor: StoredTensor) -> DeviceWeight:
        """The tensor on the device, copied there if it is new."""
        found = self._held.get(id(tensor))
        if found is None:
            found = self._held[id(tensor)] = _upload(tensor, self._device)
        return found


def _upload(tensor: StoredTensor, device: torch.device) -> DeviceWeight:
    if len(tensor.shape) != 2:
        return DeviceWeight(tensor, _on_device(tensor.to_float32(), device))
    if tensor.storage is StorageType.Q8_0:
        rows = tensor.shape[0]
        blocks = tensor.data.reshape(rows, -1, Q8_BLOCK_BYTES)
        scales = np.ascontiguousarray(blocks[:, :, :2]).view(np.float16).reshape(rows, -1)
        values = np.ascontiguousarray(blocks[:, :, 2:]).view(np.int8).reshape(tensor.shape)
        return DeviceWeight(tensor, _on_device(values, device), _on_device(scales, device))
    kind = {
        StorageType.F32: np.float32,
        StorageType.F16: np.float16,
        StorageType.BF16: np.int16,  # NumPy has no type for it
    }[tensor.storage]
    values = _on_device(tensor.data.view(kind).reshape(tensor.shape), device)
    bf16 = tensor.storage is StorageType.BF16
    return DeviceWeight(tensor, values.view(torch.bfloat16) if bf16 else values)


def _on_device(array: np.ndarray, device: torch.device) -> Tensor:
    """A copy; of memory of our own, as PyTorch takes no array of a read-only mapping."""
    return torch.from_numpy(np.array(array, order="C")).to(device)


def _unpacked(values: Tensor, scales: Tensor | None) -> Tensor:
    wide = values.float()
    if scales is None:
        return wide
    blocks = wide.view(len(wide), -1, Q8_BLOCK_LEN) * scales.float()[:, :, None]
    return blocks.view(wide.shape)


def plain_product(x: Tensor, weight: DeviceWeight, bias: Tensor | None) -> Tensor:
    """x [n, columns] times the matrix [rows, columns], plus bias: [n, rows].

    A packed matrix is converted slab by slab.
    """
    rows, columns = weight.stored.shape
    if weight.values.dtype == torch.float32:
        return torch.nn.functional.linear(x, weight.values, bias)
    slab_rows = max(1, SLAB_LEN // columns)
    if rows <= slab_rows:
        return torch.nn.functional.linear(x, weight.float32(), bias)
    out = x.new_empty((len(x), rows))
    for first in range(0, rows, slab_rows):
        end = min(first + slab_rows, rows)
        part = None if bias is None else bias[first:end]
        out[:, first:end] = torch.nn.functional.linear(x, weight.float32(first, end), part)
    return out
