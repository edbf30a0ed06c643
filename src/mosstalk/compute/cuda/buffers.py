"""The buffers of a program that the host sees, on both sides of the bus.

Inputs that no op writes lie in one block, which goes to the device in one copy. What ops write
comes back when somebody asks for it.
"""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mosstalk.compute import ops
from mosstalk.compute.ops import Buffer
from mosstalk.compute.program import Program

_ALIGNMENT = 64  # values of a buffer's start in the block: 256 bytes


class VisibleBuffers:
    """Inputs, outputs and ids of a program.

    Attributes:
        given: inputs that no op writes, by index: the host has what the device has.
        host: the host's arrays by index, perhaps behind; see `array`.
        on_device: all by index, [max_rows * multiple, width].
    """

    def __init__(self, program: Program, device: torch.device) -> None:
        self._max_rows = program.max_rows
        changed = (_changed_by(op) for op in program.ops)
        written = {buffer.index for buffer in changed if buffer is not None}
        inputs = {b.index: b for b in program.inputs.values()}
        kept = {**inputs, **{b.index: b for b in program.outputs.values()}}
        kept.update({b.index: b for b in program.buffers if b.is_int})
        self.given = {i: b for i, b in inputs.items() if i not in written}
        self._inputs = set(inputs)
        self.host: dict[int, NDArray[Any]] = {}
        self._behind: dict[int, int] = {}  # rows of the call after which the host is behind
        self._touched: set[int] = set()
        self.on_device: dict[int, Tensor] = {}
        self._make_block(device)
        self._results = [b for index, b in kept.items() if index not in self.on_device]
        for buffer in self._results:
            dtype = torch.int32 if buffer.is_int else torch.float32
            shape = self._shape(buffer)
            self.on_device[buffer.index] = torch.zeros(shape, dtype=dtype, device=device)

    def _make_block(self, device: torch.device) -> None:
        starts, end = [], 0
        for buffer in self.given.values():
            starts.append(end)
            size = int(np.prod(self._shape(buffer)))
            end += -(-size // _ALIGNMENT) * _ALIGNMENT
        self._block = torch.zeros(end, pin_memory=device.type == "cuda")
        self._block_on_device = torch.zeros(end, device=device)
        for buffer, start in zip(self.given.values(), starts, strict=True):
            self.host[buffer.index] = self._cut(self._block, buffer, start).numpy()
            self.on_device[buffer.index] = self._cut(self._block_on_device, buffer, start)

    def _cut(self, block: Tensor, buffer: Buffer, start: int) -> Tensor:
        """The view of a buffer's place in a block of float32."""
        shape = self._shape(buffer)
        values = block[start : start + int(np.prod(shape))]
        return values.view(torch.int32 if buffer.is_int else torch.float32).view(shape)

    def _shape(self, buffer: Buffer) -> tuple[int, int]:
        return self._max_rows * buffer.multiple, buffer.width

    def array(self, buffer: Buffer) -> NDArray[Any]:
        """The host's view with the newest values; an input's is copied before the next run."""
        index = buffer.index
        if index not in self.host:
            dtype = np.int32 if buffer.is_int else np.float32
            self.host[index] = np.zeros(self._shape(buffer), dtype)
        rows = self._behind.pop(index, 0)
        if rows:
            self.host[index][:rows] = self.on_device[index][:rows].cpu().numpy()
        if index in self._inputs:
            self._touched.add(index)
        return self.host[index]

    def upload(self) -> None:
        """Copy to the device what may have been written since the last run."""
        if self._touched & self.given.keys():
            self._block_on_device.copy_(self._block)
        for index in self._touched - self.given.keys():
            self.on_device[index].copy_(torch.from_numpy(self.host[index]))
        self._touched.clear()

    def ran(self, rows: int) -> None:
        """A run over `rows` rows has left results on the device."""
        for buffer in self._results:
            behind = rows * buffer.multiple
            self._behind[buffer.index] = max(behind, self._behind.get(buffer.index, 0))


def _changed_by(op: ops.Op) -> Buffer | None:
    """The buffer that an op writes to, if any."""
    if isinstance(op, ops.CacheWrite):
        return None
    return op.x if isinstance(op, ops.Rope) else op.out
