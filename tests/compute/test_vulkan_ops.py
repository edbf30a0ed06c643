"""Every op of the table on the vulkan backend against the NumPy backend, for each storage type.

Tolerances are those of the cpu backend's tests (compute_programs.py, test_ops_as_reference.py).
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from compute_programs import (
    PACKINGS,
    SUM_TOLERANCE,
    AttentionBench,
    Floats,
    assert_near,
    outputs_of,
    random_floats,
    random_weight,
)
from numpy.typing import NDArray
from vulkan_device import vulkan_backend

from mosstalk.checkpoint.storage import StorageType, from_float32
from mosstalk.compute.backend import ReferenceBackend
from mosstalk.compute.ops import GeluKind, RopePairs
from mosstalk.compute.program import Program
from mosstalk.compute.self_test.check import find_faults
from mosstalk.compute.state import CacheSpec

FUNCTION_TOLERANCE = 1e-6


def _assert_as_reference(
    program: Program,
    values: Mapping[str, NDArray[Any]],
    rows: int,
    tolerance: float = SUM_TOLERANCE,
) -> None:
    wanted = outputs_of(ReferenceBackend(), program, values, rows)
    found = outputs_of(vulkan_backend(), program, values, rows)
    for name, value in wanted.items():
        if value.dtype == np.int32:
            assert np.array_equal(found[name], value)
        else:
            assert_near(found[name], value, tolerance)


def test_vulkan_passes_the_self_test() -> None:
    backend = vulkan_backend()
    assert backend.exact_rows
    assert find_faults(backend) == []


@pytest.mark.parametrize("storage", PACKINGS)
@pytest.mark.parametrize("columns", [8, 33, 64, 160, 1024])
def test_vulkan_linear(columns: int, storage: StorageType) -> None:
    for out_rows, rows in ((1, 1), (7, 2), (33, 9), (8, 17)):
        program = Program(rows)
        x = program.input("x", columns)
        weight = random_weight(1, out_rows, columns, storage=storage)
        program.output("biased", program.linear(x, weight, random_weight(2, out_rows)))
        program.output("plain", program.linear(x, weight))
        _assert_as_reference(program, {"x": random_floats(3, rows, columns)}, rows)


@pytest.mark.parametrize("storage", PACKINGS)
def test_vulkan_unpacks_every_weight_exactly(storage: StorageType) -> None:
    """An embedding is the packed row itself: the smallest half-precision numbers, and signs."""
    values = random_floats(1, 64, 64) * np.float32(2.0) ** np.arange(-34, 30, dtype=np.float32)
    values = values.clip(-65504, 65504)
    values[0, :8] = 0, -0.0, 2**-24, -(2**-24), 2**-14, 1023 * 2**-24, 65504, -65504
    table = from_float32("table", values, storage)
    program = Program(64)
    program.output("out", program.embed(program.input("ids", 1, is_int=True), 0, [table]))
    ids = np.arange(64, dtype=np.int32)[:, None]
    found = outputs_of(vulkan_backend(), program, {"ids": ids}, 64)["out"]
    assert np.array_equal(found, table.to_float32())


@pytest.mark.parametrize("storage", PACKINGS)
def test_vulkan_embed_sums_and_joins_and_ignores_ids_outside(storage: StorageType) -> None:
    program = Program(17)
    ids = program.input("ids", 4, multiple=2, is_int=True)
    tables = [random_weight(i, size, 45, storage=storage) for i, size in enumerate((5, 9, 2))]
    program.output("sum", program.embed(ids, 1, tables))
    uneven = [random_weight(3, 6, 32, storage=storage), random_weight(4, 4, 7, storage=storage)]
    program.output("joined", program.embed(ids, 0, uneven, concat=True))
    values = np.random.default_rng(4).integers(-2, 11, (34, 4)).astype(np.int32)
    values[:4, 1] = -1, 5, 2**31 - 1, -(2**31)
    _assert_as_reference(program, {"ids": values}, 17, tolerance=2e-7)


@pytest.mark.parametrize("storage", PACKINGS)
def test_vulkan_splits_a_matrix_over_the_binding_limit(
    storage: StorageType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Parts of 44 rows and a last one of ten: the results are the same bits as of one piece."""
    backend: Any = vulkan_backend()
    x, ids = random_floats(3, 5, 96), np.array([[0], [43], [44], [229], [220]], np.int32)

    def results() -> dict[str, NDArray[Any]]:
        weight = random_weight(1, 230, 96, storage=storage)
        program = Program(5)
        inputs = program.input("x", 96), program.input("ids", 1, is_int=True)
        program.output("out", program.linear(inputs[0], weight, random_weight(2, 230)))
        program.output("row", program.embed(inputs[1], 0, [weight]))
        return outputs_of(backend, program, {"x": x, "ids": ids}, 5)

    whole = results()
    row_bytes = {"f32": 384, "q8_0": 108}.get(storage, 192)
    monkeypatch.setattr(backend.device, "binding_limit", 44 * row_bytes + 64)
    parts = results()
    for name, value in whole.items():
        assert np.array_equal(parts[name], value)


def test_vulkan_gather() -> None:
    program = Program(4)
    x, index = program.input("x", 5, 2), program.input("index", 1, is_int=True)
    program.output("out", program.gather(x, index))
    values = {"x": random_floats(1, 8, 5), "index": np.array([[7], [0], [7]], np.int32)}
    _assert_as_reference(program, values, 3, tolerance=0)


@pytest.mark.parametrize("columns", [8, 45, 240, 1500])
@pytest.mark.parametrize("offset", [0.0, 30.0])
def test_vulkan_layer_norm(columns: int, offset: float) -> None:
    program = Program(17)
    x = program.input("x", columns)
    weights = (random_weight(1, columns), random_weight(2, columns))
    program.output("out", program.layer_norm(x, *weights, 1e-5))
    rows = random_floats(3, 17, columns) + np.float32(offset)
    _assert_as_reference(program, {"x": rows}, 17, 2e-6 if offset == 0 else 2e-5)


@pytest.mark.parametrize("group", [8, 33, 64])
def test_vulkan_rms_norm_of_whole_rows_and_of_groups(group: int) -> None:
    program = Program(9)
    for name, groups in (("row", 1), ("heads", 3)):
        x = program.input(name, group * groups)
        program.output(f"{name} out", program.rms_norm(x, random_weight(1, group), 1e-6))
    values = {"row": random_floats(2, 9, group), "heads": random_floats(3, 9, 3 * group)}
    _assert_as_reference(program, values, 9)


@pytest.mark.parametrize("pairs", list(RopePairs))
@pytest.mark.parametrize("head_dim", [8, 20, 64])
def test_vulkan_rope_turns_only_its_columns(head_dim: int, pairs: RopePairs) -> None:
    program = Program(17)
    x = program.output("out", program.input("x", 4 * head_dim))
    program.rope(x, program.input("turns", head_dim), head_dim, 2, pairs)
    angles = np.random.default_rng(1).uniform(-9, 9, (17, head_dim // 2))
    turns = np.concatenate([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)
    values = {"x": random_floats(2, 17, 4 * head_dim), "turns": turns}
    _assert_as_reference(program, values, 17)


@pytest.mark.parametrize("kind", list(GeluKind))
def test_vulkan_gelu_over_its_whole_range(kind: GeluKind) -> None:
    program = Program(1)
    program.output("out", program.gelu(program.input("x", 8001), kind))
    x = np.linspace(-100, 100, 8001, dtype=np.float32)[None]
    wanted = outputs_of(ReferenceBackend(), program, {"x": x}, 1)["out"]
    found = outputs_of(vulkan_backend(), program, {"x": x}, 1)["out"]
    assert np.isfinite(found).all()
    assert (np.abs(found - wanted) <= 4e-7 * np.maximum(1, np.abs(x))).all()


@pytest.mark.parametrize("columns", [8, 45, 240])
def test_vulkan_silu_gate_and_sums(columns: int) -> None:
    program = Program(17)
    a, b = program.input("a", columns), program.input("b", columns)
    program.output("gate", program.silu_gate(a, b))
    program.output("plain", program.add(a, b))
    program.output("minus", program.add(a, b, factor=-0.5))
    program.output("scaled", program.add(a, b, scale=random_weight(1, columns)))
    values = {
        name: random_floats(seed, 17, columns) * np.float32(20) for seed, name in enumerate("ab")
    }
    _assert_as_reference(program, values, 17, FUNCTION_TOLERANCE)


@pytest.mark.parametrize(("channels", "patch"), [(1, 2), (3, 4), (5, 240)])
def test_vulkan_patches_go_up_and_down_again(channels: int, patch: int) -> None:
    program = Program(6)
    x = program.input("x", channels * patch)
    up = program.output("up", program.patch_up(x, patch))
    program.output("again", program.patch_down(up, patch))
    narrow = program.input("narrow", channels, patch)
    program.output("down", program.patch_down(narrow, patch))
    values = {"x": random_floats(1, 5, x.width), "narrow": random_floats(2, 5 * patch, channels)}
    _assert_as_reference(program, values, 5, tolerance=0)


def test_vulkan_argmax_takes_the_first_of_equals() -> None:
    program = Program(4)
    out = program.output("out", program.input("ids", 3, is_int=True))
    program.argmax(out, 1, program.input("x", 200))
    x = np.full((4, 200), -1, np.float32)
    for row, places in enumerate(((199,), (64, 63, 130), (0, 1), ())):
        x[row, list(places)] = 3
    values = {"ids": np.full((4, 3), 8, np.int32), "x": x}
    _assert_as_reference(program, values, 4)


@pytest.mark.parametrize(
    ("head_dim", "heads", "cache_heads", "window"),
    [(8, 3, 3, 0), (20, 4, 2, 0), (80, 2, 1, 0), (160, 2, 1, 0), (16, 2, 2, 25), (64, 2, 2, 140)],
)
def test_vulkan_attention_over_caches_and_rings(
    head_dim: int, heads: int, cache_heads: int, window: int
) -> None:
    cache = CacheSpec(cache_heads, head_dim, window)
    benches = [
        AttentionBench(backend, cache, heads, 17, 200)
        for backend in (vulkan_backend(), ReferenceBackend())
    ]
    x = random_floats(1, 150, benches[0].width)
    found, wanted = (bench.sequence(x, 17) for bench in benches)
    assert_near(found, wanted, SUM_TOLERANCE)


def test_vulkan_attention_of_large_scores_does_not_overflow() -> None:
    benches = [
        AttentionBench(backend, CacheSpec(1, 16), 1, 8, 32)
        for backend in (vulkan_backend(), ReferenceBackend())
    ]
    x: Floats = random_floats(5, 32, benches[0].width)
    x[:, :16] *= 100  # scores in the hundreds: all but the largest vanish
    found, wanted = (bench.sequence(x, 8) for bench in benches)
    assert_near(found, wanted, 1e-4)
