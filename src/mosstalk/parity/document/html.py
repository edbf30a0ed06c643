"""The full report as one HTML page: no script, no style, font or picture from elsewhere."""

from collections.abc import Sequence
from html import escape

from mosstalk.parity.document.full_report import FullReport
from mosstalk.parity.document.markdown import title
from mosstalk.parity.document.plot import as_svg, is_flat_zero
from mosstalk.parity.figure import Figure
from mosstalk.parity.report import RESULT_HEADER, Report

_STYLE = """
:root { color-scheme: light dark; --line: #8884; --good: #2f8a4c; --bad: #c23b2a; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem; }
h1, h2, h3 { line-height: 1.2; } h2 { margin-top: 2.5rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .25rem .7rem; border-bottom: 1px solid var(--line); text-align: left; }
th { font-weight: 600; }
td.pass { color: var(--good); } td.fail { color: var(--bad); font-weight: 600; }
.verdict { font-size: 1.3rem; font-weight: 700; }
.verdict.pass { color: var(--good); } .verdict.fail { color: var(--bad); }
figure { margin: 1.5rem 0; } svg { width: 100%; max-width: 60rem; height: auto; }
"""


def as_html(full: FullReport) -> str:
    """Machine, summary, and each report's checks, tables and plots."""
    kind = "pass" if full.passed else "fail"
    name = escape(full.model)
    body = [
        f"<h1>Parity of {name}</h1>",
        f'<p class="verdict {kind}">{escape(full.verdict)}</p>',
        *_table(full.summary()),
        "<h2>Machine</h2>",
        *_table([("fact", "value"), *full.machine.items()]),
        *(line for report in full.reports for line in _report(report)),
    ]
    head = (
        '<meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f"<title>Parity of {name}</title><style>{_STYLE}</style>"
    )
    return (
        f'<!doctype html>\n<html lang="en">\n<head>{head}</head>\n<body>\n'
        + "\n".join(body)
        + "\n</body>\n</html>\n"
    )


def _report(report: Report) -> list[str]:
    lines = [f"<h2>{escape(title(report))}</h2>", *_table([RESULT_HEADER, *report.cells()])]
    for table in report.tables:
        lines += [f"<h3>{escape(table.title)}</h3>", *_table([table.header, *table.rows])]
    return [*lines, *(_figure(figure) for figure in report.all_figures())]


def _figure(figure: Figure) -> str:
    if is_flat_zero(figure):
        places = sorted({x for line in figure.lines for x in line.x})
        where = f"{figure.x_label} {places[0]:g} to {places[-1]:g}"
        return f"<p>{escape(figure.title)}: none, {escape(where)}.</p>"
    return f"<figure>{as_svg(figure)}</figure>"


def _table(rows: Sequence[Sequence[str]]) -> list[str]:
    header, *body = rows
    return [
        '<div class="scroll"><table>',
        "<tr>" + "".join(f"<th>{escape(cell)}</th>" for cell in header) + "</tr>",
        *("<tr>" + "".join(_cell(cell) for cell in row) + "</tr>" for row in body),
        "</table></div>",
    ]


def _cell(text: str) -> str:
    kind = {"pass": "pass", "FAIL": "fail"}.get(text.split(" ")[0])
    return f'<td class="{kind}">{escape(text)}</td>' if kind else f"<td>{escape(text)}</td>"
