"""How one id is chosen from logits: the rules that every backend follows (spec nano.md 3.5, 3.6).

In order: repetition penalty; greedy choice; temperature; top-k, keeping ties; top-p; draw.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mosstalk.errors import UsageError

NUM_PARAMS = 5  # columns of `SamplingParams.row`
# Closer to 0 a float32 temperature or penalty would turn logits into infinities, and a top-p
# would round to "no limit"; they act as their limit instead.
_SMALLEST = 1e-6
_LARGEST_TOP_K = 2**24  # exact in float32, and more ids than any table has


@dataclass(frozen=True, slots=True)
class SamplingParams:
    """How ids are drawn. Raises UsageError for values outside their range."""

    temperature: float = 1.0  # 0: greedy
    top_k: int = 0  # 0: no limit
    top_p: float = 1.0  # 1: no limit
    repetition_penalty: float = 1.0  # 1: none

    def __post_init__(self) -> None:
        checks = (
            ("temperature", self.temperature, 0 <= self.temperature < np.inf, "0 or more"),
            ("top-k", self.top_k, self.top_k >= 0, "0 or more"),
            ("top-p", self.top_p, 0 < self.top_p <= 1, "above 0 and at most 1"),
            (
                "repetition penalty",
                self.repetition_penalty,
                0 < self.repetition_penalty < np.inf,
                "above 0",
            ),
        )
        for name, value, fine, allowed in checks:
            if not fine:
                raise UsageError(f"{name} is {value}, but must be {allowed}")

    @property
    def greedy(self) -> bool:
        """Whether the likeliest id is always taken."""
        return self.temperature < _SMALLEST

    def row(self) -> NDArray[np.float32]:
        """greedy, temperature, top_k, top_p, repetition_penalty: one row of a Sample op."""
        top_k = min(self.top_k, _LARGEST_TOP_K)
        top_p = max(self.top_p, _SMALLEST)
        penalty = min(max(self.repetition_penalty, _SMALLEST), 1 / _SMALLEST)
        return np.array((self.greedy, self.temperature, top_k, top_p, penalty), np.float32)


def penalised(
    logits: NDArray[np.float32], seen: NDArray[np.uint8] | None, penalty: np.float32
) -> NDArray[np.float32]:
    """Logits of the seen ids moved down: multiplied by the penalty below zero, else divided."""
    if seen is None or penalty == 1:
        return logits
    moved = np.where(logits < 0, logits * penalty, logits / penalty)
    return np.where(seen.astype(bool), moved, logits)


def probabilities(
    logits: NDArray[np.float32], seen: NDArray[np.uint8] | None, params: NDArray[np.float32]
) -> NDArray[np.float64]:
    """The distribution that the id is drawn from; all on one id when greedy."""
    greedy, temperature, top_k, top_p, penalty = params
    scores = penalised(logits, seen, penalty)
    if greedy:
        chosen = np.zeros(len(scores))
        chosen[int(scores.argmax())] = 1.0
        return chosen
    scores = scores / temperature
    keep = np.ones(len(scores), bool)
    if 0 < top_k < len(scores):
        keep = scores >= np.sort(scores)[-int(top_k)]
    weights = np.where(keep, np.exp((scores - scores.max()).astype(np.float64)), 0.0)
    if 0 < top_p < 1:
        order = np.argsort(-weights, kind="stable")
        before = np.cumsum(weights[order] / weights.sum()) - weights[order] / weights.sum()
        weights[order[before > top_p]] = 0.0
    result: NDArray[np.float64] = weights / weights.sum()
    return result


def draw(
    logits: NDArray[np.float32],
    seen: NDArray[np.uint8] | None,
    params: NDArray[np.float32],
    uniform: np.float32,
) -> int:
    """The first id at which the running sum of probabilities exceeds `uniform`."""
    chances = probabilities(logits, seen, params)
    reached = np.flatnonzero(np.cumsum(chances) > uniform)
    return int(reached[0] if len(reached) else np.flatnonzero(chances)[-1])


def uniforms(seed: int, chunk: int, frame: int, count: int) -> NDArray[np.float32]:
    """`count` numbers in [0, 1) that depend on nothing but the four arguments.

    Counter-based (Philox 4x64, key (seed, chunk), counter (0, frame)), 24 bits each, so that a
    seed means the same draws whatever the threads, chunks or neighbours.
    """
    stream = np.random.Philox(key=np.array([seed, chunk], np.uint64), counter=[0, frame, 0, 0])
    return (stream.random_raw(count) >> np.uint64(40)).astype(np.float32) * np.float32(2**-24)
