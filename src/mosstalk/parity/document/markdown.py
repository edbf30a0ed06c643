"""The full report as Markdown."""

from collections.abc import Sequence

from mosstalk.parity.document.full_report import FullReport
from mosstalk.parity.report import RESULT_HEADER, Report


def as_markdown(full: FullReport) -> str:
    """Machine, summary, and each report's checks and tables. Plots are in the HTML page only."""
    lines = [f"# Parity of {full.model}", "", f"**{full.verdict}**", "", "## Machine", ""]
    lines += _table([("fact", "value"), *full.machine.items()])
    lines += ["", "## Summary", "", *_table(full.summary())]
    for report in full.reports:
        lines += ["", f"## {title(report)}", "", *_table([RESULT_HEADER, *report.cells()])]
        for table in report.tables:
            lines += ["", f"### {table.title}", "", *_table([table.header, *table.rows])]
    return "\n".join(lines) + "\n"


def title(report: Report) -> str:
    """The check's name and what it was run with, the model apart: that is the page's own."""
    settings = [f"{k} {v}" for k, v in report.settings.items() if k != "model"]
    return f"{report.check}: {', '.join(settings)}"


def _table(rows: Sequence[Sequence[str]]) -> list[str]:
    header, *body = [[cell.replace("|", "\\|") or " " for cell in row] for row in rows]
    rule = ["---"] * len(header)
    return [f"| {' | '.join(cells)} |" for cells in (header, rule, *body)]
