"""Attention over caches on the cpu backend's instruction sets against the NumPy backend."""

import numpy as np
import pytest
from compute_programs import SUM_TOLERANCE, AttentionBench, assert_near, random_floats, state_of
from instruction_sets import KERNELS

from mosstalk.compute.backend import ReferenceBackend
from mosstalk.compute.cpu.backend import CpuBackend
from mosstalk.compute.program import Program
from mosstalk.compute.state import CacheSpec

pytestmark = pytest.mark.parametrize("kernels", KERNELS)


def _benches(
    kernels: str, cache: CacheSpec, heads: int, max_rows: int, capacity: int
) -> tuple[AttentionBench, AttentionBench]:
    cpu = AttentionBench(CpuBackend(2, kernels), cache, heads, max_rows, capacity)
    return cpu, AttentionBench(ReferenceBackend(), cache, heads, max_rows, capacity)


@pytest.mark.parametrize("head_dim", [8, 16, 20, 64, 80])
@pytest.mark.parametrize(("heads", "cache_heads"), [(1, 1), (3, 3), (4, 2), (6, 1)])
def test_causal_attention_with_shared_heads(
    kernels: str, head_dim: int, heads: int, cache_heads: int
) -> None:
    cpu, reference = _benches(kernels, CacheSpec(cache_heads, head_dim), heads, 17, 40)
    x = random_floats(1, 40, cpu.width)
    for calls_of in (1, 7, 17):
        wanted = reference.sequence(x, calls_of)
        assert_near(cpu.sequence(x, calls_of), wanted, SUM_TOLERANCE)


@pytest.mark.parametrize("window", [1, 3, 16, 25])
@pytest.mark.parametrize("calls_of", [1, 5, 17])
def test_windowed_ring_wraps_many_times(kernels: str, window: int, calls_of: int) -> None:
    cpu, reference = _benches(kernels, CacheSpec(2, 16, window), 2, 17, 1000)
    x = random_floats(2, 150, cpu.width)
    assert cpu.state().values[0].shape[2] <= 48  # far fewer than the rows
    assert_near(cpu.sequence(x, calls_of), reference.sequence(x, calls_of), SUM_TOLERANCE)


def test_window_equals_attention_over_the_window_alone(kernels: str) -> None:
    window = 5
    cpu, _ = _benches(kernels, CacheSpec(1, 16, window), 1, 4, 100)
    x = random_floats(3, 30, cpu.width)
    found = cpu.sequence(x, 4)
    for row in range(len(x)):
        seen = x[max(0, row - window + 1) : row + 1].astype(np.float64)
        weights = np.exp(seen[:, 16:32] @ x[row, :16] / 4)
        assert_near(found[row], weights @ seen[:, 32:] / weights.sum(), SUM_TOLERANCE)


def test_several_streams_in_a_call_see_only_their_own_rows(kernels: str) -> None:
    cpu, reference = _benches(kernels, CacheSpec(2, 20), 4, 17, 64)
    states = cpu.state(3), reference.state(3)
    generator = np.random.default_rng(4)
    lengths = np.zeros(3, np.int32)
    for call in range(6):
        streams = generator.integers(0, 3, 17).astype(np.int32)
        positions = np.empty(17, np.int32)
        for row, stream in enumerate(streams):
            positions[row] = lengths[stream]
            lengths[stream] += 1
        x = random_floats(call, 17, cpu.width)
        found = cpu.call(states[0], x, positions, streams)
        assert_near(found, reference.call(states[1], x, positions, streams), SUM_TOLERANCE)


def test_large_scores_do_not_overflow(kernels: str) -> None:
    cpu, reference = _benches(kernels, CacheSpec(1, 16), 1, 8, 32)
    x = random_floats(5, 32, cpu.width)
    x[:, :16] *= 100  # scores in the hundreds: all but the largest vanish
    assert_near(cpu.sequence(x, 8), reference.sequence(x, 8), 1e-4)


def test_keys_and_values_of_two_buffers(kernels: str) -> None:
    """As where each is the result of its own product; here from other columns than the first."""
    cache, rows = CacheSpec(2, 20), 9
    given = {"keys": random_floats(1, rows, 43), "values": random_floats(2, rows, 45)}
    for backend in (CpuBackend(2, kernels), ReferenceBackend()):
        program = Program(rows)
        ids = [program.input(name, 1, is_int=True) for name in ("positions", "streams")]
        keys, values = (program.input(name, array.shape[1]) for name, array in given.items())
        program.cache_write((keys, 3), (values, 5), 0, *ids)
        built, state = backend.build(program), state_of(cache, rows, rows)
        built.array(ids[0])[:, 0] = np.arange(rows)
        built.array(keys)[:], built.array(values)[:] = given.values()
        built.run(rows, state)
        state.lengths[0] = rows
        assert np.array_equal(state.cached_keys(0).reshape(rows, -1), given["keys"][:, 3:])
        assert np.array_equal(state.cached_values(0).reshape(rows, -1), given["values"][:, 5:])
