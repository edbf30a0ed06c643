"""The losses of the trainings and the word error rates of all evaluations, drawn as one SVG."""

import csv
from pathlib import Path

WIDTH, HEIGHT, MARGIN = 420, 260, 46
COLOURS = ("#1b6ca8", "#c0392b", "#2e8b57", "#8e5ea2", "#b8860b", "#555555")

Line = list[tuple[float, float]]


def _read_log(path: Path, names: tuple[str, ...]) -> dict[str, Line]:
    """Columns `names` of a training's log (step, minutes, losses) against the step."""
    if not path.exists():
        return {}
    rows = [[float(value) for value in row] for row in csv.reader(path.open())]
    return {name: [(row[0], row[2 + i]) for row in rows] for i, name in enumerate(names)}


def _read_evaluations(path: Path) -> dict[str, Line]:
    if not path.exists():
        return {}
    lines: dict[str, Line] = {}
    for row in csv.DictReader(path.open()):
        point = (float(row["step"]), 100 * float(row["word_error_rate"]))
        lines.setdefault(row["speech"], []).append(point)
    return lines


def _plot(title: str, lines: dict[str, Line], left: int) -> str:
    points = [point for line in lines.values() for point in line]
    x_max = max((x for x, _ in points), default=1.0) or 1.0
    y_max = max((y for _, y in points), default=1.0) or 1.0

    def place(x: float, y: float) -> str:
        across = left + MARGIN + x / x_max * (WIDTH - 2 * MARGIN)
        return f"{across:.1f},{HEIGHT - MARGIN - y / y_max * (HEIGHT - 2 * MARGIN):.1f}"

    def text(x: float, y: float, words: str, anchor: str = "start", colour: str = "#222") -> str:
        return (
            f'<text x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}" fill="{colour}">{words}</text>'
        )

    axes = " ".join([place(0, y_max), place(0, 0), place(x_max, 0)])
    parts = [text(left + MARGIN, 20, title)]
    parts.append(f'<polyline points="{axes}" fill="none" stroke="#888"/>')
    parts.append(text(left + MARGIN - 4, MARGIN + 4, f"{y_max:.3g}", "end"))
    parts.append(text(left + WIDTH - MARGIN, HEIGHT - MARGIN + 16, f"step {x_max:.0f}", "end"))
    for i, (name, line) in enumerate(lines.items()):
        colour = COLOURS[i % len(COLOURS)]
        path = " ".join(place(x, y) for x, y in line)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}"/>')
        x, y = map(float, place(*line[-1]).split(","))
        parts.append(f'<circle cx="{x}" cy="{y}" r="2.5" fill="{colour}"/>')
        parts.append(text(left + WIDTH - MARGIN, 36 + 14 * i, name, "end", colour))
    return "".join(parts)


def draw(work: Path) -> str:
    """All curves of the files in `work`, beside each other."""
    language = ("stop gate", "book 1", "book 2", "pitch", "guided attention")
    plots = {
        "Language model: cross-entropy": _read_log(work / "language_log.csv", language),
        "Codec decoder: spectral loss": _read_log(work / "decoder_log.csv", ("decoder",)),
        "Word error rate, %": _read_evaluations(work / "evaluation.csv"),
    }
    body = "".join(_plot(name, lines, WIDTH * i) for i, (name, lines) in enumerate(plots.items()))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{3 * WIDTH}" height="{HEIGHT}" '
        f'font-family="sans-serif" font-size="11"><rect width="100%" height="100%" fill="white"/>'
        f"{body}</svg>\n"
    )
