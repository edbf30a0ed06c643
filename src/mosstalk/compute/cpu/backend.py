"""Runs programs with the native kernels: translation of the op table, and threads."""

import os
import zlib
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosstalk.checkpoint.storage import StorageType, StoredTensor
from mosstalk.compute import ops
from mosstalk.compute.cpu import _native
from mosstalk.compute.cpu.processor import processor_name
from mosstalk.compute.ops import Buffer, GeluKind, Op, RopePairs, Weight
from mosstalk.compute.program import Program
from mosstalk.compute.state import State
from mosstalk.errors import UsageError

# In the order of `enum class Kind` in native/program.hpp.
_KINDS: tuple[type[Op], ...] = (
    ops.Embed,
    ops.Gather,
    ops.Linear,
    ops.LayerNorm,
    ops.RmsNorm,
    ops.Rope,
    ops.CacheWrite,
    ops.Attention,
    ops.Gelu,
    ops.SiluGate,
    ops.Add,
    ops.PatchUp,
    ops.PatchDown,
    ops.Argmax,
    ops.Sample,
)
_KERNELS = ("avx512", "avx2", "neon", "plain")  # the fastest first
_STORAGES = (StorageType.F32, StorageType.F16, StorageType.BF16, StorageType.Q8_0)


def physical_cores() -> int:
    """Cores that this process may use, without hyper-threads where the system tells."""
    allowed = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else None
    count = len(allowed) if allowed is not None else os.cpu_count() or 1
    siblings = set()
    for cpu in allowed or ():
        path = f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list"
        try:
            with open(path, encoding="ascii") as file:
                siblings.add(file.read())
        except OSError:
            return count
    return len(siblings) or count


def default_threads() -> int:
    """Physical cores less one, at least 1 and at most 4."""
    return min(4, max(1, physical_cores() - 1))


class CpuBackend:
    """The kernels of this processor and a pool of `threads` threads (default_threads() if 0).

    `kernels` names an instruction set ("avx512", "avx2", "neon", "plain") for tests, and where
    faster ones compute wrong; the best one otherwise.
    """

    name = "cpu"
    exact_rows = True

    def __init__(self, threads: int = 0, kernels: str = "") -> None:
        self.threads = threads or default_threads()
        self.kernels = _native.kernels(kernels)
        try:
            self.pool = _native.Pool(self.threads)
        except RuntimeError as error:
            raise UsageError(
                f"the system refused {self.threads} threads; give fewer with --threads"
            ) from error

    @property
    def identity(self) -> str:
        """The kernels, the build that they come from, and the processor."""
        build = os.stat(_native.__file__)
        stamp = zlib.crc32(f"{build.st_size} {build.st_mtime_ns}".encode())
        return f"{self.kernels} kernels of build {stamp:08x}, {processor_name()}"

    def plainer(self) -> "CpuBackend | None":
        """The next slower kernels that this processor runs, on as many threads; else None."""
        for kernels in _KERNELS[_KERNELS.index(self.kernels) + 1 :]:
            with suppress(ValueError):  # not of this processor
                return CpuBackend(self.threads, kernels)
        return None

    def build(self, program: Program) -> "CpuProgram":
        return CpuProgram(program, self)


class CpuProgram:
    """A program handed to the native code."""

    def __init__(self, program: Program, backend: CpuBackend) -> None:
        self.program = program
        self._native = _native.Program(program.max_rows, backend.pool, backend.kernels)
        plan = program.storage_plan()
        for buffer, block in zip(program.buffers, plan, strict=True):
            shared_with = -1 if block == buffer.index else block
            self._native.add_buffer(buffer.width, buffer.multiple, buffer.is_int, shared_with)
        self._held = [_bytes_of(tensor) for tensor in program.weights]
        for tensor, data in zip(program.weights, self._held, strict=True):
            rows = tensor.shape[0] if len(tensor.shape) == 2 else 1
            storage = _STORAGES.index(tensor.storage)
            self._native.add_weight(data, rows, tensor.shape[-1], storage)
        for op in program.ops:
            self._native.add_op(_KINDS.index(type(op)), *_encode(op))
        self._arrays: dict[int, NDArray[Any]] = {}

    def array(self, buffer: Buffer) -> NDArray[Any]:
        """The memory of a buffer, [max_rows * multiple, width]."""
        if buffer.index not in self._arrays:
            self._arrays[buffer.index] = self._native.buffer(buffer.index)
        return self._arrays[buffer.index]

    def run(self, rows: int, state: State | None = None) -> None:
        """Run all ops over the first `rows` rows."""
        self._native.run(rows, None if state is None else _native_state(state))


def _bytes_of(tensor: StoredTensor) -> NDArray[np.uint8]:
    return np.ascontiguousarray(tensor.data).reshape(-1).view(np.uint8)


def _native_state(state: State) -> Any:
    keys, values, seen = state.keys, state.values, state.seen
    if state.native is None:
        state.native = _native.State()
        for cache in zip(keys, values, strict=True):
            state.native.add_cache(*cache)
        for ids in seen:
            state.native.add_seen(ids)
    return state.native


def _index(item: Buffer | Weight | None) -> int:
    return -1 if item is None else item.index


def _encode(op: Op) -> tuple[list[int], list[float]]:
    """The numbers of an op in the order that native/program.cpp reads them."""
    match op:
        case ops.Embed(out, ids, first_column, tables, concat):
            return [out.index, ids.index, first_column, concat, *(t.index for t in tables)], []
        case ops.Gather(out, x, index):
            return [out.index, x.index, index.index], []
        case ops.Linear(out, x, weight, bias):
            return [out.index, x.index, weight.index, _index(bias)], []
        case ops.LayerNorm(out, x, weight, bias, eps):
            return [out.index, x.index, weight.index, bias.index], [eps]
        case ops.RmsNorm(out, x, weight, group, eps):
            return [out.index, x.index, weight.index, group], [eps]
        case ops.Rope(x, turns, first_column, heads, head_dim, pairs):
            interleaved = pairs is RopePairs.INTERLEAVED
            return [x.index, turns.index, first_column, heads, head_dim, interleaved], []
        case ops.CacheWrite():
            what = [op.keys.index, op.key_column, op.values.index, op.value_column]
            return [*what, op.cache, op.positions.index, op.streams.index], []
        case ops.Attention():
            buffers = [op.out.index, op.q.index, op.first_column, op.cache]
            rows = [op.positions.index, op.streams.index]
            return [*buffers, *rows, op.heads, op.head_dim, op.window], [op.scale]
        case ops.Gelu(out, x, kind):
            return [out.index, x.index, kind is GeluKind.TANH], []
        case ops.SiluGate(out, gate, up):
            return [out.index, gate.index, up.index], []
        case ops.Add(out, a, b, scale, factor):
            return [out.index, a.index, b.index, _index(scale)], [factor]
        case ops.PatchUp(out, x, patch) | ops.PatchDown(out, x, patch):
            return [out.index, x.index, patch], []
        case ops.Argmax(out, column, x):
            return [out.index, column, x.index], []
        case ops.Sample():
            inputs = [op.logits.index, op.params.index, op.uniforms.index, op.streams.index]
            return [op.out.index, op.column, *inputs, op.seen], []
