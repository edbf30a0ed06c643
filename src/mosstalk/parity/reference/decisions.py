"""Ids that were chosen by the largest of many numbers, and how near the choice was.

Two engines that round differently choose differently where the best two are nearly equal. A dump
says how far apart they were, so that such a place is told from a fault.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from mosstalk.parity.comparison import Comparison

GO_ON, STOP = 1, 0


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A choice that came out differently. `codebook` is None for that between go on and stop."""

    frame: int
    codebook: int | None
    expected: int
    found: int
    gap: float  # between the best two of the original

    def __str__(self) -> str:
        if self.codebook is None:
            names = {GO_ON: "goes on", STOP: "stops"}
            return f"frame {self.frame} {names[self.found]}, the reference {names[self.expected]}"
        return (
            f"frame {self.frame}, codebook {self.codebook}: code {self.found}, not {self.expected}"
        )


@dataclass(slots=True)
class Agreement:
    """All choices of one run.

    A disagreement is a fault where the original's best two were further apart than `allowed`.
    """

    name: str
    allowed: float
    equal: int = 0
    disagreements: list[Disagreement] = field(default_factory=list)

    def compare_gate(self, frame: int, expected: int, found: int, gap: float) -> bool:
        """Note a choice between GO_ON and STOP; whether it agrees."""
        if expected == found:
            self.equal += 1
            return True
        self.disagreements.append(Disagreement(frame, None, expected, found, gap))
        return False

    def compare_codes(
        self,
        frame: int,
        expected: NDArray[np.int32],
        found: NDArray[np.int32],
        gaps: NDArray[np.float32],
    ) -> int:
        """Note the codes of a frame, all [codebooks], up to the first that differs; how many
        agree."""
        different = np.flatnonzero(expected != found)
        if not different.size:
            self.equal += len(expected)
            return len(expected)
        q = int(different[0])
        self.equal += q
        self.disagreements.append(
            Disagreement(frame, q, int(expected[q]), int(found[q]), float(gaps[q]))
        )
        return q

    def judge(self, comparison: Comparison) -> None:
        """Pass on to `comparison` what was compared and what is a fault."""
        agreed = np.ones(self.equal, np.int32)
        if self.equal:
            comparison.add_ids(self.name, agreed, agreed)
        for item in self.disagreements:
            if item.gap > self.allowed:
                comparison.fail(f"{item} ({item.gap:.3g} apart)")

    def row(self) -> tuple[str, ...]:
        """A row for AGREEMENT_HEADER."""
        first = self.disagreements[0] if self.disagreements else None
        return (
            self.name,
            str(self.equal),
            str(len(self.disagreements)),
            "-" if first is None else f"{first.gap:.3g}",
            f"{self.allowed:.3g}",
            "none" if first is None else str(first),
        )


AGREEMENT_HEADER = ("choices", "equal", "different", "gap", "allowed", "first disagreement")
