"""A program on a device: its memory, its dispatches, and what is copied between host and device."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosstalk.compute.ops import Buffer, Weight
from mosstalk.compute.program import Program
from mosstalk.compute.state import State
from mosstalk.compute.vulkan.device import Device, Step
from mosstalk.compute.vulkan.shader import Dispatch, StateKind
from mosstalk.compute.vulkan.shaders.table import record
from mosstalk.compute.vulkan.state_copy import groups_of
from mosstalk.compute.vulkan.weights import Matrix, PlacedWeights, Vector


@dataclass(slots=True)
class _HostView:
    """An input or output as the host sees it.

    Attributes:
        behind: first rows of it that a run may have changed since they were fetched.
        is_touched: whether the host may have written to it since the last run.
        was_asked: whether it is ever looked at.
    """

    array: NDArray[Any]
    is_input: bool
    behind: int = 0
    is_touched: bool = False
    was_asked: bool = False


@dataclass(frozen=True, slots=True)
class _Prepared:
    """A dispatch whose pipelines and bind groups are made."""

    dispatch: Dispatch
    pipeline: Any
    alone: Any
    group: Any

    def step(self, rows: int) -> Step:
        """The part of it that no state changes."""
        dispatch = self.dispatch
        if dispatch.alone is not None and rows * dispatch.grid.items == 1:
            return Step(self.alone, (self.group,), dispatch.alone[1].groups(rows))
        return Step(self.pipeline, (self.group,), dispatch.grid.groups(rows))


class VulkanProgram:
    """A program ready to run: one command sequence for all of its ops.

    Buffers stay on the device. `array` gives the host's view of an input or output: it fetches
    what a run has changed, and all that is ever asked for comes in that one transfer. Inputs that
    were asked for are copied to the device when the next run starts.

    Raises DeviceError where the device has too little memory or does not take a shader.
    """

    def __init__(self, program: Program, device: Device, weights: PlacedWeights) -> None:
        self.program = program
        self._device, self._placed = device, weights
        self._weights: dict[int, Matrix | Vector] = {}
        self._blocks: dict[int, Any] = {}
        self._plan = program.storage_plan()
        self._scratch: dict[int, Any] = {}
        dispatches = [each for op in program.ops for each in record(op, self)]
        self._call = device.uniforms([(0,)])[0]
        self._rows = 0  # in that uniform
        self._steps: dict[int, list[tuple[Step, StateKind, int]]] = {}
        self._prepared = self._prepare(dispatches)
        self._kinds = {each.shader.state for each in dispatches} - {""}
        written = _written_by(dispatches)
        inputs = {buffer.index for buffer in program.inputs.values()}
        kept = {buffer.index for buffer in program.outputs.values()} | inputs
        self._views = {index: self._view(index, index in inputs) for index in sorted(kept)}
        self._results = [i for i in self._views if self.buffer(program.buffers[i]) in written]

    def array(self, buffer: Buffer) -> NDArray[Any]:
        """The host's view of an input or output, [max_rows * multiple, width], until the next run.

        Raises KeyError for a buffer that is neither.
        """
        view = self._views[buffer.index]
        view.was_asked = True
        if view.behind:
            self._fetch()
        view.is_touched = view.is_input
        return view.array

    def run(self, rows: int, state: State | None = None) -> None:
        """Run all ops over the first `rows` rows.

        Raises RuntimeError for a program that needs a state and has none, DeviceError where the
        device fails.
        """
        assert 0 < rows <= self.program.max_rows, rows
        if self._kinds and state is None:
            raise RuntimeError("this program needs a state")
        groups = {kind: groups_of(self._device, state, kind) for kind in self._kinds if state}
        for index, view in self._views.items():
            if view.is_touched:
                self._device.write(self._blocks[index], view.array)
                view.is_touched = False
        if rows != self._rows:
            self._device.write(self._call.buffer, np.array([rows, 0, 0, 0], np.uint32))
            self._rows = rows
        if rows not in self._steps:
            self._steps[rows] = [
                (each.step(rows), each.dispatch.shader.state, each.dispatch.state)
                for each in self._prepared
            ]
        self._device.submit(
            [
                step
                if not kind
                else Step(step.pipeline, (*step.groups, groups[kind][number]), step.workgroups)
                for step, kind, number in self._steps[rows]
            ]
        )
        for index in self._results:
            view = self._views[index]
            view.behind = max(view.behind, rows * self.program.buffers[index].multiple)

    def buffer(self, buffer: Buffer) -> Any:
        """The device's memory of a buffer; buffers that are never alive together share it."""
        block = self._plan[buffer.index]
        if block not in self._blocks:
            rows = self.program.max_rows * buffer.multiple
            self._blocks[block] = self._device.buffer(rows * buffer.width * 4, "a buffer")
        return self._blocks[block]

    def vector(self, weight: Weight) -> Any:
        """A weight of one axis, as float32."""
        vector = self._placed.vector(self.program.weights[weight.index])
        self._weights[weight.index] = vector
        return vector.buffer

    def matrix(self, weight: Weight) -> Matrix:
        """A weight of two axes, packed."""
        matrix = self._placed.matrix(self.program.weights[weight.index])
        self._weights[weight.index] = matrix
        return matrix

    def scratch(self, width: int, multiple: int) -> Any:
        """Float32 [max_rows * multiple, width] that holds nothing from one op to the next."""
        size = self.program.max_rows * multiple * width * 4
        if size not in self._scratch:
            self._scratch[size] = self._device.buffer(size, "a buffer")
        return self._scratch[size]

    def _prepare(self, dispatches: list[Dispatch]) -> list[_Prepared]:
        uniforms = self._device.uniforms([each.constants for each in dispatches])
        prepared = []
        for each, uniform in zip(dispatches, uniforms, strict=True):
            group = self._device.bind([uniform, self._call], each.buffers, each.shader.accesses)
            pipeline = self._device.pipeline(each.shader)
            alone = None if each.alone is None else self._device.pipeline(each.alone[0])
            prepared.append(_Prepared(each, pipeline, alone, group))
        return prepared

    def _view(self, index: int, is_input: bool) -> _HostView:
        buffer = self.program.buffers[index]
        shape = (self.program.max_rows * buffer.multiple, buffer.width)
        kind = np.int32 if buffer.is_int else np.float32
        self.buffer(buffer)  # an input that no op reads has memory as well
        return _HostView(np.zeros(shape, kind), is_input)

    def _fetch(self) -> None:
        """Bring all views that are ever asked for up to date."""
        wanted = [i for i, view in self._views.items() if view.was_asked and view.behind]
        pieces = []
        for i in wanted:
            num_bytes = self._views[i].behind * self.program.buffers[i].width * 4
            pieces.append((self._blocks[i], num_bytes))
        for i, held in zip(wanted, self._device.read(pieces), strict=True):
            view = self._views[i]
            rows = view.array[: view.behind]
            rows[:] = held.view(rows.dtype).reshape(rows.shape)
            view.behind = 0


def _written_by(dispatches: list[Dispatch]) -> set[Any]:
    """The device's buffers that are results of any op."""
    return {
        buffer
        for each in dispatches
        for slot, buffer in zip(each.shader.slots, each.buffers, strict=True)
        if slot.access == "read_write"
    }
