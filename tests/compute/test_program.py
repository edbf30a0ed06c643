"""Recording programs: shapes are checked, memory is shared only where nothing is alive."""

import numpy as np
import pytest
from compute_programs import outputs_of, random_floats, random_weight
from instruction_sets import KERNELS

from mosstalk.compute.backend import ReferenceBackend
from mosstalk.compute.cpu.backend import CpuBackend
from mosstalk.compute.ops import GeluKind
from mosstalk.compute.program import Program


def _deep(program: Program) -> None:
    x = program.input("x", 16)
    for layer in range(6):
        inner = program.gelu(program.linear(x, random_weight(layer, 16, 16)), GeluKind.TANH)
        x = program.add(x, program.add(inner, program.gelu(x, GeluKind.ERF)))
    program.output("out", x)


def test_layers_share_a_few_blocks_of_memory() -> None:
    program = Program(3)
    _deep(program)
    plan = program.storage_plan()
    assert len(plan) == len(program.buffers) > 25
    assert len(set(plan)) <= 7
    kept = [*program.inputs.values(), *program.outputs.values()]
    assert all(plan[buffer.index] == buffer.index for buffer in kept)
    assert all(plan.count(buffer.index) == 1 for buffer in kept)


@pytest.mark.parametrize("kernels", KERNELS)
def test_shared_memory_changes_no_result(kernels: str) -> None:
    program = Program(3)
    _deep(program)
    x = {"x": random_floats(1, 3, 16)}
    found = outputs_of(CpuBackend(1, kernels), program, x, 3)["out"]
    wanted = outputs_of(ReferenceBackend(), program, x, 3)["out"]
    assert np.abs(found - wanted).max() < 1e-5 * np.abs(wanted).max()


def test_a_weight_is_held_once() -> None:
    program = Program(1)
    weight = random_weight(1, 8, 8)
    x = program.linear(program.linear(program.input("x", 8), weight), weight)
    program.linear(x, random_weight(1, 8, 8))
    assert len(program.weights) == 2


def test_shapes_are_checked_when_recorded() -> None:
    program = Program(1)
    x = program.input("x", 8)
    with pytest.raises(AssertionError, match="weight 1"):
        program.linear(x, random_weight(1, 4, 9))
    with pytest.raises(AssertionError, match="weight 1"):
        program.linear(x, random_weight(1, 4, 8), random_weight(2, 5))
    with pytest.raises(AssertionError):
        program.add(x, program.input("y", 9))
    with pytest.raises(AssertionError, match="x"):
        program.input("x", 9)
    with pytest.raises(AssertionError):
        program.rms_norm(x, random_weight(1, 3), 1e-6)
    with pytest.raises(AssertionError):
        program.patch_up(x, 3)


@pytest.mark.parametrize("kernels", KERNELS)
def test_a_program_that_needs_a_state_says_so(kernels: str) -> None:
    program = Program(1)
    ids = [program.input(name, 1, is_int=True) for name in ("positions", "streams")]
    x = program.input("x", 24)
    program.cache_write((x, 8), (x, 16), 0, ids[0], ids[1])
    with pytest.raises(RuntimeError, match="needs a state"):
        outputs_of(CpuBackend(1, kernels), program, {}, 1)
