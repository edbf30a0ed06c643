"""Every op of the table on the cpu backend's instruction sets against the NumPy backend."""

from math import erf, pi, sqrt, tanh

import numpy as np
import pytest
from compute_programs import (
    PACKINGS,
    assert_as_reference,
    outputs_of,
    random_floats,
    random_weight,
)
from instruction_sets import KERNELS

from mosstalk.checkpoint.storage import StorageType
from mosstalk.compute.cpu.backend import CpuBackend
from mosstalk.compute.ops import GeluKind, RopePairs
from mosstalk.compute.program import Program

pytestmark = pytest.mark.parametrize("kernels", KERNELS)
WIDTHS = (8, 24, 33, 45, 160, 240)
# Elementwise functions are polynomials with a relative error of 2e-7, a few roundings more.
FUNCTION_TOLERANCE = 1e-6


@pytest.mark.parametrize("storage", PACKINGS)
@pytest.mark.parametrize("columns", WIDTHS)
def test_linear(kernels: str, columns: int, storage: StorageType) -> None:
    for out_rows, rows in ((1, 1), (7, 2), (16, 3), (33, 6), (40, 7), (8, 17)):
        program = Program(rows)
        x = program.input("x", columns)
        weight = random_weight(1, out_rows, columns, storage=storage)
        program.output("biased", program.linear(x, weight, random_weight(2, out_rows)))
        program.output("plain", program.linear(x, weight))
        assert_as_reference(kernels, program, {"x": random_floats(3, rows, columns)}, rows)


@pytest.mark.parametrize("storage", PACKINGS)
def test_linear_large_enough_for_threads(kernels: str, storage: StorageType) -> None:
    for rows in (1, 6, 9):
        program = Program(rows)
        weight = random_weight(1, 771, 256, storage=storage)
        x = program.input("x", 256)
        program.output("out", program.linear(x, weight, random_weight(2, 771)))
        assert_as_reference(kernels, program, {"x": random_floats(3, rows, 256)}, rows)


@pytest.mark.parametrize("storage", PACKINGS)
@pytest.mark.parametrize("columns", WIDTHS)
def test_embed_sums_tables_and_ignores_ids_outside(
    kernels: str, columns: int, storage: StorageType
) -> None:
    program = Program(17)
    ids = program.input("ids", 4, is_int=True)
    tables = [random_weight(i, size, columns, storage=storage) for i, size in enumerate((5, 9, 2))]
    program.output("out", program.embed(ids, 1, tables))
    values = np.random.default_rng(4).integers(-2, 11, (17, 4)).astype(np.int32)
    values[:3, 1] = -1, 5, 1_000_000
    assert_as_reference(kernels, program, {"ids": values}, 17)


@pytest.mark.parametrize("storage", PACKINGS)
def test_embed_concatenates_tables_of_different_widths(kernels: str, storage: StorageType) -> None:
    program = Program(5)
    ids = program.input("ids", 2, multiple=3, is_int=True)
    tables = [random_weight(1, 6, 8, storage=storage), random_weight(2, 4, 32, storage=storage)]
    program.output("out", program.embed(ids, 0, tables, concat=True))
    values = np.random.default_rng(4).integers(-1, 8, (15, 2)).astype(np.int32)
    assert_as_reference(kernels, program, {"ids": values}, 5, tolerance=0)


def test_gather(kernels: str) -> None:
    program = Program(4)
    x, index = program.input("x", 5, 2), program.input("index", 1, is_int=True)
    program.output("out", program.gather(x, index))
    values = {"x": random_floats(1, 8, 5), "index": np.array([[7], [0], [7]], np.int32)}
    assert_as_reference(kernels, program, values, 3, tolerance=0)


@pytest.mark.parametrize("columns", WIDTHS)
@pytest.mark.parametrize("offset", [0.0, 30.0])
def test_layer_norm(kernels: str, columns: int, offset: float) -> None:
    program = Program(17)
    x = program.input("x", columns)
    weights = (random_weight(1, columns), random_weight(2, columns))
    program.output("out", program.layer_norm(x, *weights, 1e-5))
    rows = random_floats(3, 17, columns) + np.float32(offset)
    # A mean of 30 costs the centred values five bits.
    tolerance = 2e-6 if offset == 0 else 2e-5
    assert_as_reference(kernels, program, {"x": rows}, 17, tolerance)


@pytest.mark.parametrize("group", [8, 20, 33, 64])
def test_rms_norm_of_whole_rows_and_of_groups(kernels: str, group: int) -> None:
    program = Program(9)
    for name, groups in (("row", 1), ("heads", 3)):
        x = program.input(name, group * groups)
        program.output(f"{name} out", program.rms_norm(x, random_weight(1, group), 1e-6))
    values = {"row": random_floats(2, 9, group), "heads": random_floats(3, 9, 3 * group)}
    assert_as_reference(kernels, program, values, 9)


@pytest.mark.parametrize("pairs", list(RopePairs))
@pytest.mark.parametrize("head_dim", [8, 16, 20, 64, 80])
def test_rope_turns_only_its_columns(kernels: str, head_dim: int, pairs: RopePairs) -> None:
    program = Program(17)
    x = program.output("out", program.input("x", 4 * head_dim))
    program.rope(x, program.input("turns", head_dim), head_dim, 2, pairs)
    angles = np.random.default_rng(1).uniform(-9, 9, (17, head_dim // 2))
    turns = np.concatenate([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)
    values = {"x": random_floats(2, 17, 4 * head_dim), "turns": turns}
    assert_as_reference(kernels, program, values, 17)


@pytest.mark.parametrize("kind", list(GeluKind))
@pytest.mark.parametrize("columns", WIDTHS)
def test_gelu(kernels: str, columns: int, kind: GeluKind) -> None:
    program = Program(17)
    program.output("out", program.gelu(program.input("x", columns), kind))
    values = {"x": random_floats(1, 17, columns)}
    assert_as_reference(kernels, program, values, 17, FUNCTION_TOLERANCE)


@pytest.mark.parametrize("kind", list(GeluKind))
def test_gelu_over_its_whole_range(kernels: str, kind: GeluKind) -> None:
    x = np.linspace(-40, 40, 8001, dtype=np.float32)[None]
    program = Program(1)
    program.output("out", program.gelu(program.input("x", x.shape[1]), kind))
    found = outputs_of(CpuBackend(1, kernels), program, {"x": x}, 1)["out"][0]
    for v, got in zip(x[0].tolist(), found.tolist(), strict=True):
        if kind is GeluKind.TANH:
            gate = tanh(sqrt(2 / pi) * (v + 0.044715 * v**3))
        else:
            gate = erf(v / sqrt(2))
        assert abs(got - 0.5 * v * (1 + gate)) <= 3e-7 * max(1, abs(v))


@pytest.mark.parametrize("columns", WIDTHS)
def test_silu_gate(kernels: str, columns: int) -> None:
    program = Program(17)
    gate, up = program.input("gate", columns), program.input("up", columns)
    program.output("out", program.silu_gate(gate, up))
    values = {
        name: random_floats(seed, 17, columns) * np.float32(20)
        for seed, name in enumerate(("gate", "up"))
    }
    assert_as_reference(kernels, program, values, 17, FUNCTION_TOLERANCE)


@pytest.mark.parametrize("columns", WIDTHS)
def test_add_by_a_factor_and_by_a_vector(kernels: str, columns: int) -> None:
    program = Program(17)
    a, b = program.input("a", columns), program.input("b", columns)
    program.output("plain", program.add(a, b))
    program.output("minus", program.add(a, b, factor=-0.5))
    program.output("scaled", program.add(a, b, scale=random_weight(1, columns)))
    values = {"a": random_floats(2, 17, columns), "b": random_floats(3, 17, columns)}
    assert_as_reference(kernels, program, values, 17, tolerance=2e-7)


@pytest.mark.parametrize(("channels", "patch"), [(1, 2), (3, 4), (5, 240)])
def test_patches_go_up_and_down_again(kernels: str, channels: int, patch: int) -> None:
    program = Program(6)
    x = program.input("x", channels * patch)
    up = program.output("up", program.patch_up(x, patch))
    program.output("again", program.patch_down(up, patch))
    narrow = program.input("narrow", channels, patch)
    program.output("down", program.patch_down(narrow, patch))
    values = {"x": random_floats(1, 5, x.width), "narrow": random_floats(2, 5 * patch, channels)}
    assert_as_reference(kernels, program, values, 5, tolerance=0)


def test_wide_buffers_after_a_patch(kernels: str) -> None:
    """Ops on `multiple` rows for each row of the call, as in the codec's decoder."""
    program = Program(5)
    x = program.patch_up(program.input("x", 4 * 24), 4)
    normed = program.layer_norm(x, random_weight(1, 24), random_weight(2, 24), 1e-5)
    inner = program.linear(normed, random_weight(3, 33, 24), random_weight(4, 33))
    inner = program.gelu(inner, GeluKind.ERF)
    x = program.add(x, program.linear(inner, random_weight(5, 24, 33, scale=0.2)))
    program.output("out", x)
    for rows in (1, 5):
        assert_as_reference(kernels, program, {"x": random_floats(6, rows, 96)}, rows)


def test_argmax_takes_the_first_of_equals(kernels: str) -> None:
    program = Program(3)
    out = program.output("out", program.input("ids", 3, is_int=True))
    program.argmax(out, 1, program.input("x", 5))
    x = np.array([[0, 3, 3, 1, 3], [-1, -2, -1, -5, -9], [0, 0, 0, 0, 0.1]], np.float32)
    values = {"ids": np.full((3, 3), 8, np.int32), "x": x}
    assert_as_reference(kernels, program, values, 3)
