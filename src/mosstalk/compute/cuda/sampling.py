"""Drawing ids on the device by the rules of compute/sampling.py, without asking the host."""

import torch
from torch import Tensor

from mosstalk.compute import ops
from mosstalk.compute.cuda.run import Run


def sample(run: Run, op: ops.Sample) -> None:
    """Draws for all rows at once, or one after the other where two may be of one stream.

    The second of two such rows sees the id that the first has drawn.
    """
    rows = run.rows * op.out.multiple
    together = op.seen < 0 or run.distinct_streams
    for part in (slice(None),) if together else [slice(r, r + 1) for r in range(rows)]:
        logits, params = run[op.logits][part], run[op.params][part]
        uniforms = run[op.uniforms][part, op.column, None]
        streams = run[op.streams][part, 0]
        seen = None if op.seen < 0 else run.copies.seen.memory.tensors[op.seen]
        marked = None if seen is None else seen.index_select(0, streams)
        chosen = draw(logits, marked, params, uniforms)
        run[op.out][part, op.column] = chosen[:, 0].int()
        if seen is not None:
            assert marked is not None
            seen.index_copy_(0, streams.long(), marked.scatter(1, chosen, True))


def draw(logits: Tensor, seen: Tensor | None, params: Tensor, uniforms: Tensor) -> Tensor:
    """Ids int64 [n, 1] from logits [n, ids], `seen` bool [n, ids], params [n, 5], uniforms [n, 1].

    Probabilities are in float64 as in compute/sampling.py. Where two different logits have equal
    ones, top-p counts the larger logit first and not the lower id.
    """
    greedy, temperature, top_k, top_p, penalty = params.split(1, dim=1)
    is_greedy, num_ids = greedy > 0, logits.shape[1]
    scores = logits
    if seen is not None:
        moved = torch.where(logits < 0, logits * penalty, logits / penalty)
        scores = torch.where(seen, moved, logits)
    likeliest = scores.argmax(dim=1, keepdim=True)
    scores = scores / temperature.masked_fill(is_greedy, 1.0)
    falling, order = torch.sort(scores, dim=1, descending=True, stable=True)
    unlimited = (top_k <= 0) | (top_k >= num_ids)
    last = (top_k - 1).masked_fill(unlimited, num_ids - 1).long()
    weights = (falling - falling[:, :1]).double().exp()
    weights = weights.masked_fill(falling < falling.gather(1, last), 0.0)
    before = _shares(weights).cumsum(dim=1) - _shares(weights)
    weights = weights.masked_fill((top_p < 1) & (before > top_p), 0.0)
    chances = _shares(torch.zeros_like(weights).scatter(1, order, weights))
    place = torch.arange(num_ids, device=logits.device).expand_as(chances)
    passed = (chances.cumsum(dim=1) > uniforms) & (chances > 0)
    first = place.masked_fill(~passed, num_ids).amin(dim=1, keepdim=True)
    last_kept = place.masked_fill(chances == 0, 0).amax(dim=1, keepdim=True)
    drawn = torch.where(first < num_ids, first, last_kept)
    return torch.where(is_greedy, likeliest, drawn)


def _shares(weights: Tensor) -> Tensor:
    return weights / weights.sum(dim=1, keepdim=True)
