"""On the vulkan backend a row's result is the same bits in whatever company it is computed."""

import numpy as np
import pytest
from compute_programs import (
    PACKINGS,
    AttentionBench,
    Floats,
    outputs_of,
    random_floats,
    random_weight,
    state_of,
)
from vulkan_device import vulkan_backend

from mosstalk.checkpoint.storage import StorageType, StoredTensor, from_float32
from mosstalk.compute.ops import GeluKind
from mosstalk.compute.program import Program
from mosstalk.compute.state import CacheSpec

MAX_ROWS = 20


def _linear(x: Floats, weight: StoredTensor, bias: StoredTensor) -> Floats:
    program = Program(len(x))
    program.output("out", program.linear(program.input("x", x.shape[1]), weight, bias))
    out: Floats = outputs_of(vulkan_backend(), program, {"x": x}, len(x))["out"]
    return out


@pytest.mark.parametrize("storage", PACKINGS)
@pytest.mark.parametrize("columns", [45, 64, 1056])
def test_vulkan_exact_linear_whatever_rows_are_together(columns: int, storage: StorageType) -> None:
    weight = random_weight(1, 37, columns, storage=storage)
    bias = random_weight(2, 37)
    x = random_floats(3, MAX_ROWS, columns)
    alone = np.concatenate([_linear(row[None], weight, bias) for row in x])
    for rows in (2, 7, 8, 9, 17, MAX_ROWS):
        assert np.array_equal(_linear(x[:rows], weight, bias), alone[:rows])
        # The same rows at other places of the call.
        assert np.array_equal(_linear(x[-rows:], weight, bias), alone[-rows:])


@pytest.mark.parametrize("storage", PACKINGS)
@pytest.mark.parametrize("columns", [45, 160])
def test_vulkan_exact_packed_linear_equals_its_float32_values(
    columns: int, storage: StorageType
) -> None:
    packed, bias = random_weight(1, 37, columns, storage=storage), random_weight(2, 37)
    wide = from_float32("wide", packed.to_float32(), StorageType.F32)
    for rows in (1, 9):
        x = random_floats(3, rows, columns)
        assert np.array_equal(_linear(x, packed, bias), _linear(x, wide, bias))


def test_vulkan_exact_row_wise_ops_whatever_the_rows() -> None:
    columns = 303
    program = Program(40)
    x = program.input("x", columns)
    normed = program.layer_norm(x, random_weight(1, columns), random_weight(2, columns), 1e-5)
    program.output("layer_norm", normed)
    program.output("rms_norm", program.rms_norm(x, random_weight(3, columns), 1e-5))
    program.output("tanh", program.gelu(x, GeluKind.TANH))
    program.output("erf", program.gelu(x, GeluKind.ERF))
    program.output("add", program.add(x, normed, random_weight(4, columns)))
    program.output("silu_gate", program.silu_gate(x, program.input("up", columns)))
    values = {"x": random_floats(5, 40, columns), "up": random_floats(6, 40, columns)}
    together = outputs_of(vulkan_backend(), program, values, 40)
    for row in (0, 17, 39):
        one = {name: value[row : row + 1] for name, value in values.items()}
        alone = outputs_of(vulkan_backend(), program, one, 1)
        for name, value in alone.items():
            assert np.array_equal(value[0], together[name][row]), name


@pytest.mark.parametrize(("head_dim", "window"), [(20, 0), (64, 0), (16, 7), (64, 40)])
def test_vulkan_exact_attention_whatever_the_chunks_and_capacity(
    head_dim: int, window: int
) -> None:
    cache = CacheSpec(2, head_dim, window)
    first = AttentionBench(vulkan_backend(), cache, 4, 1, 130)
    x = random_floats(1, 130, first.width)
    alone = first.sequence(x, 1)
    for max_rows, capacity in ((130, 130), (17, 131), (64, 4000)):
        bench = AttentionBench(vulkan_backend(), cache, 4, max_rows, capacity)
        for calls_of in (3, 17, 64, 130):
            if calls_of <= max_rows:
                assert np.array_equal(bench.sequence(x, calls_of), alone)


@pytest.mark.parametrize("window", [0, 7])
def test_vulkan_exact_attention_whatever_streams_share_the_call(window: int) -> None:
    bench = AttentionBench(vulkan_backend(), CacheSpec(2, 20, window), 4, 30, 60)
    rows = [random_floats(seed, 60, bench.width) for seed in range(3)]
    alone = [bench.sequence(x, 1) for x in rows]
    generator, state = np.random.default_rng(9), bench.state(3)
    for start in range(0, 60, 10):
        streams = np.repeat(np.arange(3, dtype=np.int32), 10)
        generator.shuffle(streams)
        positions = np.empty(30, np.int32)
        for stream in range(3):
            positions[streams == stream] = np.arange(start, start + 10)
        pairs = list(zip(streams, positions, strict=True))
        x = np.stack([rows[stream][position] for stream, position in pairs])
        wanted = np.stack([alone[stream][position] for stream, position in pairs])
        assert np.array_equal(bench.call(state, x, positions, streams), wanted)


def test_vulkan_exact_attention_ignores_what_lies_beyond_its_rows() -> None:
    bench = AttentionBench(vulkan_backend(), CacheSpec(1, 16), 1, 8, 64)
    x = random_floats(1, 40, bench.width)
    clean = bench.sequence(x, 8)
    state = state_of(bench.cache, 64, 8)
    state.keys[0][:] = np.nan
    state.values[0][:] = np.nan
    assert np.array_equal(bench.sequence(x, 8, state), clean)
