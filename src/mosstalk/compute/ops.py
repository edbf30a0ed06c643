"""The op table: everything a backend must be able to do.

An op reads and writes buffers of a `Program` by reference. Row r of an op sees row r of its
buffers (PATCH and GATHER move rows); the number of rows in a call is given at run time. All
floating-point values are float32. `compute/reference.py` defines what each op computes.
"""

from dataclasses import dataclass
from enum import StrEnum


@dataclass(frozen=True, slots=True)
class Buffer:
    """A preallocated array [max_rows * multiple, width] of a program."""

    index: int
    width: int
    multiple: int  # rows of this buffer for each row of the call; patch ops change it
    is_int: bool = False  # int32 instead of float32


@dataclass(frozen=True, slots=True)
class Weight:
    """A tensor of a program, read only: [rows, columns] or [columns]."""

    index: int
    rows: int
    columns: int


@dataclass(frozen=True, slots=True)
class Embed:
    """out[r] = sum over i of tables[i][ids[r, i]], or their concatenation if `concat`.

    An id outside its table adds nothing (leaves zeros).
    """

    out: Buffer
    ids: Buffer
    first_column: int  # of `ids`: table i reads column first_column + i
    tables: tuple[Weight, ...]
    concat: bool


@dataclass(frozen=True, slots=True)
class Gather:
    """out[r] = x[index[r]]"""

    out: Buffer
    x: Buffer
    index: Buffer  # int, width 1


@dataclass(frozen=True, slots=True)
class Linear:
    """out[r] = weight @ x[r] (+ bias)"""

    out: Buffer
    x: Buffer
    weight: Weight  # [out.width, x.width]
    bias: Weight | None


@dataclass(frozen=True, slots=True)
class LayerNorm:
    """out[r] = (x[r] - mean) / sqrt(variance + eps) * weight + bias"""

    out: Buffer
    x: Buffer
    weight: Weight
    bias: Weight
    eps: float


@dataclass(frozen=True, slots=True)
class RmsNorm:
    """out[r] = x[r] / sqrt(mean of squares + eps) * weight, over each `group` values of a row."""

    out: Buffer
    x: Buffer
    weight: Weight  # [group]
    group: int
    eps: float


class RopePairs(StrEnum):
    """Which two values of a head turn together."""

    INTERLEAVED = "interleaved"  # (2i, 2i + 1)
    HALVES = "halves"  # (i, i + head_dim / 2)


@dataclass(frozen=True, slots=True)
class Rope:
    """Turn the heads in columns [first_column, first_column + heads * head_dim) of x, in place."""

    x: Buffer
    turns: Buffer  # [head_dim]: cosines, then sines, of this row's head_dim / 2 angles
    first_column: int
    heads: int
    head_dim: int
    pairs: RopePairs


@dataclass(frozen=True, slots=True)
class CacheWrite:
    """Store this row's keys and values in cache `cache` of its stream, at its position."""

    keys: Buffer
    key_column: int  # of `keys`
    values: Buffer
    value_column: int  # of `values`
    cache: int
    positions: Buffer  # int, width 1
    streams: Buffer  # int, width 1


@dataclass(frozen=True, slots=True)
class Attention:
    """out[r] = softmax(q . K * scale) V over positions max(0, p - window + 1) ... p of a stream.

    Head h reads head h // (heads / heads of the cache). The sums run from the oldest position
    to the newest.
    """

    out: Buffer  # [heads * head_dim]
    q: Buffer
    first_column: int  # of `q`
    cache: int
    positions: Buffer
    streams: Buffer
    heads: int
    head_dim: int
    window: int  # 0: no limit
    scale: float


class GeluKind(StrEnum):
    TANH = "tanh"
    ERF = "erf"


@dataclass(frozen=True, slots=True)
class Gelu:
    out: Buffer
    x: Buffer
    kind: GeluKind


@dataclass(frozen=True, slots=True)
class SiluGate:
    """out[r] = silu(gate[r]) * up[r]"""

    out: Buffer
    gate: Buffer
    up: Buffer


@dataclass(frozen=True, slots=True)
class Add:
    """out[r] = a[r] + scale * b[r]; `scale` is a vector if given, else `factor`."""

    out: Buffer
    a: Buffer
    b: Buffer
    scale: Weight | None
    factor: float


@dataclass(frozen=True, slots=True)
class PatchUp:
    """Row t of x [channels * patch] becomes rows t * patch + k: out[.., c] = x[t, c * patch + k]"""

    out: Buffer
    x: Buffer
    patch: int


@dataclass(frozen=True, slots=True)
class PatchDown:
    """The inverse of PatchUp: `patch` rows of x become one row of out."""

    out: Buffer
    x: Buffer
    patch: int


@dataclass(frozen=True, slots=True)
class Argmax:
    """out[r, column] = index of the first largest value of x[r]"""

    out: Buffer  # int
    column: int
    x: Buffer


@dataclass(frozen=True, slots=True)
class Sample:
    """out[r, column] = a draw from logits[r]; see `compute/sampling.py` for the rules.

    `params[r]` holds (greedy, temperature, top_k, top_p, repetition_penalty) and
    `uniforms[r, column]` the random number. `seen` names a set of ids kept for each stream: the
    penalty applies to its members and the drawn id joins it; -1 for none.
    """

    out: Buffer  # int
    column: int
    logits: Buffer
    params: Buffer
    uniforms: Buffer
    streams: Buffer
    seen: int


Op = (
    Embed
    | Gather
    | Linear
    | LayerNorm
    | RmsNorm
    | Rope
    | CacheWrite
    | Attention
    | Gelu
    | SiluGate
    | Add
    | PatchUp
    | PatchDown
    | Argmax
    | Sample
)
