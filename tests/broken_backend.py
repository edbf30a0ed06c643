"""A backend that computes one op of the table wrong: what the self-test is there to find."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosstalk.compute import ops
from mosstalk.compute.backend import Backend, ReferenceBackend, RunnableProgram
from mosstalk.compute.ops import Buffer, Op
from mosstalk.compute.program import Program
from mosstalk.compute.state import State

Array = NDArray[Any]
Values = Callable[[Buffer], Array]  # of the rows in use


@dataclass(frozen=True)
class Breakage:
    """What goes wrong with the ops of one kind.

    Attributes:
        record: the op that is run in the place of one.
        before: changes the op's inputs.
        after: changes its results.
    """

    record: Callable[[Any], Op] = lambda op: op
    before: Callable[[Any, Values], None] = lambda op, values: None
    after: Callable[[Array], None] = lambda result: None


def off_at_one_place(result: Array) -> None:
    """By a ten-thousandth of the largest value of the row; ids by one."""
    row = result[-1]
    row[-1] += 1 if row.dtype.kind == "i" else np.abs(row).max() * 1e-4 + 1e-6


class BrokenBackend:
    """`inner`, but for all ops of one kind."""

    def __init__(
        self,
        kind: type[Op],
        breakage: Breakage = Breakage(after=off_at_one_place),
        inner: Backend | None = None,
        name: str = "broken",
    ) -> None:
        self.inner = inner or ReferenceBackend()
        self.kind, self.breakage, self.name = kind, breakage, name
        self.threads, self.exact_rows = self.inner.threads, self.inner.exact_rows
        self.identity = "Abacus 9, driver 0.1"

    def build(self, program: Program) -> "BrokenProgram":
        recorded = [
            self.breakage.record(op) if isinstance(op, self.kind) else op for op in program.ops
        ]
        return BrokenProgram(self, self.inner.build(replace(program, ops=recorded)), program)


class BrokenProgram:
    """A program of a broken backend."""

    def __init__(self, backend: BrokenBackend, inner: RunnableProgram, program: Program) -> None:
        self._breakage, self._inner = backend.breakage, inner
        self._ops = [op for op in program.ops if isinstance(op, backend.kind)]

    def array(self, buffer: Buffer) -> Array:
        return self._inner.array(buffer)

    def run(self, rows: int, state: State | None = None) -> None:
        def values(buffer: Buffer) -> Array:
            return self._inner.array(buffer)[: rows * buffer.multiple]

        for op in self._ops:
            self._breakage.before(op, values)
        self._inner.run(rows, state)
        for op in self._ops:
            self._breakage.after(_result(op, values, state))


def _result(op: Op, values: Values, state: State | None) -> Array:
    """What the op has written: rows of a buffer, or the values of one row in its cache."""
    if isinstance(op, ops.CacheWrite):
        assert state is not None
        cache = state.values[op.cache]
        at = values(op.positions)[0, 0] % cache.shape[2]
        return cache[values(op.streams)[0, 0], :, at]
    if isinstance(op, ops.Rope):
        return values(op.x)[:, op.first_column : op.first_column + op.heads * op.head_dim]
    if isinstance(op, ops.Argmax | ops.Sample):
        return values(op.out)[:, op.column : op.column + 1]
    return values(op.out)
