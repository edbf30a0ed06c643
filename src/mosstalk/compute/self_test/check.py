"""Runs every case of the op table on a backend and on the NumPy reference, and compares."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosstalk.checkpoint.storage import StorageType
from mosstalk.compute.backend import Backend, ReferenceBackend, RunnableProgram
from mosstalk.compute.self_test.cases import Case, all_cases
from mosstalk.compute.state import State

# Of the largest value of a row. Float32 sums of 173 products are off by some 3e-7, and WGSL allows
# an exp up to 3e-6 here. Half precision, or inputs of eleven bits as in TF32, cost 3e-4 and more.
TOLERANCE = 1e-5
_SMALLEST_ROW = 1e-3  # a row of smaller values is measured against this

# By name and the number of rows of the call, or the number of the stream for what a state holds.
_Results = dict[tuple[str, int], NDArray[Any]]


@dataclass(frozen=True, slots=True)
class Fault:
    """What a backend computes otherwise than the op table says.

    Attributes:
        op: name of the op's class in `compute/ops.py`.
        storage: of its matrices; None for an op that has none.
        difference: the largest, relative to the largest value of its row; of ids the largest
            difference; infinite where there is no number.
        problem: the same in words, to follow the op's name.
    """

    op: str
    storage: StorageType | None
    difference: float
    problem: str

    def __str__(self) -> str:
        weights = "" if self.storage is None else f" of {self.storage} weights"
        return f"{self.op}{weights} {self.problem}"


def find_faults(backend: Backend) -> list[Fault]:
    """The ops that `backend` computes wrong, in the order of the table; none if it is healthy.

    On a backend that promises it (`exact_rows`), a row alone must have the same bits as among
    others. Takes a fraction of a second.
    """
    return [fault for case in all_cases() if (fault := _check(backend, case))]


def _check(backend: Backend, case: Case) -> Fault | None:
    wanted = _results(ReferenceBackend(), case)
    try:
        found = _results(backend, case)
        key = max(wanted, key=lambda key: _difference(found[key], wanted[key]))
        off = _difference(found[key], wanted[key])
        exact = backend.exact_rows and case.rows_alone
        alone = _difference_alone(backend, case, found) if exact else 0.0
    except Exception as error:  # drivers and the libraries over them raise kinds of their own
        reason = next(iter(str(error).splitlines()), "")
        return _fault(case, math.inf, f"fails with {type(error).__name__}: {reason}")
    if off > TOLERANCE:
        return _fault(case, off, _in_words(off, wanted[key]))
    if alone > 0:
        return _fault(case, alone, "gives other bits for a row alone than for it among others")
    return None


def _fault(case: Case, difference: float, problem: str) -> Fault:
    return Fault(case.op.__name__, case.storage, difference, problem)


def _in_words(difference: float, wanted: NDArray[Any]) -> str:
    if wanted.dtype.kind != "f":
        return "chooses other ids"
    if math.isinf(difference):
        return "gives values that are not numbers"
    return f"is off by {difference:.1e}, where {TOLERANCE:g} is allowed"


def _results(backend: Backend, case: Case) -> _Results:
    """The outputs of every call, and what the state holds after the last."""
    built = backend.build(case.program)
    state = _new_state(case)
    results: _Results = {}
    for rows in case.calls:
        for name, value in _run(built, case, 0, rows, state).items():
            results[name, rows] = value
    for stream in range(state.num_streams if state else 0):
        assert state is not None
        for name, value in state.save(stream).items():
            results[name, stream] = value
    return results


def _difference_alone(backend: Backend, case: Case, together: _Results) -> float:
    """The largest difference of a row alone from the same row in any call."""
    built = backend.build(case.program)
    state = _new_state(case)
    largest = 0.0
    for row in range(case.program.max_rows):
        for name, alone in _run(built, case, row, 1, state).items():
            for rows in case.calls:
                if row < rows and not np.array_equal(alone[0], together[name, rows][row]):
                    largest = max(largest, _difference(alone[0], together[name, rows][row]))
    return largest


def _new_state(case: Case) -> State | None:
    return None if case.new_state is None else case.new_state()


def _run(
    built: RunnableProgram, case: Case, first: int, rows: int, state: State | None
) -> dict[str, NDArray[Any]]:
    """The outputs of one run over rows [first, first + rows) of the case's inputs."""
    program = case.program
    for name, values in case.inputs.items():
        buffer = program.inputs[name]
        part = values[first * buffer.multiple : (first + rows) * buffer.multiple]
        built.array(buffer)[: len(part)] = part
    built.run(rows, state)
    return {
        name: built.array(buffer)[: rows * buffer.multiple].copy()
        for name, buffer in program.outputs.items()
    }


def _difference(found: NDArray[Any], wanted: NDArray[Any]) -> float:
    """The largest, relative to the largest value of its row; of whole numbers as it is."""
    if found.shape != wanted.shape or not np.isfinite(found).all():
        return math.inf
    off = np.abs(found.astype(np.float64) - wanted)
    if wanted.dtype.kind != "f":
        return float(off.max())
    largest = np.abs(wanted).max(axis=-1, keepdims=True)
    return float((off / np.maximum(largest, _SMALLEST_ROW)).max())
