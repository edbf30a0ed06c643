"""All that was run on one model, with what was left out and why."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from mosstalk.parity.report import Report, aligned


@dataclass(frozen=True, slots=True)
class Skipped:
    """A check that does not apply to the model at hand."""

    check: str
    reason: str


@dataclass(frozen=True, slots=True)
class FullReport:
    """The outcome of `mosstalk parity all`.

    Attributes:
        machine: what `describe_machine` found.
        seconds: how long all took.
        files: where the documents were written.
    """

    model: str
    machine: Mapping[str, str]
    reports: tuple[Report, ...]
    skipped: tuple[Skipped, ...]
    seconds: float
    files: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        return bool(self.reports) and all(report.passed for report in self.reports)

    @property
    def verdict(self) -> str:
        """One line: PASS or FAIL, and of how much."""
        results = [result for report in self.reports for result in report.results]
        failed = sum(not result.passed for result in results)
        if self.passed:
            return f"PASS: {len(results)} checks in {self.seconds:.0f} s"
        return f"FAIL: {failed} of {len(results)} checks in {self.seconds:.0f} s"

    def summary(self) -> list[tuple[str, ...]]:
        """A row for each report: check, settings, checks run, largest difference, outcome."""
        rows: list[tuple[str, ...]] = [("check", "weights", "checks", "max_abs", "")]
        for report in self.reports:
            largest = "-" if report.max_abs is None else f"{report.max_abs:.2e}"
            failed = [result.name for result in report.results if not result.passed]
            rows.append(
                (
                    report.check,
                    str(report.settings.get("weight_type", "")),
                    str(len(report.results)),
                    "0.0" if report.max_abs == 0 else largest,
                    "pass" if report.passed else f"FAIL  {', '.join(failed) or 'nothing was run'}",
                )
            )
        rows += [(skip.check, "", "", "", f"left out: {skip.reason}") for skip in self.skipped]
        return rows

    def as_text(self) -> str:
        """The summary, where the documents are, and PASS or FAIL; failed reports in full."""
        lines = [f"parity of {self.model}", *aligned(self.summary())]
        for report in self.reports:
            if not report.passed:
                lines += ["", report.as_text()]
        lines += [f"written: {file}" for file in self.files]
        return "\n".join([*lines, self.verdict])

    def as_json(self) -> str:
        """One line."""
        values: dict[str, Any] = {
            "check": "all",
            "model": self.model,
            "passed": self.passed,
            "seconds": round(self.seconds, 1),
            "machine": dict(self.machine),
            "reports": [report.as_values() for report in self.reports],
            "skipped": [asdict(skip) for skip in self.skipped],
            "files": list(self.files),
        }
        return json.dumps(values, allow_nan=False)
