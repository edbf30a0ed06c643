"""Products of few rows with a packed matrix, which is read once and converted in registers.

A Triton kernel: one program for `_ROWS_OUT` rows of the matrix, a sum in float32 for each column of
a tile, and one reduction at the end.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from mosstalk.checkpoint.storage import Q8_BLOCK_LEN
from mosstalk.compute.cuda.weights import DeviceWeight

MAX_ROWS = 8  # of x; the products of more are bound by arithmetic, not by reading the matrix
_ROWS_OUT = 4
_TILE = 1024  # products in a tile of one row of the matrix, over all rows of x; 4 warps hold it


@triton.jit(do_not_specialize=["num_rows"])  # type: ignore[untyped-decorator]
def _kernel(  # type: ignore[no-untyped-def]  # Triton takes no other annotations
    out,
    x,
    values,
    scales,
    bias,
    num_rows,
    num_out,
    columns,
    has_scales: tl.constexpr,
    has_bias: tl.constexpr,
    block: tl.constexpr,
    x_rows: tl.constexpr,
    out_rows: tl.constexpr,
    width: tl.constexpr,
) -> None:
    """out [num_rows, num_out] = x [num_rows, columns] times values [num_out, columns], + bias."""
    r = tl.arange(0, x_rows)
    o = tl.program_id(0) * out_rows + tl.arange(0, out_rows)
    k = tl.arange(0, width)
    sums = tl.zeros((x_rows, out_rows, width), tl.float32)
    wide = o.to(tl.int64)[:, None]
    for first in range(0, columns, width):
        at = first + k
        inside = (o < num_out)[:, None] & (at < columns)[None, :]
        w = tl.load(values + wide * columns + at[None, :], mask=inside, other=0).to(tl.float32)
        if has_scales:
            place = scales + wide * (columns // block) + (at // block)[None, :]
            w = w * tl.load(place, mask=inside, other=0).to(tl.float32)
        given = (r < num_rows)[:, None] & (at < columns)[None, :]
        v = tl.load(x + r[:, None] * columns + at[None, :], mask=given, other=0)
        sums += v[:, None, :] * w[None, :, :]
    result = tl.sum(sums, axis=2)
    if has_bias:
        result += tl.load(bias + o, mask=o < num_out, other=0)[None, :]
    wanted = (r < num_rows)[:, None] & (o < num_out)[None, :]
    tl.store(out + r[:, None] * num_out + o[None, :], result, mask=wanted)


def packed_product(x: Tensor, weight: DeviceWeight, bias: Tensor | None) -> Tensor:
    """As `plain_product`, for a packed matrix and at most MAX_ROWS rows of x."""
    num_out, columns = weight.stored.shape
    x = x.contiguous()
    x_rows = triton.next_power_of_2(len(x))
    out = torch.empty((len(x), num_out), dtype=torch.float32, device=x.device)
    _kernel[(triton.cdiv(num_out, _ROWS_OUT),)](
        out,
        x,
        weight.values,
        weight.values if weight.scales is None else weight.scales,
        x if bias is None else bias,
        len(x),
        num_out,
        columns,
        has_scales=weight.scales is not None,
        has_bias=bias is not None,
        block=Q8_BLOCK_LEN,
        x_rows=x_rows,
        out_rows=_ROWS_OUT,
        width=_TILE // x_rows,
    )
    return out
