"""How ids are chosen from logits: spec nano.md 3.5 and 3.6, in Python and in native code alike."""

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from compute_programs import Floats, outputs_of
from instruction_sets import KERNELS
from numpy.typing import NDArray

from mosstalk.compute.backend import ReferenceBackend
from mosstalk.compute.cpu import _native
from mosstalk.compute.cpu.backend import CpuBackend
from mosstalk.compute.program import Program
from mosstalk.compute.sampling import NUM_PARAMS, SamplingParams, draw, probabilities, uniforms
from mosstalk.compute.state import State, StateSpec
from mosstalk.errors import UsageError

Seen = NDArray[np.uint8]
Chances = Callable[[Floats, Seen, SamplingParams], NDArray[np.float64]]
LAST_UNIFORM = np.float32(1 - 2**-24)


def _in_python(logits: Floats, seen: Seen, params: SamplingParams) -> NDArray[np.float64]:
    return probabilities(logits, seen, params.row())


def _in_native_code(logits: Floats, seen: Seen, params: SamplingParams) -> NDArray[np.float64]:
    return np.array(_native.sampling_probabilities(logits, seen, params.row().tolist()))


both = pytest.mark.parametrize("chances_of", [_in_python, _in_native_code])


def _logits(*values: float) -> Floats:
    return np.array(values, np.float32)


def _none(logits: Floats) -> Seen:
    return np.zeros(len(logits), np.uint8)


@both
def test_temperature_divides_logits(chances_of: Chances) -> None:
    logits = _logits(0.0, 1.0, -2.0)
    weights = np.exp(logits / 0.5)
    found = chances_of(logits, _none(logits), SamplingParams(temperature=0.5))
    assert np.allclose(found, weights / weights.sum(), rtol=1e-6)


@both
@pytest.mark.parametrize(
    ("top_k", "kept"), [(1, [2]), (2, [1, 2, 4]), (3, [1, 2, 4]), (9, [0, 1, 2, 3, 4]), (0, None)]
)
def test_ties_at_top_k_are_kept(chances_of: Chances, top_k: int, kept: list[int] | None) -> None:
    logits = _logits(0.0, 1.0, 2.0, -1.0, 1.0)
    found = chances_of(logits, _none(logits), SamplingParams(top_k=top_k))
    assert np.flatnonzero(found).tolist() == (kept or [0, 1, 2, 3, 4])
    assert found.sum() == pytest.approx(1)


@both
@pytest.mark.parametrize(
    ("top_p", "kept"), [(1e-6, [3]), (0.35, [3]), (0.45, [1, 3]), (0.75, [0, 1, 3]), (0.95, None)]
)
def test_the_id_that_crosses_top_p_is_kept(
    chances_of: Chances, top_p: float, kept: list[int] | None
) -> None:
    chances = np.array([0.2, 0.3, 0.1, 0.4])  # in falling order: 3, 1, 0, 2
    logits = np.log(chances).astype(np.float32)
    found = chances_of(logits, _none(logits), SamplingParams(top_p=top_p))
    wanted = np.zeros(4)
    wanted[kept or [0, 1, 2, 3]] = chances[kept or [0, 1, 2, 3]]
    assert np.allclose(found, wanted / wanted.sum(), atol=1e-6)


@both
def test_top_p_counts_what_top_k_left(chances_of: Chances) -> None:
    """0.4 and 0.3 are 57% and 43% of what top-k 2 leaves: 0.5 of that keeps the first alone."""
    logits = np.log(_logits(0.3, 0.4, 0.2, 0.1)).astype(np.float32)
    found = chances_of(logits, _none(logits), SamplingParams(top_k=2, top_p=0.5))
    assert np.flatnonzero(found).tolist() == [1]


@both
def test_penalty_moves_seen_ids_down_whatever_their_sign(chances_of: Chances) -> None:
    logits = _logits(2.0, -2.0, 1.0, -1.0)
    seen = np.array([1, 1, 0, 0], np.uint8)
    moved = np.exp([2.0 / 1.25, -2.0 * 1.25, 1.0, -1.0])
    found = chances_of(logits, seen, SamplingParams(repetition_penalty=1.25))
    assert np.allclose(found, moved / moved.sum(), rtol=1e-6)


@both
def test_greedy_takes_the_first_largest_after_the_penalty(chances_of: Chances) -> None:
    logits = _logits(1.0, 3.0, 2.9, 2.9)
    greedy = SamplingParams(temperature=0, repetition_penalty=1.2)
    assert chances_of(logits, _none(logits), greedy).tolist() == [0, 1, 0, 0]
    seen = np.array([0, 1, 0, 0], np.uint8)
    assert chances_of(logits, seen, greedy).tolist() == [0, 0, 1, 0]


@both
@pytest.mark.parametrize(
    "params",
    [
        SamplingParams(temperature=1e-50),
        SamplingParams(temperature=1e-38),
        SamplingParams(temperature=1e-6),
        SamplingParams(top_p=1e-50),
        SamplingParams(temperature=1e-5, repetition_penalty=1e-50),
        SamplingParams(temperature=1e-5, repetition_penalty=1e38),
    ],
)
def test_extreme_parameters_act_as_their_limit(chances_of: Chances, params: SamplingParams) -> None:
    logits = _logits(-2.0, -1.0, -3.0)
    assert chances_of(logits, np.ones(3, np.uint8), params).sum() == pytest.approx(1)
    assert chances_of(logits, _none(logits), params).tolist() == [0, 1, 0]


def _draws(
    kernels: str | None, logits: Floats, drawn: Floats, params: SamplingParams
) -> NDArray[np.int32]:
    """Ids for each uniform by a Sample op; `kernels` None: the NumPy backend."""
    program = Program(len(drawn))
    out = program.output("ids", program.input("ids", 1, is_int=True))
    inputs = (program.input("params", NUM_PARAMS), program.input("uniforms", 1))
    streams = program.input("streams", 1, is_int=True)
    program.sample(out, 0, program.input("logits", len(logits)), (*inputs, streams))
    values = {
        "logits": np.tile(logits, (len(drawn), 1)),
        "params": np.tile(params.row(), (len(drawn), 1)),
        "uniforms": drawn[:, None],
    }
    backend = CpuBackend(1, kernels) if kernels else ReferenceBackend()
    ids: NDArray[np.int32] = outputs_of(backend, program, values, len(drawn))["ids"][:, 0]
    return ids


@pytest.mark.parametrize("kernels", [None, *KERNELS])
def test_a_draw_walks_the_ids_in_order(kernels: str | None) -> None:
    logits = np.log(_logits(0.25, 0.5, 0.125, 0.125)).astype(np.float32)
    drawn = np.array([0, 0.249, 0.251, 0.749, 0.751, 0.874, 0.876, LAST_UNIFORM], np.float32)
    ids = _draws(kernels, logits, drawn, SamplingParams())
    assert ids.tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    even = np.array([0.25, 0.5, 0.75], np.float32)  # sums that a uniform reaches, not exceeds
    assert _draws(kernels, np.zeros(4, np.float32), even, SamplingParams()).tolist() == [1, 2, 3]
    ids = _draws(kernels, logits, drawn, SamplingParams(top_k=1))
    assert ids.tolist() == [1] * len(drawn)


@pytest.mark.parametrize("kernels", KERNELS)
def test_draws_are_the_same_on_both_backends_and_follow_the_probabilities(kernels: str) -> None:
    logits = (np.random.default_rng(1).standard_normal(40) * 2).astype(np.float32)
    params = SamplingParams(temperature=0.8, top_k=25, top_p=0.95)
    drawn = uniforms(7, 0, 0, 20_000)
    ids = _draws(kernels, logits, drawn, params)
    assert np.array_equal(ids[:2000], _draws(None, logits, drawn[:2000], params))
    wanted = probabilities(logits, None, params.row()) * len(ids)
    found = np.bincount(ids, minlength=len(logits))
    assert not found[wanted == 0].any()
    kept = wanted > 0
    chi_square = ((found[kept] - wanted[kept]) ** 2 / wanted[kept]).sum()
    freedom = kept.sum() - 1
    assert chi_square < freedom + 4 * np.sqrt(2 * freedom)


@pytest.mark.parametrize("kernels", [None, *KERNELS])
def test_drawn_ids_join_the_set_of_their_stream_and_codebook_alone(kernels: str | None) -> None:
    program = Program(2)
    row = program.output("ids", program.input("ids", 3, is_int=True))
    inputs = (program.input("params", NUM_PARAMS), program.input("uniforms", 3))
    streams = program.input("streams", 1, is_int=True)
    logits = program.input("logits", 4)
    for column, seen in enumerate((0, 1, -1)):
        program.sample(row, column, logits, (*inputs, streams), seen=seen)
    greedy = SamplingParams(temperature=0, repetition_penalty=2.0).row()
    values = {
        "logits": np.array([[3, 2, 0, 0], [0, 0, 5, 4]], np.float32),
        "params": np.stack([greedy, greedy]),
        "streams": np.array([[0], [1]], np.int32),
    }
    backend = CpuBackend(1, kernels) if kernels else ReferenceBackend()
    state = State(StateSpec((), (4, 4)), 1, 2)
    state.seen[1][0, 0] = 1  # id 0 of set 1, in stream 0 only
    ids = outputs_of(backend, program, values, 2, state)["ids"]
    assert ids.tolist() == [[0, 1, 0], [2, 2, 2]]
    assert state.seen[0].tolist() == [[1, 0, 0, 0], [0, 0, 1, 0]]
    assert state.seen[1].tolist() == [[1, 1, 0, 0], [0, 0, 1, 0]]


@pytest.mark.parametrize("streams", [range(8), (5, 2, 2, 0, 5, 5, 7, 1)], ids=["apart", "shared"])
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_rows_are_drawn_in_order_whatever_the_threads(streams: Sequence[int], threads: int) -> None:
    """A row sees what rows before it have drawn in its stream: three times, to fill the sets."""
    program = Program(8)
    out = program.output("ids", program.input("ids", 1, is_int=True))
    inputs = (program.input("params", NUM_PARAMS), program.input("uniforms", 1))
    where = program.input("streams", 1, is_int=True)
    program.sample(out, 0, program.input("logits", 512), (*inputs, where), seen=0)
    generator = np.random.default_rng(2)
    values = {
        "params": np.tile(SamplingParams(top_k=9, repetition_penalty=3.0).row(), (8, 1)),
        "streams": np.array(streams, np.int32)[:, None],
        "logits": np.tile(generator.standard_normal(512).astype(np.float32), (8, 1)),
    }
    states = [State(StateSpec((), (512,)), 1, 8) for _ in range(2)]
    for frame in range(3):
        values["uniforms"] = uniforms(1, 0, frame, 8)[:, None]
        found, wanted = (
            outputs_of(backend, program, values, 8, state)["ids"]
            for backend, state in zip(
                (CpuBackend(threads), ReferenceBackend()), states, strict=True
            )
        )
        assert np.array_equal(found, wanted)
    assert np.array_equal(states[0].seen[0], states[1].seen[0])


def test_draw_without_probability_left_takes_a_kept_id() -> None:
    """Rounding may leave the running sum below a uniform near 1."""
    logits = np.zeros(1000, np.float32)
    logits[-1] = -50  # its chance is lost in the sum
    assert draw(logits, None, SamplingParams(top_k=999).row(), LAST_UNIFORM) == 998


def test_uniforms_are_philox_numbers_of_their_arguments_alone() -> None:
    numbers = uniforms(3, 1, 9, 1000)
    assert np.array_equal(numbers[:17], uniforms(3, 1, 9, 17))
    assert ((numbers >= 0) & (numbers < 1)).all()
    assert abs(numbers.mean() - 0.5) < 0.05
    for other in ((4, 1, 9), (3, 2, 9), (3, 1, 10)):
        assert not np.isin(uniforms(*other, 17), numbers[:17]).all()


@pytest.mark.parametrize("arguments", [(0, 0, 0), (7, 2, 300), (2**64 - 1, 1, 5)])
def test_uniforms_by_the_philox_formula(arguments: tuple[int, int, int]) -> None:
    seed, chunk, frame = arguments
    words = [w for block in range(1, 6) for w in _philox((block, frame, 0, 0), (seed, chunk))]
    wanted = np.array([(word >> 40) / 2**24 for word in words], np.float32)
    assert np.array_equal(uniforms(*arguments, 20), wanted)


def _philox(counter: tuple[int, int, int, int], key: tuple[int, int]) -> tuple[int, int, int, int]:
    """Philox4x64-10 (Salmon et al. 2011); NumPy counts up before each block."""
    mask = 2**64 - 1
    a, b, c, d = counter
    for turn in range(10):
        k0 = key[0] + turn * 0x9E3779B97F4A7C15 & mask
        k1 = key[1] + turn * 0xBB67AE8584CAA73B & mask
        first, second = a * 0xD2E7470EE14C6C93, c * 0xCA5A826395121157
        a, b, c, d = second >> 64 ^ b ^ k0, second & mask, first >> 64 ^ d ^ k1, first & mask
    return a, b, c, d


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({"temperature": -0.1}, "temperature is -0.1"),
        ({"temperature": float("nan")}, "temperature is nan"),
        ({"temperature": float("inf")}, "temperature is inf"),
        ({"top_k": -1}, "top-k is -1"),
        ({"top_p": 0.0}, "top-p is 0.0"),
        ({"top_p": 1.01}, "top-p is 1.01"),
        ({"repetition_penalty": 0.0}, "repetition penalty is 0.0"),
        ({"repetition_penalty": -1.0}, "repetition penalty is -1.0"),
    ],
)
def test_parameters_outside_their_range_are_named(values: dict[str, float], named: str) -> None:
    with pytest.raises(UsageError, match=named):
        SamplingParams(**values)  # type: ignore[arg-type]


@pytest.mark.parametrize("top_k", [2**24, 2**31, 2**63])
def test_sampling_top_k_beyond_every_table_is_no_limit(top_k: int) -> None:
    logits = np.array([0.5, -1.0, 2.0, 0.0], np.float32)
    unseen = np.zeros(4, np.uint8)
    row = SamplingParams(top_k=top_k).row()
    expected = np.exp(logits.astype(np.float64)) / np.exp(logits.astype(np.float64)).sum()
    assert probabilities(logits, unseen, row) == pytest.approx(expected)
    assert _native.sampling_probabilities(logits, unseen, row.tolist()) == pytest.approx(expected)
