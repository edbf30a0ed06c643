"""Causal self-attention over a K/V cache, and where each row of a call stands."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mosstalk.checkpoint.storage import StoredTensor
from mosstalk.compute.backend import RunnableProgram
from mosstalk.compute.ops import Buffer, RopePairs
from mosstalk.compute.program import Program
from mosstalk.nn.rope import turns


@dataclass(frozen=True, slots=True)
class Rows:
    """Inputs that say where the rows of a call stand: position, stream, rotary turns."""

    positions: Buffer
    streams: Buffer
    turns: Buffer

    @classmethod
    def record(cls, program: Program, name: str, head_dim: int, multiple: int = 1) -> "Rows":
        """The inputs `name`.positions, `name`.streams and `name`.turns of a program."""
        return cls(
            program.input(f"{name}.positions", 1, multiple, is_int=True),
            program.input(f"{name}.streams", 1, multiple, is_int=True),
            program.input(f"{name}.turns", head_dim, multiple),
        )

    def place(
        self,
        program: RunnableProgram,
        positions: NDArray[np.int32],
        streams: NDArray[np.int32] | int,
        frequencies: NDArray[np.float32],
    ) -> None:
        """Fill the inputs for a call of len(positions) rows (of this multiple)."""
        count = len(positions)
        program.array(self.positions)[:count, 0] = positions
        program.array(self.streams)[:count, 0] = streams
        program.array(self.turns)[:count] = turns(positions, frequencies)


@dataclass(frozen=True, slots=True)
class Heads:
    """Shape of an attention layer."""

    heads: int
    head_dim: int
    window: int = 0  # positions that a query sees; 0: all


def self_attention(
    program: Program,
    x: Buffer,
    qkv: tuple[StoredTensor, StoredTensor | None],
    heads: Heads,
    cache: int,
    rows: Rows,
) -> Buffer:
    """Attention of each row to what its stream has cached, this call included.

    `qkv` is one matrix (and bias) whose output is queries, keys, values, each [heads * head_dim];
    queries and keys turn in interleaved pairs. Returns the heads' outputs side by side.
    """
    width = heads.heads * heads.head_dim
    projected = program.linear(x, *qkv)
    program.rope(projected, rows.turns, 0, 2 * heads.heads, RopePairs.INTERLEAVED)
    keys, values = (projected, width), (projected, 2 * width)
    program.cache_write(keys, values, cache, rows.positions, rows.streams)
    return program.attention(
        projected,
        cache,
        rows.positions,
        rows.streams,
        (heads.heads, heads.head_dim),
        heads.window,
    )
