"""The outcome of a parity command, as a table or as one JSON object."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from mosstalk.parity.comparison import CheckResult

_HEADER = ("check", "max_abs", "mean_abs", "tolerance", "")


@dataclass(frozen=True, slots=True)
class Report:
    """What was run, with what settings, and how each check ended."""

    check: str
    settings: Mapping[str, str | int | float]
    results: tuple[CheckResult, ...]

    @property
    def passed(self) -> bool:
        return bool(self.results) and all(result.passed for result in self.results)

    @property
    def max_abs(self) -> float | None:
        """The largest difference where there should be none."""
        found = [r.max_abs for r in self.results if r.expects == "equal" and r.max_abs is not None]
        return max(found, default=None)

    def as_json(self) -> str:
        """One line."""
        values = {
            "check": self.check,
            **self.settings,
            "max_abs": self.max_abs,
            "passed": self.passed,
            "checks": [asdict(result) for result in self.results],
        }
        return json.dumps(values, allow_nan=False)

    def as_text(self) -> str:
        """Settings, a table of the checks, and PASS or FAIL."""
        settings = ", ".join(f"{name} {value}" for name, value in self.settings.items())
        rows = [_HEADER, *(_cells(result) for result in self.results)]
        widths = [max(len(row[column]) for row in rows) for column in range(len(_HEADER))]
        lines = [f"{self.check}: {settings}"]
        for name, *numbers, outcome in rows:
            padded = [f"{cell:>{width}}" for cell, width in zip(numbers, widths[1:], strict=False)]
            lines.append("  ".join([f"{name:{widths[0]}}", *padded, outcome]).rstrip())
        failed = sum(not result.passed for result in self.results)
        total = len(self.results)
        lines.append(
            f"PASS: {total} checks" if self.passed else f"FAIL: {failed} of {total} checks"
        )
        return "\n".join(lines)


def _cells(result: CheckResult) -> tuple[str, ...]:
    tolerance = f"{result.tolerance:g}"
    return (
        result.name,
        _number(result.max_abs),
        _number(result.mean_abs),
        tolerance if result.expects == "equal" else f"> {tolerance}",
        "pass" if result.passed else f"FAIL  {result.problem}",
    )


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    return "0.0" if value == 0 else f"{value:.2e}"
