"""What each op of the table computes, in PyTorch. All shapes follow from the number of rows.

Nothing here waits for the device or copies to it, so that a run can be captured. Kernels are few:
on a GPU a run of small ops takes as long as there are kernels, not as long as they compute.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from mosstalk.compute import ops
from mosstalk.compute.cuda.attention import attention, cache_write
from mosstalk.compute.cuda.run import Run
from mosstalk.compute.cuda.sampling import sample
from mosstalk.compute.ops import GeluKind, Op, RopePairs


def compute(run: Run, op: Op) -> None:
    """Run one op; its result goes where the op says."""
    result = _COMPUTE[type(op)](run, op)
    if result is not None:
        out = op.out  # type: ignore[union-attr]  # those that return None write themselves
        run.put(out, result)


def _embed(run: Run, op: ops.Embed) -> Tensor:
    count = len(op.tables)
    ids = run[op.ids][:, op.first_column : op.first_column + count]
    sizes = run.constant(torch.int32, *(table.rows for table in op.tables))
    inside = (ids >= 0) & (ids < sizes)
    safe = torch.where(inside, ids, run.constant(torch.int32, 0))
    rows = [run.weight(table).rows(safe[:, i]) for i, table in enumerate(op.tables)]
    zero = run.constant(torch.float32, 0)
    if op.concat:
        parts = [torch.where(inside[:, i, None], row, zero) for i, row in enumerate(rows)]
        return torch.cat(parts, dim=1)
    if count == 1:
        return torch.where(inside, rows[0], zero)
    return torch.where(inside[:, :, None], torch.stack(rows, dim=1), zero).sum(dim=1)


def _gather(run: Run, op: ops.Gather) -> Tensor:
    return run.whole(op.x).index_select(0, run[op.index][:, 0])


def _linear(run: Run, op: ops.Linear) -> Tensor:
    return run.product(run[op.x], run.weight(op.weight), run.vector(op.bias))


def _layer_norm(run: Run, op: ops.LayerNorm) -> Tensor:
    gain, bias = run.vector(op.weight), run.vector(op.bias)
    return functional.layer_norm(run[op.x], (op.x.width,), gain, bias, op.eps)


def _rms_norm(run: Run, op: ops.RmsNorm) -> Tensor:
    groups = run[op.x].unflatten(1, (-1, op.group))
    normed = functional.rms_norm(groups, (op.group,), run.vector(op.weight), op.eps)
    return normed.flatten(1)


def _rope(run: Run, op: ops.Rope) -> None:
    """Each value times its cosine, plus its partner times the sine with the right sign."""
    half = op.head_dim // 2
    interleaved = op.pairs is RopePairs.INTERLEAVED
    pair_axis = 3 if interleaved else 2

    def make() -> tuple[Tensor, Tensor]:
        cos, sin = run[op.turns][:, None, :].split(half, dim=2)  # [n, 1, half]
        return cos.unsqueeze(pair_axis), torch.stack((-sin, sin), dim=pair_axis)

    cos, sin = run.shared(("turns", op.turns, op.pairs), make)
    columns = slice(op.first_column, op.first_column + op.heads * op.head_dim)
    pairs = (half, 2) if interleaved else (2, half)
    x = run[op.x][:, columns].unflatten(1, (op.heads, *pairs))
    partner = x.flip(pair_axis)
    x.mul_(cos).addcmul_(partner, sin)


def _gelu(run: Run, op: ops.Gelu) -> Tensor:
    return functional.gelu(run[op.x], approximate="tanh" if op.kind is GeluKind.TANH else "none")


def _silu_gate(run: Run, op: ops.SiluGate) -> Tensor:
    return functional.silu(run[op.gate]) * run[op.up]


def _add(run: Run, op: ops.Add) -> Tensor:
    scale = run.vector(op.scale)
    if scale is None:
        return torch.add(run[op.a], run[op.b], alpha=op.factor)
    return torch.addcmul(run[op.a], run[op.b], scale)


def _patch_up(run: Run, op: ops.PatchUp) -> Tensor:
    patches = run[op.x].unflatten(1, (op.out.width, op.patch)).transpose(1, 2)
    return patches.clone(memory_format=torch.contiguous_format).flatten(0, 1)


def _patch_down(run: Run, op: ops.PatchDown) -> Tensor:
    patches = run[op.x].unflatten(0, (-1, op.patch)).transpose(1, 2)
    return patches.clone(memory_format=torch.contiguous_format).flatten(1)


def _argmax(run: Run, op: ops.Argmax) -> None:
    run[op.out][:, op.column] = run[op.x].argmax(dim=1).int()


_COMPUTE: dict[type[Op], Callable[[Run, Any], Tensor | None]] = {
    ops.Embed: _embed,
    ops.Gather: _gather,
    ops.Linear: _linear,
    ops.LayerNorm: _layer_norm,
    ops.RmsNorm: _rms_norm,
    ops.Rope: _rope,
    ops.CacheWrite: cache_write,
    ops.Attention: attention,
    ops.Gelu: _gelu,
    ops.SiluGate: _silu_gate,
    ops.Add: _add,
    ops.PatchUp: _patch_up,
    ops.PatchDown: _patch_down,
    ops.Argmax: _argmax,
    ops.Sample: sample,
}
