"""A figure as SVG that stands in an HTML page and needs no script and no font from elsewhere."""

import math
import sys
from importlib import import_module
from types import ModuleType
from xml.etree import ElementTree

from mosstalk.parity.figure import Figure, Line

_SIZE = (760, 340)  # of the view box; the page scales it
_COLORS = ("#1a6fb0", "#c2571a", "#2f8a4c", "#8a4fb0", "#a3304f", "#5b6770", "#0b8793", "#93700b")
_INK = "#5b6770"  # readable on light and on dark
_LOOKS = {
    "background": "transparent",
    "plot_background": "transparent",
    "foreground": _INK,
    "foreground_strong": _INK,
    "foreground_subtle": _INK,
    "font_family": "system-ui, sans-serif",
    "label_font_size": 12,
    "major_label_font_size": 12,
    "legend_font_size": 12,
    "title_font_size": 14,
    "colors": _COLORS,
}
_LEGEND_COLUMNS = 3
_LEGEND_ROW = 22  # height; the library leaves room for the first row only
_ZERO_BELOW = 2  # decades under the least value: where zero is drawn


def as_svg(figure: Figure) -> str:
    """The curves of a figure.

    An axis of powers of ten has no zero: it is drawn at the foot, under a label of its own.
    """
    pygal = _import_pygal()
    below = _LEGEND_ROW * ((len(figure.lines) - 1) // _LEGEND_COLUMNS)
    chart = pygal.XY(
        js=[],
        style=pygal.style.Style(**_LOOKS),
        width=_SIZE[0],
        height=_SIZE[1] + below,
        margin_bottom=20 + below,
        title=figure.title,
        x_title=figure.x_label,
        y_title=figure.y_label,
        legend_at_bottom=True,
        legend_at_bottom_columns=_LEGEND_COLUMNS,
        legend_box_size=10,
        truncate_legend=-1,
        dots_size=1.5,
        show_x_guides=False,
        max_scale=8,
        disable_xml_declaration=True,
    )
    lines = figure.lines
    if figure.is_log:
        lines, chart.y_labels = _in_decades(figure)
    for line in lines:
        points = zip(line.x, line.y, strict=True)
        chart.add(line.label, [(x, y) for x, y in points if math.isfinite(y)])
    tree = chart.render_tree()
    _drop_scripts(tree)
    return ElementTree.tostring(tree, encoding="unicode")


def is_flat_zero(figure: Figure) -> bool:
    """Whether there is nothing to draw: every value is zero."""
    return not any(y for line in figure.lines for y in line.y)


def _import_pygal() -> ModuleType:
    """The library, without the import hook that it leaves in the process for its plugins."""
    library = import_module("pygal")
    import_module("pygal.style")
    sys.meta_path[:] = [hook for hook in sys.meta_path if type(hook).__module__ != "pygal"]
    return library


def _in_decades(figure: Figure) -> tuple[tuple[Line, ...], list[dict[str, object]]]:
    """The curves' logarithms, and labels of the axis."""
    values = [y for line in figure.lines for y in line.y if y > 0 and math.isfinite(y)]
    low = math.floor(math.log10(min(values, default=1.0)))
    high = math.ceil(math.log10(max(values, default=1.0)))
    has_zero = any(y == 0 for line in figure.lines for y in line.y)
    foot = low - _ZERO_BELOW
    labels: list[dict[str, object]] = [
        {"label": f"1e{decade}", "value": decade} for decade in range(low, max(high, low + 1) + 1)
    ]
    if has_zero:
        labels.insert(0, {"label": "0", "value": foot})
    lines = tuple(
        Line(line.label, line.x, tuple(math.log10(y) if y > 0 else foot for y in line.y))
        for line in figure.lines
    )
    return lines, labels


def _drop_scripts(tree: ElementTree.Element) -> None:
    for parent in tree.iter():
        for child in list(parent):
            if isinstance(child.tag, str) and child.tag.endswith("script"):
                parent.remove(child)
