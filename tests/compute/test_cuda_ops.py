"""Every op of the table on the cuda backend against the NumPy backend, for each storage type."""

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
    state_of,
)
from cuda_device import cuda_backend, need_torch
from numpy.typing import NDArray

from mosstalk.checkpoint.storage import StorageType, from_float32
from mosstalk.compute.backend import ReferenceBackend
from mosstalk.compute.ops import GeluKind, RopePairs
from mosstalk.compute.program import Program
from mosstalk.compute.sampling import NUM_PARAMS, SamplingParams
from mosstalk.compute.self_test.check import find_faults
from mosstalk.compute.state import CacheSpec, State, StateSpec

need_torch()
from mosstalk.compute.cuda import weights as device_weights  # noqa: E402  # needs PyTorch


def _assert_as_reference(
    program: Program,
    values: Mapping[str, NDArray[Any]],
    rows: int,
    tolerance: float = SUM_TOLERANCE,
) -> None:
    wanted = outputs_of(ReferenceBackend(), program, values, rows)
    found = outputs_of(cuda_backend(), program, values, rows)
    for name, value in wanted.items():
        if value.dtype == np.int32:
            assert np.array_equal(found[name], value)
        else:
            assert_near(found[name], value, tolerance)


def test_cuda_passes_the_self_test() -> None:
    assert find_faults(cuda_backend()) == []


@pytest.mark.parametrize("storage", PACKINGS)
@pytest.mark.parametrize("columns", [8, 33, 64, 160, 1600])
def test_cuda_linear(columns: int, storage: StorageType) -> None:
    for out_rows, rows in ((1, 1), (7, 2), (33, 9), (8, 17)):
        program = Program(rows)
        x = program.input("x", columns)
        weight = random_weight(1, out_rows, columns, storage=storage)
        program.output("biased", program.linear(x, weight, random_weight(2, out_rows)))
        program.output("plain", program.linear(x, weight))
        _assert_as_reference(program, {"x": random_floats(3, rows, columns)}, rows)


@pytest.mark.parametrize("storage", PACKINGS)
def test_cuda_linear_of_several_slabs(
    storage: StorageType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Slabs of five rows, and a last one of two."""
    monkeypatch.setattr(device_weights, "SLAB_LEN", 5 * 64)
    program = Program(9)
    x = program.input("x", 64)
    weight = random_weight(1, 37, 64, storage=storage)
    program.output("biased", program.linear(x, weight, random_weight(2, 37)))
    program.output("plain", program.linear(x, weight))
    _assert_as_reference(program, {"x": random_floats(3, 9, 64)}, 9)


@pytest.mark.parametrize("storage", PACKINGS)
def test_cuda_unpacks_every_weight_exactly(storage: StorageType) -> None:
    """An embedding is the packed row itself: the smallest half-precision numbers, and signs."""
    values = random_floats(1, 64, 64) * np.float32(2.0) ** np.arange(-34, 30, dtype=np.float32)
    table = from_float32("table", values.clip(-65504, 65504), storage)
    program = Program(64)
    program.output("out", program.embed(program.input("ids", 1, is_int=True), 0, [table]))
    ids = np.arange(64, dtype=np.int32)[:, None]
    found = outputs_of(cuda_backend(), program, {"ids": ids}, 64)["out"]
    assert np.array_equal(found, table.to_float32())


@pytest.mark.parametrize("storage", PACKINGS)
def test_cuda_embed_sums_and_joins_and_ignores_ids_outside(storage: StorageType) -> None:
    program = Program(17)
    ids = program.input("ids", 4, multiple=2, is_int=True)
    tables = [random_weight(i, size, 45, storage=storage) for i, size in enumerate((5, 9, 2))]
    program.output("sum", program.embed(ids, 1, tables))
    uneven = [random_weight(3, 6, 32, storage=storage), random_weight(4, 4, 7, storage=storage)]
    program.output("joined", program.embed(ids, 0, uneven, concat=True))
    values = np.random.default_rng(4).integers(-2, 11, (34, 4)).astype(np.int32)
    values[:4, 1] = -1, 5, 2**31 - 1, -(2**31)
    _assert_as_reference(program, {"ids": values}, 17, tolerance=2e-7)


@pytest.mark.parametrize("columns", [8, 45, 240, 1500])
@pytest.mark.parametrize("offset", [0.0, 30.0])
def test_cuda_layer_norm(columns: int, offset: float) -> None:
    program = Program(17)
    x = program.input("x", columns)
    weights = (random_weight(1, columns), random_weight(2, columns))
    program.output("out", program.layer_norm(x, *weights, 1e-5))
    rows = random_floats(3, 17, columns) + np.float32(offset)
    # A mean of 30 costs the centred values five bits.
    _assert_as_reference(program, {"x": rows}, 17, 2e-6 if offset == 0 else 2e-5)


@pytest.mark.parametrize("group", [8, 33, 64])
def test_cuda_rms_norm_of_whole_rows_and_of_groups(group: int) -> None:
    program = Program(9)
    for name, groups in (("row", 1), ("heads", 3)):
        x = program.input(name, group * groups)
        program.output(f"{name} out", program.rms_norm(x, random_weight(1, group), 1e-6))
    values = {"row": random_floats(2, 9, group), "heads": random_floats(3, 9, 3 * group)}
    _assert_as_reference(program, values, 9)


@pytest.mark.parametrize("pairs", list(RopePairs))
@pytest.mark.parametrize("head_dim", [8, 20, 64])
def test_cuda_rope_turns_only_its_columns(head_dim: int, pairs: RopePairs) -> None:
    """Of an input, which the run changes, and of a value between two ops."""
    program = Program(17)
    x = program.output("in place", program.input("x", 4 * head_dim))
    turns = program.input("turns", head_dim)
    copied = program.output("between", program.add(x, x, factor=0.0))
    program.rope(copied, turns, head_dim, 2, pairs)
    program.rope(x, turns, head_dim, 2, pairs)
    angles = np.random.default_rng(1).uniform(-9, 9, (17, head_dim // 2))
    turned = np.concatenate([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)
    _assert_as_reference(program, {"x": random_floats(2, 17, 4 * head_dim), "turns": turned}, 17)


@pytest.mark.parametrize("kind", list(GeluKind))
def test_cuda_gelu_over_its_whole_range(kind: GeluKind) -> None:
    x = np.linspace(-40, 40, 8001, dtype=np.float32)[None]
    program = Program(1)
    program.output("out", program.gelu(program.input("x", x.shape[1]), kind))
    _assert_as_reference(program, {"x": x}, 1, 1e-6)


@pytest.mark.parametrize(("channels", "patch"), [(1, 2), (3, 4), (5, 240), (4, 1)])
def test_cuda_patches_go_up_and_down_again(channels: int, patch: int) -> None:
    program = Program(6)
    x = program.input("x", channels * patch)
    up = program.output("up", program.patch_up(x, patch))
    program.output("again", program.patch_down(up, patch))
    _assert_as_reference(program, {"x": random_floats(1, 5, x.width)}, 5, tolerance=0)


def test_cuda_layers_that_free_what_they_no_longer_need() -> None:
    program = Program(3)
    x = program.input("x", 16)
    for layer in range(6):
        inner = program.gelu(program.linear(x, random_weight(layer, 16, 16)), GeluKind.TANH)
        x = program.add(x, program.add(inner, program.gelu(x, GeluKind.ERF)))
    program.output("out", x)
    _assert_as_reference(program, {"x": random_floats(1, 3, 16)}, 3)


def _benches(cache: CacheSpec, heads: int, capacity: int) -> tuple[AttentionBench, AttentionBench]:
    backends = cuda_backend(), ReferenceBackend()
    cuda, reference = (AttentionBench(backend, cache, heads, 17, capacity) for backend in backends)
    return cuda, reference


@pytest.mark.parametrize("head_dim", [8, 20, 64])
@pytest.mark.parametrize(("heads", "cache_heads"), [(1, 1), (3, 3), (4, 2), (6, 1)])
def test_cuda_attention_with_shared_heads(head_dim: int, heads: int, cache_heads: int) -> None:
    cuda, reference = _benches(CacheSpec(cache_heads, head_dim), heads, 40)
    x = random_floats(1, 40, cuda.width)
    for calls_of in (1, 7, 17):
        wanted = reference.sequence(x, calls_of)
        assert_near(cuda.sequence(x, calls_of), wanted, SUM_TOLERANCE)


@pytest.mark.parametrize("window", [1, 3, 16, 25])
@pytest.mark.parametrize("calls_of", [1, 5, 17])
def test_cuda_windowed_ring_wraps_many_times(window: int, calls_of: int) -> None:
    cuda, reference = _benches(CacheSpec(2, 16, window), 2, 1000)
    x = random_floats(2, 150, cuda.width)
    assert_near(cuda.sequence(x, calls_of), reference.sequence(x, calls_of), SUM_TOLERANCE)


@pytest.mark.parametrize("cache", [CacheSpec(2, 16), CacheSpec(2, 16, window=5)])
def test_cuda_streams_of_a_call_see_only_their_own_rows(cache: CacheSpec) -> None:
    cuda, reference = _benches(cache, 4, 64)
    states = cuda.state(3), reference.state(3)
    generator, lengths = np.random.default_rng(4), np.zeros(3, np.int32)
    for call in range(6):
        streams = generator.integers(0, 3, 17).astype(np.int32)
        positions = np.empty(17, np.int32)
        for row, stream in enumerate(streams):
            positions[row] = lengths[stream]
            lengths[stream] += 1
        x = random_floats(call, 17, cuda.width)
        found = cuda.call(states[0], x, positions, streams)
        wanted = reference.call(states[1], x, positions, streams)
        assert_near(found, wanted, SUM_TOLERANCE)


@pytest.mark.parametrize("cache", [CacheSpec(1, 16), CacheSpec(1, 16, window=5)])
def test_cuda_places_out_of_sight_may_hold_anything(cache: CacheSpec) -> None:
    cuda, _ = _benches(cache, 1, 64)
    x = random_floats(1, 20, cuda.width)
    clean, spoilt = cuda.state(), cuda.state()
    for array in (*spoilt.keys, *spoilt.values):
        array[:] = np.nan
    assert np.array_equal(cuda.sequence(x, 7, spoilt), cuda.sequence(x, 7, clean))


_DRAWS = (
    SamplingParams(temperature=0, repetition_penalty=1.3),
    SamplingParams(temperature=1e-6),
    SamplingParams(0.8, top_k=25, top_p=0.95, repetition_penalty=1.2),
    SamplingParams(1.5, top_k=50),
    SamplingParams(top_k=1),
    SamplingParams(top_p=1e-6),
    SamplingParams(1.1, top_p=0.5, repetition_penalty=0.7),
    SamplingParams(),
)


def _sampler(rows: int, ids: int) -> Program:
    program = Program(rows)
    out = program.output("ids", program.input("ids", 1, is_int=True))
    params, uniforms = program.input("params", NUM_PARAMS), program.input("uniforms", 1)
    inputs = (params, uniforms, program.input("streams", 1, is_int=True))
    program.sample(out, 0, program.input("logits", ids), inputs, seen=0)
    return program


@pytest.mark.parametrize("ids", [2, 33, 1024])
@pytest.mark.parametrize("streams", ["distinct", "shared"])
def test_cuda_draws_as_the_definition(ids: int, streams: str) -> None:
    """Many draws; where rows share a stream the later sees what the earlier has drawn."""
    rows = 8 * len(_DRAWS)
    numbers = np.arange(rows) if streams == "distinct" else np.arange(rows) // 5
    values = {
        "params": np.tile([params.row() for params in _DRAWS], (8, 1)),
        "uniforms": np.random.default_rng(1).random((rows, 1), np.float32),
        "streams": numbers.astype(np.int32)[:, None],
        "logits": random_floats(2, rows, ids) * np.float32(3),
    }
    drawn = []
    for backend in (cuda_backend(), ReferenceBackend()):
        state = State(StateSpec((), (ids,), rows), 1, rows)
        state.seen[0][:] = np.random.default_rng(3).random((rows, ids)) < 0.2
        drawn.append((outputs_of(backend, _sampler(rows, ids), values, rows, state), state.seen[0]))
    (found, found_seen), (wanted, wanted_seen) = drawn
    assert np.array_equal(found["ids"], wanted["ids"])
    assert np.array_equal(found_seen, wanted_seen)


@pytest.mark.parametrize(("uniform", "wanted"), [(0.0, 0), (0.25, 1), (0.75, 3), (1 - 2**-24, 3)])
def test_cuda_draws_the_first_id_whose_sum_exceeds_the_uniform(uniform: float, wanted: int) -> None:
    """Four ids of a quarter each: a sum that the uniform reaches is not enough."""
    values: dict[str, Floats] = {
        "params": SamplingParams().row()[None],
        "uniforms": np.array([[uniform]], np.float32),
        "logits": np.zeros((1, 4), np.float32),
    }
    state = state_of(CacheSpec(1, 8), 16, 1, seen=(4,))
    assert outputs_of(cuda_backend(), _sampler(1, 4), values, 1, state)["ids"][0, 0] == wanted
