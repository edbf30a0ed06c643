"""Ids drawn on the device are those of the definition in compute/sampling.py."""

import numpy as np
import pytest
from compute_programs import Floats, Ints, outputs_of, random_floats
from vulkan_device import vulkan_backend

from mosstalk.compute.backend import Backend, ReferenceBackend
from mosstalk.compute.program import Program
from mosstalk.compute.sampling import NUM_PARAMS, SamplingParams, uniforms
from mosstalk.compute.state import State, StateSpec

LAST_UNIFORM = np.float32(1 - 2**-24)


def _draws(backend: Backend, logits: Floats, drawn: Floats, params: SamplingParams) -> Ints:
    """One id for each uniform, from `logits` or its row."""
    rows = len(drawn)
    program = Program(rows)
    out = program.output("ids", program.input("ids", 1, is_int=True))
    inputs = (program.input("params", NUM_PARAMS), program.input("uniforms", 1))
    streams = program.input("streams", 1, is_int=True)
    program.sample(out, 0, program.input("logits", logits.shape[-1]), (*inputs, streams))
    values = {
        "logits": np.broadcast_to(logits, (rows, logits.shape[-1])),
        "params": np.tile(params.row(), (rows, 1)),
        "uniforms": drawn[:, None],
    }
    ids: Ints = outputs_of(backend, program, values, rows)["ids"][:, 0]
    return ids


@pytest.mark.parametrize(
    "params",
    [
        SamplingParams(),
        SamplingParams(temperature=0),
        SamplingParams(temperature=0.3),
        SamplingParams(top_k=1),
        SamplingParams(top_k=25),
        SamplingParams(top_p=0.3),
        SamplingParams(top_p=0.95),
        SamplingParams(0.8, top_k=25, top_p=0.95),
        SamplingParams(1.5, top_k=1000, top_p=0.99),
    ],
)
@pytest.mark.parametrize("num_ids", [2, 40, 1024])
def test_vulkan_draws_as_the_definition(num_ids: int, params: SamplingParams) -> None:
    """Random logits, and rounded ones with many equals at the edges of top-k and top-p."""
    logits = random_floats(1, 300, num_ids) * np.float32(2)
    logits[150:] = np.round(logits[150:]) + np.float32(0)
    drawn = uniforms(7, 0, 0, 300)
    found = _draws(vulkan_backend(), logits, drawn, params)
    assert np.array_equal(found, _draws(ReferenceBackend(), logits, drawn, params))


def test_vulkan_a_draw_walks_the_ids_in_order() -> None:
    logits = np.log(np.array([0.25, 0.5, 0.125, 0.125])).astype(np.float32)
    drawn = np.array([0, 0.249, 0.251, 0.749, 0.751, 0.874, 0.876, LAST_UNIFORM], np.float32)
    found = _draws(vulkan_backend(), logits, drawn, SamplingParams())
    assert found.tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    even = np.array([0.25, 0.5, 0.75], np.float32)  # sums that a uniform reaches, not exceeds
    found = _draws(vulkan_backend(), np.zeros(4, np.float32), even, SamplingParams())
    assert found.tolist() == [1, 2, 3]


def test_vulkan_the_last_uniform_takes_a_kept_id() -> None:
    logits = np.zeros(1000, np.float32)
    logits[-1] = -50  # its chance is lost in the sum
    drawn = np.array([LAST_UNIFORM])
    found = _draws(vulkan_backend(), logits, drawn, SamplingParams(top_k=999))
    assert found.tolist() == [998]


@pytest.mark.parametrize(
    "params",
    [
        SamplingParams(temperature=1e-50),
        SamplingParams(temperature=1e-6),
        SamplingParams(top_p=1e-50),
        SamplingParams(temperature=1e-5, repetition_penalty=1e-50),
    ],
)
def test_vulkan_extreme_parameters_act_as_their_limit(params: SamplingParams) -> None:
    logits = np.array([-2.0, -1.0, -3.0], np.float32)
    drawn = np.array([0, 0.5, LAST_UNIFORM], np.float32)
    assert _draws(vulkan_backend(), logits, drawn, params).tolist() == [1, 1, 1]


@pytest.mark.parametrize("temperature", [0, 1])
def test_vulkan_logits_that_are_no_numbers_give_an_id_of_the_table(temperature: float) -> None:
    logits = np.full(70, np.nan, np.float32)
    drawn = np.array([0.5], np.float32)
    params = SamplingParams(temperature, top_k=3, top_p=0.5)
    assert 0 <= _draws(vulkan_backend(), logits, drawn, params)[0] < 70


def test_vulkan_rows_of_a_stream_see_what_those_before_them_drew() -> None:
    """A strong penalty: rows of one stream draw other ids each, whatever rows lie between."""
    rows, ids = 24, 12
    program = Program(rows)
    out = program.output("ids", program.input("ids", 1, is_int=True))
    inputs = (program.input("params", NUM_PARAMS), program.input("uniforms", 1))
    streams = program.input("streams", 1, is_int=True)
    program.sample(out, 0, program.input("logits", ids), (*inputs, streams), seen=0)
    greedy = SamplingParams(temperature=0, repetition_penalty=100.0)
    places = np.array([0, 0, 1, 2, 1, 0] * 4, np.int32)
    values = {
        "logits": np.tile(np.abs(random_floats(3, ids)), (rows, 1)),
        "params": np.tile(greedy.row(), (rows, 1)),
        "streams": places[:, None],
    }
    drawn, held = [], []
    for backend in (vulkan_backend(), ReferenceBackend()):
        state = State(StateSpec((), (ids,)), 1, 3)
        drawn.append(outputs_of(backend, program, values, rows, state)["ids"][:, 0])
        held.append(state.seen[0].copy())
    assert np.array_equal(*drawn) and np.array_equal(*held)
    assert [len(set(drawn[0][places == stream])) for stream in range(3)] == [12, 8, 4]


def test_vulkan_drawn_ids_join_the_set_of_their_stream_and_codebook_alone() -> None:
    program = Program(2)
    row = program.output("ids", program.input("ids", 3, is_int=True))
    inputs = (program.input("params", NUM_PARAMS), program.input("uniforms", 3))
    streams = program.input("streams", 1, is_int=True)
    logits = program.input("logits", 6)
    for column, seen in enumerate((0, 1, -1)):
        program.sample(row, column, logits, (*inputs, streams), seen=seen)
    greedy = SamplingParams(temperature=0, repetition_penalty=2.0).row()
    values = {
        "logits": np.array([[3, 2, 0, 0, 0, 0], [0, 0, 4, 0, 5, 0]], np.float32),
        "params": np.stack([greedy, greedy]),
        "streams": np.array([[0], [1]], np.int32),
    }
    state = State(StateSpec((), (6, 6)), 1, 2)
    state.seen[1][0, 0] = 1  # id 0 of set 1, in stream 0 only
    ids = outputs_of(vulkan_backend(), program, values, 2, state)["ids"]
    assert ids.tolist() == [[0, 1, 0], [4, 4, 4]]
    assert [np.flatnonzero(seen).tolist() for seen in state.seen[0]] == [[0], [4]]
    assert [np.flatnonzero(seen).tolist() for seen in state.seen[1]] == [[0, 1], [4]]
