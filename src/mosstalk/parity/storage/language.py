"""The language model in two storage types, under the same history of rows."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mosstalk.parity.family.language_model import GreedyRow, LanguageModel
from mosstalk.parity.greedy_frame import top_gap


@dataclass(frozen=True, slots=True)
class Trace:
    """A prompt and the likeliest rows after it: `hidden` [prompt and rows, hidden]."""

    hidden: NDArray[np.float32]
    rows: tuple[GreedyRow, ...]


@dataclass(frozen=True, slots=True)
class Disagreement:
    """The first id that two storage types choose differently."""

    row: int
    channel: str
    gap: float  # between f32's two largest logits there
    logit_difference: float  # largest there

    def __str__(self) -> str:
        return (
            f"row {self.row} {self.channel}: gap {self.gap:.2g}, "
            f"logits differ by {self.logit_difference:.2g}"
        )


@dataclass(frozen=True, slots=True)
class Drift:
    """How far one trace is from the f32 one."""

    logits: float  # largest difference relative to f32's largest logit
    rows_in_step: int  # rows before the first disagreement
    ids_equal: float  # share of the choices
    first: Disagreement | None


def trace(
    model: LanguageModel, prompt: NDArray[np.int32], count: int, forced: Trace | None = None
) -> Trace:
    """`count` likeliest rows after a prompt; the history is that of `forced` where given."""
    session = model.session()
    session.begin_generation(len(prompt) + count)
    hidden = [session.prefill(prompt)]
    run = model.start_greedy(session, prompt)
    rows = []
    for index in range(count):
        chosen = run.choose()
        rows.append(chosen)
        kept = chosen.row if forced is None else forced.rows[index].row
        hidden.append(run.append(kept)[None])
    return Trace(np.concatenate(hidden), tuple(rows))


def drift(expected: Sequence[GreedyRow], found: Sequence[GreedyRow]) -> Drift:
    """Compare rows that were chosen after the same histories.

    Where a choice depends on those before it in its row, those after a disagreement are not
    compared, and count as different.
    """
    largest, peak, equal, total = 0.0, 0.0, 0, 0
    in_step: int | None = None
    first: Disagreement | None = None
    for index, (wanted, got) in enumerate(zip(expected, found, strict=True)):
        total += len(wanted.choices)
        for a, b in zip(wanted.choices, got.choices, strict=True):
            allowed = a.logits != -np.inf
            difference = float(np.abs(a.logits[allowed] - b.logits[allowed]).max())
            largest = max(largest, difference)
            peak = max(peak, float(np.abs(a.logits[allowed]).max()))
            if a.chosen == b.chosen:
                equal += 1
                continue
            first = first or Disagreement(index, a.channel, top_gap(a.logits), difference)
            in_step = index if in_step is None else in_step
            if wanted.is_chain:
                break
    rows_in_step = len(expected) if in_step is None else in_step
    share = equal / total if total else 1.0
    return Drift(largest / peak if peak else 0.0, rows_in_step, share, first)
