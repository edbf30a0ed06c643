"""Drawing ids on the device by the rules of compute/sampling.py, without asking the host."""

import math
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from mosstalk.compute import ops
from mosstalk.compute.cuda.run import Run


@dataclass(frozen=True, slots=True)
class _Rules:
    """Sampling parameters of each row, as the draws use them: all [n, 1].

    Attributes:
        greedy: bool.
        temperature: 1 for a greedy row.
        last: place of the last id that top-k keeps, from the likeliest on.
        top_p: infinite for no limit.
        penalty: of repeated ids.
    """

    greedy: Tensor
    temperature: Tensor
    last: Tensor
    top_p: Tensor
    penalty: Tensor


def sample(run: Run, op: ops.Sample) -> None:
    """Draws for all rows at once, or one after the other where two may be of one stream.

    The second of two such rows sees the id that the first has drawn.
    """
    rows = run.rows * op.out.multiple
    together = op.seen < 0 or run.distinct_streams
    for first, end in ((0, rows),) if together else [(r, r + 1) for r in range(rows)]:
        part = slice(first, end)
        logits, streams = run[op.logits][part], run[op.streams][part, 0]
        key = ("rules", op.params, logits.shape[1], first, end)
        make = partial(_rules, run, run[op.params][part], logits.shape[1])
        rules = run.shared(key, make)
        seen = None if op.seen < 0 else run.copies.seen.memory.tensors[op.seen]
        marked = None if seen is None else seen.index_select(0, streams)
        chosen = _draw(logits, marked, rules, run[op.uniforms][part, op.column, None])
        run[op.out][part, op.column] = chosen[:, 0]
        if seen is not None:
            assert marked is not None
            places = run.shared(("streams", op.streams, first, end), streams.long)
            seen.index_copy_(0, places, marked.scatter_(1, chosen, True))


def _rules(run: Run, params: Tensor, num_ids: int) -> _Rules:
    """Of `params` [n, 5], see SamplingParams.row."""
    greedy, temperature, top_k, top_p, penalty = params.split(1, dim=1)
    is_greedy, one = greedy > 0, run.constant(torch.float32, 1)
    unlimited = (top_k <= 0) | (top_k >= num_ids)
    last = torch.where(unlimited, run.constant(torch.float32, num_ids), top_k) - 1
    return _Rules(
        is_greedy,
        torch.where(is_greedy, one, temperature),
        last.long(),
        torch.where(top_p < 1, top_p, run.constant(torch.float32, math.inf)),
        penalty,
    )


def _draw(logits: Tensor, seen: Tensor | None, rules: _Rules, uniforms: Tensor) -> Tensor:
    """Ids int64 [n, 1] from logits [n, ids], `seen` bool [n, ids] and uniforms [n, 1].

    Probabilities are in float64 as in compute/sampling.py. Where two different logits have equal
    ones, top-p counts the larger logit first and not the lower id.
    """
    scores = logits
    if seen is not None:
        moved = torch.where(logits < 0, logits * rules.penalty, logits / rules.penalty)
        scores = torch.where(seen, moved, logits)
    scores = scores / rules.temperature
    falling, order = torch.sort(scores, dim=1, descending=True, stable=True)
    weights = (falling - falling[:, :1]).double().exp_()
    weights.mul_(falling >= falling.gather(1, rules.last))
    shares = weights / weights.sum(dim=1, keepdim=True)
    weights.mul_(shares.cumsum(dim=1) - shares <= rules.top_p)
    shares = weights / weights.sum(dim=1, keepdim=True)
    chances = torch.zeros_like(shares).scatter_(1, order, shares)
    sums = chances.cumsum(dim=1)
    # The last id of any chance is drawn where rounding leaves the whole sum below the uniform.
    passed = ((sums > uniforms) | (sums >= sums[:, -1:])) & (chances > 0)
    drawn = passed.byte().argmax(dim=1, keepdim=True)  # the first
    return torch.where(rules.greedy, order[:, :1], drawn)
