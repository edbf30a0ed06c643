"""The outcome of a parity command, as a table or as one JSON object."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from mosstalk.parity.comparison import CheckResult
from mosstalk.parity.figure import Figure, Line, Table

RESULT_HEADER = ("check", "max_abs", "mean_abs", "max_rel", "non_finite", "tolerance", "")


@dataclass(frozen=True, slots=True)
class Report:
    """What was run, with what settings, and how each check ended.

    `tables` and `figures` hold what is told and not judged.
    """

    check: str
    settings: Mapping[str, str | int | float]
    results: tuple[CheckResult, ...]
    tables: tuple[Table, ...] = ()
    figures: tuple[Figure, ...] = ()

    @property
    def passed(self) -> bool:
        return bool(self.results) and all(result.passed for result in self.results)

    @property
    def max_abs(self) -> float | None:
        """The largest difference where there should be none."""
        found = [r.max_abs for r in self.results if r.expects == "equal" and r.max_abs is not None]
        return max(found, default=None)

    def all_figures(self) -> tuple[Figure, ...]:
        """The figures, and one for each axis along which checks found differences."""
        axes = dict.fromkeys(p.axis for result in self.results for p in result.profiles)
        profiles = [
            Figure(f"Difference by {axis}", axis, "largest relative difference", lines, is_log=True)
            for axis in axes
            if (lines := self._lines(axis))
        ]
        return (*self.figures, *profiles)

    def as_values(self) -> dict[str, Any]:
        """What `--json` prints."""
        checks = [asdict(result) for result in self.results]
        for check in checks:
            del check["profiles"]
        values: dict[str, Any] = {
            "check": self.check,
            **self.settings,
            "max_abs": self.max_abs,
            "passed": self.passed,
            "checks": checks,
        }
        if self.tables:
            values["tables"] = {table.title: table.as_records() for table in self.tables}
        return values

    def as_json(self) -> str:
        """One line."""
        return json.dumps(self.as_values(), allow_nan=False)

    def as_text(self) -> str:
        """Settings, a table of the checks, and PASS or FAIL."""
        settings = ", ".join(f"{name} {value}" for name, value in self.settings.items())
        lines = [f"{self.check}: {settings}"]
        lines += aligned([RESULT_HEADER, *self.cells()])
        for table in self.tables:
            lines += ["", table.title, *aligned([table.header, *table.rows]), ""]
        failed = sum(not result.passed for result in self.results)
        total = len(self.results)
        lines.append(
            f"PASS: {total} checks" if self.passed else f"FAIL: {failed} of {total} checks"
        )
        return "\n".join(lines)

    def cells(self) -> list[tuple[str, ...]]:
        """The results as rows of text."""
        return [_cells(result) for result in self.results]

    def _lines(self, axis: str) -> tuple[Line, ...]:
        return tuple(
            Line(result.name, profile.places, profile.max_rel)
            for result in self.results
            for profile in result.profiles
            if profile.axis == axis and result.expects == "equal"
        )


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines of columns; numbers stand to the right, the first and the last column to the left."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = []
    for name, *numbers, outcome in rows:
        padded = [f"{cell:>{width}}" for cell, width in zip(numbers, widths[1:], strict=False)]
        lines.append("  ".join([f"{name:{widths[0]}}", *padded, outcome]).rstrip())
    return lines


def _cells(result: CheckResult) -> tuple[str, ...]:
    tolerance = f"{result.tolerance:.3g}"
    return (
        result.name,
        _number(result.max_abs),
        _number(result.mean_abs),
        _number(result.max_rel),
        str(result.non_finite),
        tolerance if result.expects == "equal" else f"> {tolerance}",
        "pass" if result.passed else f"FAIL  {result.problem}",
    )


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    return "0.0" if value == 0 else f"{value:.2e}"
