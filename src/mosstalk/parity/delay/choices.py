"""Ids chosen by the largest of many logits, against the original's choices.

Two engines that round differently choose differently where the best two are nearly equal: such a
near-tie is told from a fault by how far apart they are here.
"""

from dataclasses import dataclass, field

import numpy as np

from mosstalk.parity.comparison import Comparison

HEADER = ("choices", "rows in step", "equal", "different", "gap", "allowed", "first difference")


@dataclass(frozen=True, slots=True)
class Difference:
    """`gap`: by how much the logit found is above that of the id expected."""

    row: int
    channel: str  # "text", "codebook 3"
    expected: int
    found: int
    gap: float

    def __str__(self) -> str:
        return f"row {self.row}, {self.channel}: {self.found}, not {self.expected}"


@dataclass(slots=True)
class Choices:
    """All choices of one run. A difference is a fault where its gap is above `allowed`."""

    name: str
    allowed: float
    rows: int = 0
    equal: int = 0
    differences: list[Difference] = field(default_factory=list)

    def note(self, channel: str, expected: int, found: int, gap: float) -> None:
        """A choice in row `self.rows`; see Difference."""
        if found == expected:
            self.equal += 1
        else:
            self.differences.append(Difference(self.rows, channel, expected, found, gap))

    @property
    def rows_in_step(self) -> int:
        """Rows before the first difference."""
        return self.differences[0].row if self.differences else self.rows

    def judge(self, comparison: Comparison) -> None:
        """Pass on to `comparison` what was compared and what is a fault."""
        faults = [item for item in self.differences if not item.gap <= self.allowed]
        sound = np.ones(self.equal + len(self.differences) - len(faults), np.int32)
        if sound.size:
            comparison.add_ids(self.name, sound, sound)
        for item in faults:
            comparison.fail(f"{item} ({item.gap:.3g} apart)")

    def cells(self) -> tuple[str, ...]:
        """A row for HEADER."""
        first = self.differences[0] if self.differences else None
        return (
            self.name,
            f"{self.rows_in_step} of {self.rows}",
            str(self.equal),
            str(len(self.differences)),
            "-" if first is None else f"{first.gap:.3g}",
            f"{self.allowed:.3g}",
            "none" if first is None else str(first),
        )
