"""The NumPy backend: slow and plain, it defines what every op of the table computes.

Sums run in float64 and are rounded to float32 once, so that results are closer to the formula
than any float32 backend's. It is the oracle of the other backends' tests and is never tuned.
"""

from collections.abc import Callable
from math import erf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosstalk.compute import ops
from mosstalk.compute.ops import Buffer, GeluKind, Op, RopePairs, Weight
from mosstalk.compute.program import Program
from mosstalk.compute.sampling import draw
from mosstalk.compute.state import KEY_BLOCK, State

_erf = np.frompyfunc(erf, 1, 1)


class ReferenceProgram:
    """A program ready to run on NumPy arrays."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.arrays: list[NDArray[Any]] = [
            np.zeros((program.max_rows * b.multiple, b.width), np.int32 if b.is_int else np.float32)
            for b in program.buffers
        ]
        self.weights = [tensor.to_float32() for tensor in program.weights]

    def array(self, buffer: Buffer) -> NDArray[Any]:
        """The memory of a buffer, [max_rows * multiple, width]."""
        return self.arrays[buffer.index]

    def run(self, rows: int, state: State | None = None) -> None:
        """Run all ops over the first `rows` rows."""
        assert 0 < rows <= self.program.max_rows, rows
        for op in self.program.ops:
            _COMPUTE[type(op)](_Run(self, rows, state), op)


class _Run:
    """One call: buffers cut to the rows in use."""

    def __init__(self, owner: ReferenceProgram, rows: int, state: State | None) -> None:
        self.owner, self.rows, self.state = owner, rows, state

    def __getitem__(self, buffer: Buffer) -> NDArray[Any]:
        return self.owner.arrays[buffer.index][: self.rows * buffer.multiple]

    def weight(self, weight: Weight) -> NDArray[np.float64]:
        return self.owner.weights[weight.index].astype(np.float64)

    @property
    def caches(self) -> State:
        assert self.state is not None, "this program needs a state"
        return self.state


def _embed(run: _Run, op: ops.Embed) -> None:
    parts = []
    for i, table in enumerate(op.tables):
        ids = run[op.ids][:, op.first_column + i]
        inside = (ids >= 0) & (ids < table.rows)
        rows = run.weight(table)[np.where(inside, ids, 0)]
        parts.append(np.where(inside[:, None], rows, 0.0))
    run[op.out][:] = np.concatenate(parts, axis=1) if op.concat else np.sum(parts, axis=0)


def _gather(run: _Run, op: ops.Gather) -> None:
    run[op.out][:] = run.owner.array(op.x)[run[op.index][:, 0]]


def _linear(run: _Run, op: ops.Linear) -> None:
    product = run[op.x].astype(np.float64) @ run.weight(op.weight).T
    run[op.out][:] = product if op.bias is None else product + run.weight(op.bias)


def _layer_norm(run: _Run, op: ops.LayerNorm) -> None:
    x = run[op.x].astype(np.float64)
    centred = x - x.mean(axis=1, keepdims=True)
    variance = (centred**2).mean(axis=1, keepdims=True)
    run[op.out][:] = centred / np.sqrt(variance + op.eps) * run.weight(op.weight) + run.weight(
        op.bias
    )


def _rms_norm(run: _Run, op: ops.RmsNorm) -> None:
    x = run[op.x].astype(np.float64).reshape(-1, op.group)
    scale = np.sqrt((x**2).mean(axis=1, keepdims=True) + op.eps)
    run[op.out][:] = (x / scale * run.weight(op.weight)).reshape(run[op.out].shape)


def _rope(run: _Run, op: ops.Rope) -> None:
    half = op.head_dim // 2
    turns = run[op.turns].astype(np.float64)
    cos, sin = turns[:, None, :half], turns[:, None, half:]
    columns = slice(op.first_column, op.first_column + op.heads * op.head_dim)
    x = run[op.x][:, columns].astype(np.float64).reshape(-1, op.heads, op.head_dim)
    out = np.empty_like(x)
    interleaved = op.pairs is RopePairs.INTERLEAVED
    first = (..., slice(0, None, 2) if interleaved else slice(None, half))
    second = (..., slice(1, None, 2) if interleaved else slice(half, None))
    out[first] = x[first] * cos - x[second] * sin
    out[second] = x[second] * cos + x[first] * sin
    run[op.x][:, columns] = out.reshape(len(out), -1)


def _cache_write(run: _Run, op: ops.CacheWrite) -> None:
    keys, values = run.caches.keys[op.cache], run.caches.values[op.cache]
    _, heads, length, head_dim = values.shape
    size = heads * head_dim
    new_keys = run[op.keys][:, op.key_column : op.key_column + size]
    new_values = run[op.values][:, op.value_column : op.value_column + size]
    places = (run[op.positions][:, 0], run[op.streams][:, 0])
    for key, value, position, stream in zip(new_keys, new_values, *places, strict=True):
        at = position % length
        keys[stream, :, at // KEY_BLOCK, :, at % KEY_BLOCK] = key.reshape(heads, head_dim)
        values[stream, :, at] = value.reshape(heads, head_dim)


def _attention(run: _Run, op: ops.Attention) -> None:
    keys, values = run.caches.keys[op.cache], run.caches.values[op.cache]
    _, cache_heads, length, head_dim = values.shape
    shared = op.heads // cache_heads
    for r, (position, stream) in enumerate(
        zip(run[op.positions][:, 0], run[op.streams][:, 0], strict=True)
    ):
        first = max(0, position - op.window + 1) if op.window else 0
        at = np.arange(first, position + 1) % length
        for head in range(op.heads):
            column = op.first_column + head * head_dim
            q = run[op.q][r, column : column + head_dim].astype(np.float64)
            blocks = keys[stream, head // shared]
            k = blocks[at // KEY_BLOCK, :, at % KEY_BLOCK].astype(np.float64)
            v = values[stream, head // shared][at].astype(np.float64)
            scores = k @ q * op.scale
            weights = np.exp(scores - scores.max())
            run[op.out][r, head * head_dim : (head + 1) * head_dim] = weights @ v / weights.sum()


def _gelu(run: _Run, op: ops.Gelu) -> None:
    x = run[op.x].astype(np.float64)
    if op.kind is GeluKind.TANH:
        gate = np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))
    else:
        gate = _erf(x / np.sqrt(2)).astype(np.float64)
    run[op.out][:] = 0.5 * x * (1 + gate)


def _silu_gate(run: _Run, op: ops.SiluGate) -> None:
    gate, up = run[op.gate].astype(np.float64), run[op.up].astype(np.float64)
    run[op.out][:] = gate / (1 + np.exp(-gate)) * up


def _add(run: _Run, op: ops.Add) -> None:
    scale = op.factor if op.scale is None else run.weight(op.scale)
    run[op.out][:] = run[op.a] + scale * run[op.b].astype(np.float64)


def _patch_up(run: _Run, op: ops.PatchUp) -> None:
    x = run[op.x].reshape(len(run[op.x]), op.out.width, op.patch)
    run[op.out][:] = x.transpose(0, 2, 1).reshape(-1, op.out.width)


def _patch_down(run: _Run, op: ops.PatchDown) -> None:
    x = run[op.x].reshape(-1, op.patch, op.x.width)
    run[op.out][:] = x.transpose(0, 2, 1).reshape(len(x), -1)


def _argmax(run: _Run, op: ops.Argmax) -> None:
    run[op.out][:, op.column] = run[op.x].argmax(axis=1)


def _sample(run: _Run, op: ops.Sample) -> None:
    for r, stream in enumerate(run[op.streams][:, 0]):
        seen = run.caches.seen[op.seen][stream] if op.seen >= 0 else None
        chosen = draw(run[op.logits][r], seen, run[op.params][r], run[op.uniforms][r, op.column])
        run[op.out][r, op.column] = chosen
        if seen is not None:
            seen[chosen] = 1


_COMPUTE: dict[type[Op], Callable[[_Run, Any], None]] = {
    ops.Embed: _embed,
    ops.Gather: _gather,
    ops.Linear: _linear,
    ops.LayerNorm: _layer_norm,
    ops.RmsNorm: _rms_norm,
    ops.Rope: _rope,
    ops.CacheWrite: _cache_write,
    ops.Attention: _attention,
    ops.Gelu: _gelu,
    ops.SiluGate: _silu_gate,
    ops.Add: _add,
    ops.PatchUp: _patch_up,
    ops.PatchDown: _patch_down,
    ops.Argmax: _argmax,
    ops.Sample: _sample,
}
