"""The self-test finds every op that a device computes wrong, and calls no healthy one broken."""

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, get_args

import numpy as np
import pytest
from broken_backend import Array, Breakage, BrokenBackend, Values, off_at_one_place
from instruction_sets import KERNELS

from mosstalk.checkpoint.storage import StorageType
from mosstalk.compute import ops
from mosstalk.compute.backend import ReferenceBackend
from mosstalk.compute.cpu.backend import CpuBackend
from mosstalk.compute.ops import GeluKind, Op, RopePairs
from mosstalk.compute.program import Program
from mosstalk.compute.self_test.cases import all_cases
from mosstalk.compute.self_test.check import find_faults

OPS: tuple[type[Op], ...] = get_args(Op)
PACKINGS = {StorageType.F32, StorageType.F16, StorageType.BF16, StorageType.Q8_0}


def _name(item: object) -> str:
    return item.__name__ if isinstance(item, type) else str(item)


@pytest.mark.parametrize("kernels", KERNELS)
@pytest.mark.parametrize("threads", [1, 3])
def test_cpu_is_healthy(kernels: str, threads: int) -> None:
    assert CpuBackend(threads, kernels).exact_rows
    assert find_faults(CpuBackend(threads, kernels)) == []


def test_reference_is_healthy() -> None:
    assert find_faults(ReferenceBackend()) == []


@pytest.mark.parametrize("op", OPS, ids=_name)
def test_every_op_of_the_table_has_a_case(op: type[Op]) -> None:
    cases = [case for case in all_cases() if case.op is op]
    assert cases
    for case in cases:
        assert {type(recorded) for recorded in case.program.ops} == {op}
        assert case.calls[-1] == case.program.max_rows
        assert set(case.inputs) == set(case.program.inputs)
    if op in (ops.Embed, ops.Linear):
        assert {case.storage for case in cases} == PACKINGS
        for case in cases:
            matrices = [tensor for tensor in case.program.weights if len(tensor.shape) == 2]
            assert {matrix.storage for matrix in matrices} == {case.storage}
    else:
        assert [case.storage for case in cases] == [None]


def _no_number(result: Array) -> None:
    result[0, 0] = np.nan


def _nothing(result: Array) -> None:
    result[:] = 0


def _infinite(result: Array) -> None:
    result[-1, -1] = np.inf


def _row_too_far(result: Array) -> None:
    result[:] = np.roll(result, 1, axis=0)


def _column_too_far(result: Array) -> None:
    result[:] = np.roll(result, 1, axis=1)


_ANYWHERE = (off_at_one_place, _no_number, _infinite, _nothing, _row_too_far, _column_too_far)


@pytest.mark.parametrize("after", _ANYWHERE, ids=lambda after: after.__name__.strip("_"))
@pytest.mark.parametrize("op", OPS, ids=_name)
def test_a_wrong_result_of_any_op_is_found_by_name(
    op: type[Op], after: Callable[[Array], None]
) -> None:
    chooses_ids = op in (ops.Argmax, ops.Sample)
    if chooses_ids and after in (_no_number, _infinite, _column_too_far):
        return  # one column of whole numbers
    faults = find_faults(BrokenBackend(op, Breakage(after=after)))
    assert {fault.op for fault in faults} == {op.__name__}
    assert {fault.storage for fault in faults} == {
        case.storage for case in all_cases() if case.op is op
    }
    for fault in faults:
        assert fault.difference > 1e-5
        assert str(fault).startswith(op.__name__)
        if after in (_no_number, _infinite):
            assert fault.difference == np.inf
            assert "not numbers" in str(fault)


def _fields(**changes: Any) -> Breakage:
    """The op with other fields."""
    return Breakage(record=lambda op: replace(op, **changes))


def _clip_ids(op: ops.Embed, values: Values) -> None:
    ids = values(op.ids)
    ids[:] = np.clip(ids, 0, 1)


def _next_index(op: ops.Gather, values: Values) -> None:
    index = values(op.index)
    index[:] = (index + 1) % 8


def _negate_sines(op: ops.Rope, values: Values) -> None:
    if op.pairs is RopePairs.HALVES:  # the other op has the same turns
        values(op.turns)[:, op.head_dim // 2 :] *= -1


def _next_position(op: ops.CacheWrite | ops.Attention, values: Values) -> None:
    if op.cache == 0:
        values(op.positions)[:] += 1


def _one_stream(op: ops.CacheWrite | ops.Attention, values: Values) -> None:
    values(op.streams)[:] = 0


def _param(column: int, value: float) -> Breakage:
    """One sampling parameter is not followed."""

    def before(op: ops.Sample, values: Values) -> None:
        values(op.params)[:, column] = value

    return Breakage(before=before)


def _never_greedy(op: ops.Sample, values: Values) -> None:
    params = values(op.params)
    params[params[:, 0] == 1, 1] = 1  # a temperature
    params[:, 0] = 0


def _uniform_of_next_column(op: ops.Sample) -> ops.Sample:
    return replace(op, column=op.column % 3 + 1)


def _half_precision(result: Array) -> None:
    result[:] = result.astype(np.float16)


def _coarse_inputs(op: ops.Linear, values: Values) -> None:
    """Ten bits after the first, as some devices multiply unless told not to."""
    x = values(op.x)
    x.view(np.uint32)[:] &= np.uint32(0xFFFFE000)


def _variance_of_a_sample(result: Array) -> None:
    result *= np.sqrt(1 - 1 / result.shape[1])


def _last_of_equals(op: ops.Argmax, values: Values) -> None:
    x = values(op.x)
    x += np.arange(x.shape[1], dtype=np.float32) * np.float32(1e-6)


_IN_ITS_OWN_WAY: dict[str, tuple[type[Op], Breakage]] = {
    "embed: another column": (
        ops.Embed,
        Breakage(record=lambda op: replace(op, first_column=1 - op.first_column)),
    ),
    "embed: tables reversed": (
        ops.Embed,
        Breakage(record=lambda op: op if op.concat else replace(op, tables=op.tables[::-1])),
    ),
    "embed: ids outside a table are moved into it": (ops.Embed, Breakage(before=_clip_ids)),
    "gather: index off by one": (ops.Gather, Breakage(before=_next_index)),
    "linear: no bias": (ops.Linear, _fields(bias=None)),
    "linear: half precision": (ops.Linear, Breakage(after=_half_precision)),
    "linear: inputs of eleven bits": (ops.Linear, Breakage(before=_coarse_inputs)),
    "layer norm: no eps": (ops.LayerNorm, _fields(eps=0.0)),
    "layer norm: eps of another model": (ops.LayerNorm, _fields(eps=1e-6)),
    "layer norm: variance over n - 1": (ops.LayerNorm, Breakage(after=_variance_of_a_sample)),
    "layer norm: weight and bias swapped": (
        ops.LayerNorm,
        Breakage(record=lambda op: replace(op, weight=op.bias, bias=op.weight)),
    ),
    "rms norm: no eps": (ops.RmsNorm, _fields(eps=0.0)),
    "rms norm: half precision": (ops.RmsNorm, Breakage(after=_half_precision)),
    "rope: pairs interleaved": (ops.Rope, _fields(pairs=RopePairs.INTERLEAVED)),
    "rope: pairs of halves": (ops.Rope, _fields(pairs=RopePairs.HALVES)),
    "rope: the other way round": (ops.Rope, Breakage(before=_negate_sines)),
    "rope: one head too few": (ops.Rope, _fields(heads=1)),
    "rope: one head too many": (ops.Rope, _fields(heads=3)),
    "rope: first column": (ops.Rope, _fields(first_column=0)),
    "cache write: position off by one": (ops.CacheWrite, Breakage(before=_next_position)),
    "cache write: all to one stream": (ops.CacheWrite, Breakage(before=_one_stream)),
    "cache write: keys and values swapped": (
        ops.CacheWrite,
        Breakage(
            record=lambda op: replace(
                op,
                keys=op.values,
                key_column=op.value_column,
                values=op.keys,
                value_column=op.key_column,
            )
        ),
    ),
    "cache write: other column": (ops.CacheWrite, _fields(value_column=0)),
    "attention: sees the next row": (ops.Attention, Breakage(before=_next_position)),
    "attention: all of one stream": (ops.Attention, Breakage(before=_one_stream)),
    "attention: no scale": (ops.Attention, _fields(scale=1.0)),
    "attention: no window": (ops.Attention, _fields(window=0)),
    "attention: window one too long": (
        ops.Attention,
        Breakage(record=lambda op: replace(op, window=op.window and op.window + 1)),
    ),
    "attention: window one too short": (
        ops.Attention,
        Breakage(record=lambda op: replace(op, window=op.window and op.window - 1)),
    ),
    "attention: half precision": (ops.Attention, Breakage(after=_half_precision)),
    "gelu: tanh for erf": (ops.Gelu, _fields(kind=GeluKind.TANH)),
    "gelu: erf for tanh": (ops.Gelu, _fields(kind=GeluKind.ERF)),
    "silu gate: gate and up swapped": (
        ops.SiluGate,
        Breakage(record=lambda op: replace(op, gate=op.up, up=op.gate)),
    ),
    "add: factor ignored": (ops.Add, _fields(factor=1.0)),
    "add: vector ignored": (ops.Add, _fields(scale=None)),
    "add: a and b swapped": (
        ops.Add,
        Breakage(record=lambda op: replace(op, a=op.b, b=op.a)),
    ),
    "argmax: last of equals": (ops.Argmax, Breakage(before=_last_of_equals)),
    "argmax: another column": (ops.Argmax, _fields(column=2)),
    "sample: never greedy": (ops.Sample, Breakage(before=_never_greedy)),
    "sample: always greedy": (ops.Sample, _param(0, 1)),
    "sample: temperature ignored": (ops.Sample, _param(1, 1)),
    "sample: top-k ignored": (ops.Sample, _param(2, 0)),
    "sample: top-p ignored": (ops.Sample, _param(3, 1)),
    "sample: penalty ignored": (ops.Sample, _param(4, 1)),
    "sample: set ignored": (ops.Sample, _fields(seen=-1)),
    "sample: set always used": (ops.Sample, _fields(seen=0)),
    "sample: another column": (ops.Sample, Breakage(record=_uniform_of_next_column)),
}


@pytest.mark.parametrize("case", _IN_ITS_OWN_WAY)
def test_what_may_go_wrong_with_an_op_is_found(case: str) -> None:
    op, breakage = _IN_ITS_OWN_WAY[case]
    faults = find_faults(BrokenBackend(op, breakage))
    assert {fault.op for fault in faults} == {op.__name__}
    assert not any("fails with" in str(fault) for fault in faults)  # it computes, but wrong


class _Raising(ReferenceBackend):
    """A device that is lost as soon as it shall turn heads."""

    def build(self, program: Program) -> Any:
        if any(isinstance(op, ops.Rope) for op in program.ops):
            raise RuntimeError("device lost\nat 0x17")
        return super().build(program)


def test_a_device_that_raises_is_a_fault() -> None:
    (fault,) = find_faults(_Raising())
    assert str(fault) == "Rope fails with RuntimeError: device lost"
    assert fault.difference == np.inf


@pytest.mark.parametrize("op", [ops.Linear, ops.Attention], ids=_name)
def test_a_row_that_depends_on_its_company_is_found_where_that_is_promised(op: type[Op]) -> None:
    def after(result: Array) -> None:
        if len(result) == 1:
            result *= np.float32(1 + 2e-7)  # by a bit or two, as another order of sums would

    backend = BrokenBackend(op, Breakage(after=after), CpuBackend(1, "plain"))
    assert {fault.op for fault in find_faults(backend)} == {op.__name__}
    assert all("row alone" in str(fault) for fault in find_faults(backend))
    backend.exact_rows = False
    assert find_faults(backend) == []


def _rounded(result: Array) -> None:
    if result.dtype.kind == "f":
        result *= np.float32(1 + 3e-6)


@pytest.mark.parametrize("op", OPS, ids=_name)
def test_rounding_is_no_fault(op: type[Op]) -> None:
    assert find_faults(BrokenBackend(op, Breakage(after=_rounded))) == []


@pytest.mark.parametrize("direction", [-1, 1])
def test_no_draw_hangs_on_rounding(direction: int) -> None:
    """Logits and limits that are a little off choose the same ids."""

    def before(op: ops.Sample, values: Values) -> None:
        if op.column == 1:
            values(op.logits)[:] *= np.float32(1 + direction * 1e-5)
            values(op.uniforms)[:] += np.float32(direction * 1e-5)
            params = values(op.params)
            params[:, 3] = np.where(params[:, 3] < 1, params[:, 3] - direction * 1e-5, 1)

    assert find_faults(BrokenBackend(ops.Sample, Breakage(before=before))) == []


def test_faults_of_several_ops_are_all_named() -> None:
    inner = BrokenBackend(ops.Gelu, _fields(kind=GeluKind.TANH))
    faults = find_faults(BrokenBackend(ops.Add, _fields(factor=1.0), inner))
    assert [fault.op for fault in faults] == ["Gelu", "Add"]


def test_it_takes_a_fraction_of_a_second() -> None:
    backend = CpuBackend(1)
    started = time.process_time()
    assert find_faults(backend) == []
    assert time.process_time() - started < 0.5
