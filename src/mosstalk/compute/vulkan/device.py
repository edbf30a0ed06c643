"""A device through wgpu: memory, pipelines, runs; whatever its driver raises is a DeviceError."""

import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import wgpu
from numpy.typing import NDArray

from mosstalk.compute.vulkan.adapter import Adapter
from mosstalk.compute.vulkan.shader import Access, Shader, state_accesses
from mosstalk.errors import DeviceError

_LIMITS = ("max-buffer-size", "max-storage-buffer-binding-size")  # raised to what the device has
_UNIFORM_STEP = 256  # no device asks for a wider alignment
_MOST_UNSENT = 2**26  # bytes
_GREATEST_BINDING = 2**31 - 4  # every byte has an int32 for its offset
_BUFFER = wgpu.BufferUsage.STORAGE | wgpu.BufferUsage.COPY_SRC | wgpu.BufferUsage.COPY_DST
_TYPES: dict[Access, str] = {"read": "read-only-storage", "read_write": "storage"}


@dataclass(frozen=True, slots=True)
class Uniform:
    """A range of a uniform buffer."""

    buffer: Any
    offset: int
    num_bytes: int


@dataclass(frozen=True, slots=True)
class Step:
    """A pipeline with its bind groups and workgroups, ready to be encoded."""

    pipeline: Any
    groups: tuple[Any, ...]
    workgroups: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Piece:
    """Bytes of a buffer to be copied to another one; all three numbers are multiples of four."""

    source: Any
    source_offset: int
    target: Any
    target_offset: int
    num_bytes: int


class Device:
    """An open device.

    Attributes:
        name: as in `Adapter`.
        binding_limit: bytes of a buffer that a shader can see, a multiple of four.
    """

    def __init__(self, adapter: Adapter) -> None:
        self.name = adapter.name
        limits = {name: adapter.handle.limits[name] for name in _LIMITS}
        with self._errors("cannot be opened"):
            self._device = adapter.handle.request_device_sync(required_limits=limits)
        self.binding_limit = min(_GREATEST_BINDING, *limits.values()) // 4 * 4
        self._unsent = 0  # bytes written since the last submission of them
        self._most_read = self.binding_limit // 2  # sizes are rounded up
        self._layouts: dict[tuple[str, ...], Any] = {}
        self._pipelines: dict[Shader, Any] = {}

    def buffer(self, num_bytes: int, label: str, data: NDArray[Any] | None = None) -> Any:
        """Memory for a shader: zeros, or a copy of `data`. Raises DeviceError where it is short."""
        size = max(4, -(-num_bytes // 4) * 4)
        if size > self.binding_limit:
            raise DeviceError(
                f"{label} takes {size} bytes, but {self.name} allows {self.binding_limit} in one "
                "piece; give a shorter text or another --device"
            )
        with self._errors(f"has no {size} bytes left for {label}"):
            made = self._device.create_buffer(label=label, size=size, usage=_BUFFER)
        if data is not None:
            self.write(made, data)
        return made

    def write(self, buffer: Any, data: NDArray[Any]) -> None:
        """Copy `data` to the beginning of a buffer, before what is submitted next.

        What is written waits in host memory for the next submission, so much of it is sent on.
        """
        held = _whole_words(data)
        with self._errors("failed in a copy to it"):
            for at in range(0, held.size, _MOST_UNSENT):
                part = held[at : at + _MOST_UNSENT]
                self._device.queue.write_buffer(buffer, at, part)
                self._unsent += part.size
                if self._unsent >= _MOST_UNSENT:
                    self._device.queue.submit([])
                    self._unsent = 0

    def read(self, pieces: Sequence[tuple[Any, int]]) -> list[NDArray[np.uint8]]:
        """The first bytes of each buffer, (buffer, number of bytes), in as few transfers as fit."""
        held: list[NDArray[np.uint8]] = []
        batch: list[tuple[Any, int]] = []
        for piece in pieces:
            if batch and sum(size for _, size in (*batch, piece)) > self._most_read:
                held += self._read_at_once(batch)
                batch = []
            batch.append(piece)
        return held + self._read_at_once(batch)

    def _read_at_once(self, pieces: Sequence[tuple[Any, int]]) -> list[NDArray[np.uint8]]:
        sizes = [-(-num_bytes // 4) * 4 for _, num_bytes in pieces]
        usage = wgpu.BufferUsage.MAP_READ | wgpu.BufferUsage.COPY_DST
        with self._errors("failed in a copy from it"):
            staging = self._device.create_buffer(size=sum(sizes), usage=usage)
            encoder = self._device.create_command_encoder()
            at = 0
            for (buffer, _), size in zip(pieces, sizes, strict=True):
                encoder.copy_buffer_to_buffer(buffer, 0, staging, at, size)
                at += size
            self._device.queue.submit([encoder.finish()])
            staging.map_sync("READ")
            held = np.frombuffer(staging.read_mapped(), np.uint8)
            staging.destroy()
        ends = np.cumsum(sizes)
        return [
            held[end - size : end - size + num_bytes]
            for end, size, (_, num_bytes) in zip(ends, sizes, pieces, strict=True)
        ]

    def copy(self, pieces: Sequence[Piece]) -> None:
        """Copy from buffer to buffer, after what was submitted before."""
        with self._errors("failed in a copy within it"):
            encoder = self._device.create_command_encoder()
            for piece in pieces:
                encoder.copy_buffer_to_buffer(
                    piece.source,
                    piece.source_offset,
                    piece.target,
                    piece.target_offset,
                    piece.num_bytes,
                )
            self._device.queue.submit([encoder.finish()])

    def uniforms(self, values: Sequence[tuple[int | float, ...]]) -> list[Uniform]:
        """One buffer with a uniform for each tuple: ints become u32, floats f32."""
        packed = [_pack(numbers) for numbers in values]
        data = b"".join(piece.ljust(_UNIFORM_STEP, b"\0") for piece in packed)
        usage = wgpu.BufferUsage.UNIFORM | wgpu.BufferUsage.COPY_DST
        with self._errors("has no memory left for a program's constants"):
            buffer = self._device.create_buffer(size=len(data), usage=usage)
        self.write(buffer, np.frombuffer(data, np.uint8))
        return [Uniform(buffer, i * _UNIFORM_STEP, len(piece)) for i, piece in enumerate(packed)]

    def pipeline(self, shader: Shader) -> Any:
        """The compiled shader, made at first use. Raises DeviceError where it does not compile."""
        if shader not in self._pipelines:
            layouts = [self._layout(2, shader.accesses)]
            if shader.state:
                layouts.append(self._layout(1, state_accesses(shader.state)))
            with self._errors(f"does not take the shader {shader.name}"):
                module = self._device.create_shader_module(label=shader.name, code=shader.text)
                self._pipelines[shader] = self._device.create_compute_pipeline(
                    label=shader.name,
                    layout=self._device.create_pipeline_layout(bind_group_layouts=layouts),
                    compute={"module": module, "entry_point": "main"},
                )
        return self._pipelines[shader]

    def bind(
        self, uniforms: Sequence[Uniform], buffers: Sequence[Any], accesses: tuple[Access, ...]
    ) -> Any:
        """A bind group: uniforms, then buffers as a shader's slots say."""
        resources: list[dict[str, Any]] = [
            {"buffer": uniform.buffer, "offset": uniform.offset, "size": uniform.num_bytes}
            for uniform in uniforms
        ]
        resources += [{"buffer": buffer, "offset": 0, "size": buffer.size} for buffer in buffers]
        entries = [{"binding": i, "resource": item} for i, item in enumerate(resources)]
        layout = self._layout(len(uniforms), accesses)
        with self._errors("cannot bind a program's memory"):
            return self._device.create_bind_group(layout=layout, entries=entries)

    def submit(self, steps: Sequence[Step]) -> None:
        """Run the steps one after the other; each sees what those before it have written."""
        with self._errors("failed in a run"):
            encoder = self._device.create_command_encoder()
            run = encoder.begin_compute_pass()
            for step in steps:
                run.set_pipeline(step.pipeline)
                for i, group in enumerate(step.groups):
                    run.set_bind_group(i, group)
                run.dispatch_workgroups(*step.workgroups)
            run.end()
            self._device.queue.submit([encoder.finish()])

    def _layout(self, num_uniforms: int, accesses: tuple[Access, ...]) -> Any:
        types = ("uniform",) * num_uniforms + tuple(_TYPES[access] for access in accesses)
        if types not in self._layouts:
            entries = [
                {"binding": i, "visibility": wgpu.ShaderStage.COMPUTE, "buffer": {"type": kind}}
                for i, kind in enumerate(types)
            ]
            with self._errors("cannot bind a program's memory"):
                self._layouts[types] = self._device.create_bind_group_layout(entries=entries)
        return self._layouts[types]

    @contextmanager
    def _errors(self, problem: str) -> Iterator[None]:
        """What wgpu raises, as a DeviceError; RuntimeError is what its promises raise."""
        try:
            yield
        except (wgpu.GPUError, wgpu.GPUPipelineError, RuntimeError) as error:
            reason = " ".join(str(error).split())
            raise DeviceError(
                f"{self.name} {problem} ({reason}); give another --device, such as cpu"
            ) from error


def _pack(numbers: tuple[int | float, ...]) -> bytes:
    """As a uniform's members lie; sixteen bytes at least."""
    kinds = "".join("I" if isinstance(number, int) else "f" for number in numbers)
    return struct.pack(f"<{kinds}", *numbers).ljust(16, b"\0")


def _whole_words(data: NDArray[Any]) -> NDArray[np.uint8]:
    """The bytes of an array, padded to a multiple of four as copies to a device must be."""
    held = np.ascontiguousarray(data).reshape(-1).view(np.uint8)
    missing = -held.size % 4
    return np.pad(held, (0, missing)) if missing else held
