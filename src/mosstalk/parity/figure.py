"""What a report draws and lists: numbers with their names, free of any format."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Line:
    """Points of one curve."""

    label: str
    x: tuple[float, ...]
    y: tuple[float, ...]

    def __post_init__(self) -> None:
        if len(self.x) != len(self.y):
            raise ValueError(f"line {self.label!r}: {len(self.x)} places, {len(self.y)} values")


@dataclass(frozen=True, slots=True)
class Figure:
    """Curves over one axis. `is_log`: the values span powers of ten, and zero is apart."""

    title: str
    x_label: str
    y_label: str
    lines: tuple[Line, ...]
    is_log: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of figures that are told, not judged."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def as_records(self) -> list[Mapping[str, str]]:
        """Each row by the names of the header."""
        return [dict(zip(self.header, row, strict=True)) for row in self.rows]
