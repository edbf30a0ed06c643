"""Running small programs on any backend, for the tests of the op table."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosstalk.checkpoint.storage import StorageType, StoredTensor, from_float32
from mosstalk.compute.backend import Backend, ReferenceBackend
from mosstalk.compute.cpu.backend import CpuBackend
from mosstalk.compute.program import Program
from mosstalk.compute.state import CacheSpec, State, StateSpec

Floats = NDArray[np.float32]
Ints = NDArray[np.int32]

PACKINGS = (StorageType.F32, StorageType.F16, StorageType.BF16, StorageType.Q8_0)

# A float32 sum of n products in sixteen lanes is off by some 1e-7 of the largest term times the
# root of its n / 16 additions, with luck spread over the row: 2e-6 of the largest result leaves a
# factor of four at the widths tested here, and a wrong or missing term is off by 1e-2 and more.
SUM_TOLERANCE = 2e-6


def outputs_of(
    backend: Backend,
    program: Program,
    values: Mapping[str, NDArray[Any]],
    rows: int,
    state: State | None = None,
) -> dict[str, NDArray[Any]]:
    """All named outputs after one run over `rows` rows of the named inputs."""
    built = backend.build(program)
    for name, value in values.items():
        built.array(program.inputs[name])[: len(value)] = value
    built.run(rows, state)
    return {
        name: built.array(buffer)[: rows * buffer.multiple].copy()
        for name, buffer in program.outputs.items()
    }


def assert_near(found: NDArray[Any], wanted: NDArray[Any], tolerance: float) -> None:
    """Equal within `tolerance` of the largest wanted value, or of 1, the size of the terms."""
    assert found.shape == wanted.shape
    assert np.isfinite(found).all()
    off = np.abs(found.astype(np.float64) - wanted).max() / max(1.0, np.abs(wanted).max())
    assert off <= tolerance, off


def assert_as_reference(
    kernels: str,
    program: Program,
    values: Mapping[str, NDArray[Any]],
    rows: int,
    tolerance: float = SUM_TOLERANCE,
) -> None:
    """The cpu backend's float outputs are the NumPy backend's, its ints equal."""
    wanted = outputs_of(ReferenceBackend(), program, values, rows)
    found = outputs_of(CpuBackend(2, kernels), program, values, rows)
    for name, value in wanted.items():
        if value.dtype == np.int32:
            assert np.array_equal(found[name], value)
        else:
            assert_near(found[name], value, tolerance)


def random_floats(seed: int, *shape: int) -> Floats:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def random_weight(
    seed: int, *shape: int, storage: StorageType = StorageType.F32, scale: float = 1.0
) -> StoredTensor:
    values = random_floats(seed, *shape) * np.float32(scale)
    return from_float32(f"weight {seed}", values, storage)


def state_of(
    cache: CacheSpec, capacity: int, max_rows: int, streams: int = 1, seen: tuple[int, ...] = ()
) -> State:
    return State(StateSpec((cache,), seen, max_rows), capacity, streams)


class AttentionBench:
    """Writes keys and values to one cache and attends to it, call after call."""

    def __init__(
        self, backend: Backend, cache: CacheSpec, heads: int, max_rows: int, capacity: int
    ) -> None:
        self.cache, self.heads, self.backend = cache, heads, backend
        self.max_rows, self.capacity = max_rows, capacity
        width = (heads + 2 * cache.heads) * cache.head_dim
        program = Program(max_rows)
        x = program.input("x", width)
        positions = program.input("positions", 1, is_int=True)
        streams = program.input("streams", 1, is_int=True)
        key_column = heads * cache.head_dim
        value_column = key_column + cache.heads * cache.head_dim
        program.cache_write((x, key_column), (x, value_column), 0, positions, streams)
        shape = (heads, cache.head_dim)
        attended = program.attention(x, 0, positions, streams, shape, cache.window)
        program.output("out", attended)
        self.width, self._program, self._built = width, program, backend.build(program)

    def state(self, streams: int = 1) -> State:
        return state_of(self.cache, self.capacity, self.max_rows, streams)

    def call(self, state: State, x: Floats, positions: Ints, streams: Ints | int = 0) -> Floats:
        """One run over the rows of x."""
        rows = len(x)
        for name, value in (("x", x), ("positions", positions), ("streams", streams)):
            array = self._built.array(self._program.inputs[name])
            array[:rows] = value if name == "x" else np.reshape(value, (-1, 1))
        self._built.run(rows, state)
        found: Floats = self._built.array(self._program.outputs["out"])[:rows].copy()
        return found

    def sequence(self, x: Floats, calls_of: int, state: State | None = None) -> Floats:
        """All rows of x as one stream from position 0, `calls_of` rows in a run."""
        state = self.state() if state is None else state
        parts = []
        for start in range(0, len(x), calls_of):
            part = x[start : start + calls_of]
            positions = np.arange(start, start + len(part), dtype=np.int32)
            parts.append(self.call(state, part, positions))
        return np.concatenate(parts)
