"""The delay pattern: codebook i of a frame lies i rows below codebook 0 (spec voicegen.md 5.1)."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Codes = NDArray[np.int32]


def delayed(codes: Codes, pad_code: int) -> Codes:
    """Rows [frames + n_vq - 1, n_vq] that carry `codes` [frames, n_vq], with `pad_code` around."""
    num_frames, n_vq = codes.shape
    rows = np.full((num_frames + n_vq - 1, n_vq), pad_code, np.int32)
    for i in range(n_vq):
        rows[i : i + num_frames, i] = codes[:, i]
    return rows


def undelayed(rows: Codes) -> Codes:
    """The diagonals of `rows` [n, n_vq] that are complete: [max(0, n - n_vq + 1), n_vq]."""
    n_vq = rows.shape[1]
    num_frames = max(0, len(rows) - n_vq + 1)
    return np.stack([rows[i : i + num_frames, i] for i in range(n_vq)], axis=1)


@dataclass(frozen=True, slots=True)
class Staircase:
    """Turns generated rows into frames, each as soon as its last code is there.

    Only rows of the run itself are given to it: what a prompt holds belongs to earlier frames. A
    diagonal with a pad code in it lies before, between or after the spoken frames.
    """

    n_vq: int
    pad_code: int
    rows: tuple[Codes, ...] = ()  # the last n_vq - 1, each [n_vq]

    def push(self, codes: Codes) -> tuple["Staircase", Codes | None]:
        """Add the codes [n_vq] of the next row; the frame [n_vq] that they complete, if any."""
        rows = (*self.rows, codes)
        if len(rows) < self.n_vq:
            return Staircase(self.n_vq, self.pad_code, rows), None
        frame = np.stack(rows).diagonal().astype(np.int32)
        after = Staircase(self.n_vq, self.pad_code, rows[1:])
        return after, None if (frame == self.pad_code).any() else frame
