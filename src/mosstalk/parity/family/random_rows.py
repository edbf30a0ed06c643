"""Rows of every kind, drawn at random."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_TEXT, _FULL, _PARTIAL = 0, 1, 2  # kinds of rows: no codes, all codes, some codes


@dataclass(frozen=True, slots=True)
class RowLayout:
    """What a row may hold.

    Attributes:
        num_texts: text ids.
        slots: text ids of rows that hold codes: of a reference, generated ones.
        code_sizes: codes of each codebook.
        pad_code: stands for none.
    """

    num_texts: int
    slots: tuple[int, ...]
    code_sizes: tuple[int, ...]
    pad_code: int


def random_rows(layout: RowLayout, count: int, seed: int) -> NDArray[np.int32]:
    """Rows of text, of reference and generated codes, and of codes with pads between them."""
    generator = np.random.default_rng(seed)
    n_vq = len(layout.code_sizes)
    rows = np.full((count, 1 + n_vq), layout.pad_code, np.int32)
    kinds = generator.choice([_TEXT, _FULL, _PARTIAL], count, p=[0.5, 0.3, 0.2])
    for row, kind in zip(rows, kinds, strict=True):
        row[0] = generator.integers(layout.num_texts)
        if kind == _TEXT:
            continue
        row[0] = generator.choice(layout.slots)
        codes = generator.integers(layout.code_sizes)
        is_given = generator.random(n_vq) < (1.0 if kind == _FULL else 0.5)
        row[1:][is_given] = codes[is_given]
    return rows


def changed_rows(
    layout: RowLayout, rows: NDArray[np.int32], at: int
) -> list[tuple[str, NDArray[np.int32]]]:
    """`rows` with another text id, and with another code of the first codebook, in row `at`."""
    text, code = rows.copy(), rows.copy()
    text[at, 0] = (text[at, 0] + 1) % layout.num_texts
    code[at, 1] = 0 if code[at, 1] >= layout.code_sizes[0] else code[at, 1] + 1
    return [("text id", text), ("code", code)]
