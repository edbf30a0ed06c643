"""The ops over K/V caches, whose shapes do not change with the rows that are cached."""

import torch
from torch import Tensor

from mosstalk.compute import ops
from mosstalk.compute.cuda.run import Run


def cache_write(run: Run, op: ops.CacheWrite) -> None:
    keys, values = run.copies.caches.cache(op.cache)
    heads, _, head_dim = keys.shape
    places = run.places(op.positions, op.streams, keys.shape[1] // run.copies.num_streams)
    sources = ((keys, op.keys, op.key_column), (values, op.values, op.value_column))
    for cache, buffer, column in sources:
        rows = run[buffer][:, column : column + heads * head_dim]
        cache.index_copy_(1, places, rows.unflatten(1, (heads, head_dim)).transpose(0, 1))


def attention(run: Run, op: ops.Attention) -> Tensor:
    """Scores against every place of the cache; those that a row must not see weigh nothing.

    What lies in such places may be no number, which must not reach a sum even times 0.
    """
    keys, values = run.copies.caches.cache(op.cache)  # [cache_heads, places, head_dim]
    cache_heads, places, head_dim = keys.shape
    shared = op.heads // cache_heads
    q = run[op.q][:, op.first_column : op.first_column + op.heads * head_dim]
    rows, zero = len(q), run.constant(torch.float32, 0)
    q = q.unflatten(1, (cache_heads, shared, head_dim)).transpose(0, 1)
    q = q.reshape(cache_heads, rows * shared, head_dim)
    hidden, seen_by_any = _hidden(run, op, places)
    scores = torch.baddbmm(zero, q, keys.transpose(1, 2), beta=0, alpha=op.scale)
    scores = scores.view(cache_heads, rows, shared, places).masked_fill_(hidden, -torch.inf)
    weights = torch.softmax(scores, dim=-1).view(cache_heads, rows * shared, places)
    heads = torch.bmm(weights, torch.where(seen_by_any, values, zero))
    heads = heads.view(cache_heads, rows, shared * head_dim).transpose(0, 1)
    return heads.reshape(rows, op.heads * head_dim)


def _hidden(run: Run, op: ops.Attention, places: int) -> tuple[Tensor, Tensor]:
    """bool [n, 1, places]: which places each row does not see; [places, 1]: which any row does.

    Place j holds the newest position p' <= p with p' = j modulo the length. It is seen if it lies
    less than the window, and no more than p, before p.
    """
    num_streams = run.copies.num_streams
    length = places // num_streams

    def make() -> tuple[Tensor, Tensor]:
        positions = run[op.positions]  # [n, 1]
        place = torch.arange(length, dtype=torch.int32, device=positions.device)
        reach = positions + 1
        if op.window:
            reach = reach.clamp(max=op.window)
        visible = torch.remainder(positions - place, length) < reach
        if num_streams > 1:
            stream = torch.arange(num_streams, dtype=torch.int32, device=positions.device)
            own = run[op.streams] == stream
            visible = (own[:, :, None] & visible[:, None, :]).flatten(1)
        return ~visible[:, None, :], visible.any(dim=0)[:, None]

    key = ("hidden", op.positions, op.streams, places, op.window)
    made: tuple[Tensor, Tensor] = run.shared(key, make)
    return made
