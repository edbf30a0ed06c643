"""How ids are drawn from the logits of a row (spec voicegen.md 5.6).

The rules are those of `compute.sampling` with two differences of this family: top-k keeps exactly
k ids, the lower ids where logits are equal, and the repetition penalty may see the codes of other
codebooks. It runs in NumPy: the op table draws each codebook from its own past alone, and a step of
these models takes a hundred times as long as its draws.
"""

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from mosstalk.compute.sampling import SamplingParams, draw, penalised, uniforms
from mosstalk.models.moss_tts_delay.config import DelayConfig
from mosstalk.models.moss_tts_delay.delay_state import Decision

TEXT_SAMPLING = SamplingParams(temperature=1.5, top_k=50)  # of the text channel; spec 5.7


class PenaltyScope(StrEnum):
    """Whose earlier codes a codebook's repetition penalty counts.

    UNION is what the reference does: codebook 0 its own, each other codebook those of all others
    but 0. PER_CODEBOOK is what it says it does: each its own.
    """

    UNION = "union"
    PER_CODEBOOK = "per_codebook"


@dataclass(frozen=True, slots=True)
class DelaySampling:
    """How the text channel and the codes of a run are drawn."""

    text: SamplingParams
    audio: SamplingParams
    seed: int
    chunk: int = 0
    penalty_scope: PenaltyScope = PenaltyScope.UNION


@dataclass(frozen=True, slots=True)
class CodeHistory:
    """The codes that were in a run's rows so far, those of the prompt included.

    `seen`: uint8 [n_vq, codes and pad], 1 where a codebook has had a code. Never changed.
    """

    seen: NDArray[np.uint8]

    @classmethod
    def of(cls, config: DelayConfig, rows: NDArray[np.int32]) -> "CodeHistory":
        """The history of a prompt's rows [n, 1 + n_vq]."""
        seen = np.zeros((config.n_vq, config.audio_table_size), np.uint8)
        for codebook in range(config.n_vq):
            seen[codebook, rows[:, 1 + codebook]] = 1
        return cls(seen)

    def after(self, row: NDArray[np.int32]) -> "CodeHistory":
        """The history with one more row [1 + n_vq]."""
        seen = self.seen.copy()
        seen[np.arange(len(seen)), row[1:]] = 1
        return CodeHistory(seen)

    def counted(self, scope: PenaltyScope) -> NDArray[np.uint8]:
        """What each codebook's penalty counts, shaped as `seen`."""
        if scope is PenaltyScope.PER_CODEBOOK:
            return self.seen
        others = np.broadcast_to(self.seen[1:].any(axis=0), self.seen[1:].shape)
        return np.concatenate([self.seen[:1], others.astype(np.uint8)])


def draw_text(
    logits: NDArray[np.float32], decision: Decision, sampling: DelaySampling, step: int
) -> int:
    """A text id.

    `logits`: [vocabulary], or one for each of `decision.allowed` where that is not None. Nothing
    is read from them where the decision forces an id. `step` counts rows from 0.
    """
    if decision.forced is not None:
        return decision.forced
    uniform = _uniforms(sampling, step, 1)[0]
    if decision.allowed is not None:
        assert len(logits) == len(decision.allowed), (len(logits), decision.allowed)
        return decision.allowed[draw_id(logits, None, sampling.text, uniform)]
    open_logits = logits.astype(np.float32)
    open_logits[list(decision.banned)] = -np.inf
    return draw_id(open_logits, None, sampling.text, uniform)


def draw_codes(
    logits: NDArray[np.float32],
    history: CodeHistory,
    decision: Decision,
    sampling: DelaySampling,
    step: int,
) -> NDArray[np.int32]:
    """A code for each codebook of the decision.

    `logits`: [n_vq, codes, pad included or not]; the pad's are not read.
    """
    counted = history.counted(sampling.penalty_scope)
    num_codes = counted.shape[1] - 1
    uniform = _uniforms(sampling, step, 1 + len(counted))
    drawn = [
        draw_id(logits[i, :num_codes], counted[i, :num_codes], sampling.audio, uniform[1 + i])
        for i in decision.codebooks
    ]
    return np.array(drawn, np.int32)


def kept(
    logits: NDArray[np.float32], seen: NDArray[np.uint8] | None, params: SamplingParams
) -> tuple[NDArray[np.intp], NDArray[np.float32]]:
    """The ids that top-k leaves, ascending, and their logits after the penalty."""
    _, _, top_k, _, penalty = params.row()
    scores, count = penalised(logits, seen, penalty), int(top_k)
    if params.greedy or not 0 < count < len(scores):
        return np.arange(len(scores)), scores
    least = np.partition(scores, -count)[-count]
    above = np.flatnonzero(scores > least)
    ties = np.flatnonzero(scores == least)[: count - len(above)]
    ids = np.sort(np.concatenate([above, ties]))
    return ids, scores[ids]


def draw_id(
    logits: NDArray[np.float32],
    seen: NDArray[np.uint8] | None,
    params: SamplingParams,
    uniform: np.float32,
) -> int:
    """One id by the family's rules: penalty, exact top-k, then as `compute.sampling.draw`."""
    ids, scores = kept(logits, seen, params)
    return int(ids[draw(scores, None, _after_kept(params), uniform)])


def retry_seed(seed: int, attempt: int) -> int:
    """The seed of a run that is tried again: `seed` itself at attempt 0, else one derived from it.

    The result is from 0 to 2^63 - 1, as seeds are.
    """
    if attempt == 0:
        return seed
    return int(np.random.SeedSequence([seed, attempt]).generate_state(1, np.uint64)[0] >> 1)


def _after_kept(params: SamplingParams) -> NDArray[np.float32]:
    """The parameters for what is left to do after `kept`: temperature and top-p."""
    return SamplingParams(params.temperature, top_p=params.top_p).row()


def _uniforms(sampling: DelaySampling, step: int, count: int) -> NDArray[np.float32]:
    """Random numbers of a step: slot 0 is the text channel's, slot 1 + i codebook i's."""
    return uniforms(sampling.seed, sampling.chunk, step, count)
