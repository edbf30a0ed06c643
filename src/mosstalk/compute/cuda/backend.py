"""Runs programs with PyTorch: on a GPU as CUDA graphs, on PyTorch's own CPU device op by op."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import fields
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mosstalk.checkpoint.storage import StorageType, from_float32
from mosstalk.compute import ops
from mosstalk.compute.cuda.buffers import VisibleBuffers
from mosstalk.compute.cuda.caches import MemoryPool, StateCopies
from mosstalk.compute.cuda.errors import device_errors
from mosstalk.compute.cuda.facts import driver_version, gpu_name
from mosstalk.compute.cuda.graphs import GraphMemory, Graphs
from mosstalk.compute.cuda.run import Constants, Product, Run
from mosstalk.compute.cuda.settings import full_precision
from mosstalk.compute.cuda.table import compute
from mosstalk.compute.cuda.weights import DeviceWeight, WeightStore, plain_product
from mosstalk.compute.ops import Buffer
from mosstalk.compute.program import Program
from mosstalk.compute.state import State


class CudaBackend:
    """One GPU, or PyTorch's CPU device, which computes the same without graphs and Triton."""

    name = "cuda"
    threads = 1
    exact_rows = False  # a product sums in another order for other numbers of rows

    def __init__(self, device: torch.device) -> None:
        self.device = device
        with self.calls():
            self.product, self._kernels = _product_on(device)
            self.graph_memory = GraphMemory() if device.type == "cuda" else None
        self.weights = WeightStore(device)
        self.memories = MemoryPool(device)
        self.constants = Constants(device)

    @property
    def identity(self) -> str:
        """The GPU, its driver, PyTorch and what multiplies packed weights."""
        computes = f"PyTorch {torch.__version__}, {self._kernels}"
        if self.device.type != "cuda":
            return f"{self.device}, {computes}"
        return f"{gpu_name(self.device)}, driver {driver_version()}, {computes}"

    def build(self, program: Program) -> "CudaProgram":
        """Raises DeviceError where the device's memory does not hold it."""
        return CudaProgram(program, self)

    @contextmanager
    def calls(self) -> Iterator[None]:
        """What all work on the device is done in."""
        chosen = torch.cuda.device(self.device) if self.device.type == "cuda" else nullcontext()
        with device_errors(self.device), chosen, full_precision(self.device):
            yield


class CudaProgram:
    """A program with its weights and buffers on the device."""

    def __init__(self, program: Program, backend: CudaBackend) -> None:
        self.program = program
        self._backend = backend
        with backend.calls():
            self._weights = [backend.weights.get(tensor) for tensor in program.weights]
            self._buffers = VisibleBuffers(program, backend.device)
        memory = backend.graph_memory
        self._graphs = None if memory is None else Graphs(memory)
        self._last_uses = _last_uses(program)
        # The streams of draws that mark their ids: their rows may depend on each other.
        self._marking = {
            op.streams.index: op.streams
            for op in program.ops
            if isinstance(op, ops.Sample) and op.seen >= 0
        }

    def array(self, buffer: Buffer) -> NDArray[Any]:
        """The host's view of an input or output, [max_rows * multiple, width], until the next run.

        Raises DeviceError where the run that it waits for has failed.
        """
        with device_errors(self._backend.device):
            return self._buffers.array(buffer)

    def run(self, rows: int, state: State | None = None) -> None:
        """Run all ops over the first `rows` rows; it may return before the device is done.

        Raises DeviceError where the device is out of memory or has failed.
        """
        assert 0 < rows <= self.program.max_rows, rows
        backend = self._backend
        distinct = self._has_distinct_streams(rows)
        with backend.calls():
            self._buffers.upload()
            copies = None if state is None else StateCopies(backend.memories, state)
            addresses = () if copies is None else copies.numbers
            if self._graphs is None:
                self._compute(rows, copies, distinct)
            else:
                self._graphs.run(
                    (rows, addresses, distinct), lambda: self._compute(rows, copies, distinct)
                )
        self._buffers.ran(rows)

    def _compute(self, rows: int, copies: StateCopies | None, distinct: bool) -> None:
        run = Run(
            self._buffers.on_device,
            self._weights,
            self._backend.product,
            self._backend.constants,
            rows,
            copies,
            distinct_streams=distinct,
        )
        for op, done in zip(self.program.ops, self._last_uses, strict=True):
            compute(run, op)
            for index in done:
                run.drop(index)

    def _has_distinct_streams(self, rows: int) -> bool:
        if rows == 1:
            return True
        for index, buffer in self._marking.items():
            if index not in self._buffers.given:
                return False
            used = self._buffers.host[index][: rows * buffer.multiple, 0]
            if len(np.unique(used)) < len(used):
                return False
        return True


def _last_uses(program: Program) -> list[list[int]]:
    """For each op the buffers that no later one uses."""
    last = {
        value.index: at
        for at, op in enumerate(program.ops)
        for item in fields(op)
        if isinstance(value := getattr(op, item.name), Buffer)
    }
    done: list[list[int]] = [[] for _ in program.ops]
    for index, at in last.items():
        done[at].append(index)
    return done


def _product_on(device: torch.device) -> tuple[Product, str]:
    """How matrices are multiplied on a device, and its name.

    The Triton kernel is built when it is first used, for which the system may lack a compiler.
    """
    if device.type != "cuda":
        return plain_product, "no Triton"
    try:
        import triton

        from mosstalk.compute.cuda.packed_product import MAX_ROWS, packed_product

        packed_product(*_small_product(device))
    except torch.OutOfMemoryError:
        raise
    except Exception:  # whatever the compiler, its driver and the linker raise
        return plain_product, "no Triton"

    def product(x: Tensor, weight: DeviceWeight, bias: Tensor | None) -> Tensor:
        packed = weight.values.dtype != torch.float32
        few = packed and len(x) <= MAX_ROWS
        return (packed_product if few else plain_product)(x, weight, bias)

    return product, f"Triton {triton.__version__}"


def _small_product(device: torch.device) -> tuple[Tensor, DeviceWeight, None]:
    matrix = from_float32("small", np.ones((4, 32), np.float32), StorageType.Q8_0)
    return torch.ones((1, 32), device=device), WeightStore(device).get(matrix), None
