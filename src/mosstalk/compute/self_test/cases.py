"""A small program for every op of the table, with inputs on which a wrong result shows.

Widths are no multiples of a vector register or a work group where the op allows it, rows are more
than a tile takes and come from several streams, and no value stands so near to a limit that
rounding decides. Random numbers come from fixed seeds.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from mosstalk.checkpoint.storage import StorageType, StoredTensor, from_float32
from mosstalk.compute import ops
from mosstalk.compute.ops import Buffer, GeluKind, Op, RopePairs
from mosstalk.compute.program import Program
from mosstalk.compute.sampling import NUM_PARAMS, SamplingParams
from mosstalk.compute.state import CacheSpec, State, StateSpec

STORAGES = (StorageType.F32, StorageType.F16, StorageType.BF16, StorageType.Q8_0)


@dataclass(frozen=True, slots=True)
class Case:
    """An op, with matrices of one storage type, and what to run it on.

    Attributes:
        op: the kind of op that the program consists of.
        storage: of its matrices; None for an op that has none.
        program: all that it computes is an output or in the state.
        inputs: values of `program.inputs`, for all of its rows.
        calls: rows of each run, one run after the other on one state; the last takes all.
        new_state: the state before the first run, for an op that needs one.
        rows_alone: whether a row's result depends on its own inputs only, and its sums are long
            enough to come out differently in other company.
    """

    op: type[Op]
    storage: StorageType | None
    program: Program
    inputs: dict[str, NDArray[Any]]
    calls: tuple[int, ...]
    new_state: Callable[[], State] | None = None
    rows_alone: bool = False


def all_cases() -> Iterator[Case]:
    """Every op of the table, and those with matrices for each storage type."""
    for op in get_args(Op):
        if op in _OF_EACH_STORAGE:
            yield from map(_OF_EACH_STORAGE[op], STORAGES)
        else:
            yield _CASES[op]()


def _floats(seed: int, *shape: int) -> NDArray[np.float32]:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def _column(*values: int) -> NDArray[np.int32]:
    return np.array(values, np.int32)[:, None]


def _tensor(seed: int, *shape: int, storage: StorageType = StorageType.F32) -> StoredTensor:
    return from_float32(f"weight {seed}", _floats(seed, *shape), storage)


def _embed(storage: StorageType) -> Case:
    """Sums of tables of three sizes and tables side by side, with ids in and outside."""
    width = 64 if storage is StorageType.Q8_0 else 45
    program = Program(9)
    ids = program.input("ids", 4, is_int=True)
    sizes = (5, 9, 2)
    tables = [_tensor(i, size, width, storage=storage) for i, size in enumerate(sizes)]
    program.output("sum", program.embed(ids, 1, tables))
    uneven = [_tensor(3, 6, 32, storage=storage), _tensor(4, 4, width, storage=storage)]
    program.output("side by side", program.embed(ids, 0, uneven, concat=True))
    values = np.random.default_rng(5).integers(0, sizes[2], (9, 4)).astype(np.int32)
    values[:5] = (5, 4, 8, 1), (3, 2, 7, 0), (1, -1, 9, 2), (-7, 5, 0, 1), (6, 1_000_000, -1, -1)
    return Case(ops.Embed, storage, program, {"ids": values}, (1, 9))


def _gather() -> Case:
    program = Program(4)
    x, index = program.input("x", 45, 2), program.input("index", 1, is_int=True)
    program.output("out", program.gather(x, index))
    values = {"x": _floats(1, 8, 45), "index": _column(7, 0, 3, 7)}
    return Case(ops.Gather, None, program, values, (4,))


def _linear(storage: StorageType) -> Case:
    """A small matrix, and one that several threads or work groups share.

    With at most 262,144 products NumPy's own library stays on one thread, which takes microseconds
    where waiting for a second thread on a busy machine takes tens of milliseconds.
    """
    width = 160 if storage is StorageType.Q8_0 else 173
    program = Program(9)
    x = program.input("x", width)
    for out_width in (37, 163):
        matrix = _tensor(out_width, out_width, width, storage=storage)
        bias = _tensor(1, out_width, storage=storage)
        program.output(f"{out_width}", program.linear(x, matrix, bias))
        program.output(f"{out_width} without bias", program.linear(x, matrix))
    values = {"x": _floats(2, 9, width)}
    return Case(ops.Linear, storage, program, values, (1, 5, 9), rows_alone=True)


def _layer_norm() -> Case:
    """Row 0 has a variance of the size of eps, row 1 a mean that is no 0."""
    program, values = Program(5), {}
    for width, storage in ((45, StorageType.F32), (300, StorageType.BF16)):
        x = program.input(f"x {width}", width)
        weights = (_tensor(1, width, storage=storage), _tensor(2, width, storage=storage))
        program.output(f"{width}", program.layer_norm(x, *weights, 1e-5))
        values[f"x {width}"] = _small_first_row(3, 5, width)
    return Case(ops.LayerNorm, None, program, values, (1, 5))


def _rms_norm() -> Case:
    """Whole rows and heads; row 0 has squares of the size of eps."""
    program, values = Program(5), {}
    for width, group, storage in ((60, 20, StorageType.F32), (300, 300, StorageType.F16)):
        x = program.input(f"x {width}", width)
        program.output(f"{width}", program.rms_norm(x, _tensor(1, group, storage=storage), 1e-5))
        values[f"x {width}"] = _small_first_row(2, 5, width)
    return Case(ops.RmsNorm, None, program, values, (1, 5))


def _small_first_row(seed: int, rows: int, width: int) -> NDArray[np.float32]:
    values = _floats(seed, rows, width)
    values[0] *= np.float32(3e-3)
    values[1] += np.float32(1)
    return values


def _rope() -> Case:
    """Two heads of four turn; their neighbours must stay."""
    head_dim, rows = 20, 7
    program, values = Program(rows), {}
    angles = np.random.default_rng(1).uniform(-9, 9, (rows, head_dim // 2))
    values["turns"] = np.concatenate([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)
    for pairs in RopePairs:
        x = program.output(f"{pairs}", program.input(f"x {pairs}", 4 * head_dim))
        program.rope(x, program.input("turns", head_dim), head_dim, 2, pairs)
        values[f"x {pairs}"] = _floats(2, rows, 4 * head_dim)
    return Case(ops.Rope, None, program, values, (1, rows))


_POSITIONS = _column(95, 96, 97, 98, 99, 0, 1, 2, 3, 4, 100, 5, 101)
_STREAMS = _column(0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 0, 1, 0)
_ROWS = len(_POSITIONS)
_CACHES = (CacheSpec(2, 20), CacheSpec(1, 80, window=7))  # of the second only a ring is kept


def _places(program: Program) -> tuple[Buffer, Buffer]:
    """The inputs that `_places_of_rows` fills."""
    positions = program.input("positions", 1, is_int=True)
    return positions, program.input("streams", 1, is_int=True)


def _places_of_rows() -> dict[str, NDArray[Any]]:
    return {"positions": _POSITIONS, "streams": _STREAMS}


def _cache_write() -> Case:
    """Rows of two streams into a cache from columns of one buffer, into the other from two."""
    program, values = Program(_ROWS), _places_of_rows()
    joined = program.input("x", 2 * _CACHES[0].head_dim * _CACHES[0].heads + 11)
    keys, apart = program.input("keys", 81), program.input("values", 83)
    sources = (((joined, 47), (joined, 3)), ((keys, 1), (apart, 2)))
    for i, (key_place, value_place) in enumerate(sources):
        program.cache_write(key_place, value_place, i, *_places(program))
    for seed, name in enumerate(("x", "keys", "values")):
        values[name] = _floats(seed, _ROWS, program.inputs[name].width)
    spec = StateSpec(_CACHES, max_rows=_ROWS)
    return Case(ops.CacheWrite, None, program, values, (1, _ROWS), lambda: State(spec, 128, 2))


def _attention() -> Case:
    """Shared heads over all positions, and a window over a ring that wraps.

    The caches are filled before, every place of them: what a query must not see is there.
    """
    program, values = Program(_ROWS), _places_of_rows()
    for i, (cache, heads) in enumerate(zip(_CACHES, (4, 3), strict=True)):
        q = program.input(f"q {i}", heads * cache.head_dim)
        shape = (heads, cache.head_dim)
        out = program.attention(q, i, *_places(program), shape, cache.window)
        program.output(f"{i}", out)
        values[f"q {i}"] = _floats(i, _ROWS, q.width)

    def filled() -> State:
        state = State(StateSpec(_CACHES, max_rows=_ROWS), 128, 2)
        for seed, array in enumerate((*state.keys, *state.values)):
            array[:] = _floats(seed, *array.shape)
        return state

    return Case(ops.Attention, None, program, values, (1, _ROWS), filled, True)


def _gelu() -> Case:
    program = Program(7)
    x = program.input("x", 45)
    for kind in GeluKind:
        program.output(f"{kind}", program.gelu(x, kind))
    return Case(ops.Gelu, None, program, {"x": _floats(1, 7, 45) * np.float32(2)}, (1, 7))


def _silu_gate() -> Case:
    program = Program(7)
    program.output("out", program.silu_gate(program.input("gate", 45), program.input("up", 45)))
    values = {"gate": _floats(1, 7, 45) * np.float32(3), "up": _floats(2, 7, 45)}
    return Case(ops.SiluGate, None, program, values, (1, 7))


def _add() -> Case:
    program = Program(7)
    a, b = program.input("a", 45), program.input("b", 45)
    program.output("sum", program.add(a, b))
    program.output("by a factor", program.add(a, b, factor=-0.7))
    program.output("by a vector", program.add(a, b, scale=_tensor(1, 45)))
    return Case(ops.Add, None, program, {"a": _floats(2, 7, 45), "b": _floats(3, 7, 45)}, (1, 7))


def _patch_up() -> Case:
    program = Program(5)
    program.output("out", program.patch_up(program.input("x", 3 * 15), 15))
    return Case(ops.PatchUp, None, program, {"x": _floats(1, 5, 3 * 15)}, (1, 5))


def _patch_down() -> Case:
    program = Program(5)
    program.output("out", program.patch_down(program.input("x", 3, 15), 15))
    return Case(ops.PatchDown, None, program, {"x": _floats(1, 5 * 15, 3)}, (1, 5))


def _argmax() -> Case:
    """The largest value stands once, or several times and the first of them counts."""
    program = Program(5)
    out = program.output("ids", program.input("ids", 3, is_int=True))
    program.argmax(out, 1, program.input("x", 300))
    x = _floats(1, 5, 300)
    for row, places in enumerate(((299,), (0,), (260, 270), (3, 290), (15, 16, 17))):
        x[row, list(places)] = 5
    return Case(ops.Argmax, None, program, {"ids": np.full((5, 3), 8, np.int32), "x": x}, (1, 5))


_DRAWS = (
    SamplingParams(temperature=0),
    SamplingParams(temperature=0, repetition_penalty=1.37),
    SamplingParams(),
    SamplingParams(temperature=0.5),
    SamplingParams(temperature=1.6),
    SamplingParams(top_k=7),
    SamplingParams(top_p=0.5),
    SamplingParams(repetition_penalty=1.37),
    SamplingParams(0.8, top_k=25, top_p=0.9, repetition_penalty=1.37),
)


def _sample() -> Case:
    """Draws for each of many streams: the first joins the set, the second sees it, the third not.

    Logits are rounded so that many are equal: at top-k all of them stay.
    """
    rows, ids = 3 * len(_DRAWS), 300
    program = Program(rows)
    out = program.output("ids", program.input("ids", 4, is_int=True))
    streams = program.input("streams", 1, is_int=True)
    inputs = (program.input("params", NUM_PARAMS), program.input("uniforms", 4), streams)
    logits = program.input("logits", ids)
    for column, seen in ((1, 0), (2, 0), (3, -1)):
        program.sample(out, column, logits, inputs, seen)
    values = {
        "ids": np.full((rows, 4), 8, np.int32),
        "streams": np.arange(rows, dtype=np.int32)[:, None],
        "params": np.tile([params.row() for params in _DRAWS], (3, 1)),
        "uniforms": np.random.default_rng(1).uniform(0, 0.99, (rows, 4)).astype(np.float32),
        "logits": np.round(_floats(2, rows, ids) * 8) / np.float32(4),
    }

    def some_seen() -> State:
        state = State(StateSpec((), (ids,), rows), 1, rows)
        state.seen[0][:] = np.random.default_rng(3).uniform(0, 1, (rows, ids)) < 0.3
        return state

    return Case(ops.Sample, None, program, values, (1, rows), some_seen)


_OF_EACH_STORAGE: dict[type[Op], Callable[[StorageType], Case]] = {
    ops.Embed: _embed,
    ops.Linear: _linear,
}
_CASES: dict[type[Op], Callable[[], Case]] = {
    ops.Gather: _gather,
    ops.LayerNorm: _layer_norm,
    ops.RmsNorm: _rms_norm,
    ops.Rope: _rope,
    ops.CacheWrite: _cache_write,
    ops.Attention: _attention,
    ops.Gelu: _gelu,
    ops.SiluGate: _silu_gate,
    ops.Add: _add,
    ops.PatchUp: _patch_up,
    ops.PatchDown: _patch_down,
    ops.Argmax: _argmax,
    ops.Sample: _sample,
}
