"""What a shader declares, and what one dispatch of it needs.

A shader has one text for all shapes: an op's numbers come in a uniform, `op`, and the rows of the
call in another, `call`. Its declarations and its binding layout come from the same list of slots.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

THREADS = 64  # of a workgroup, for ops on single values
_FOLD = 32768  # workgroups in the first dimension where there are more; a device allows 65535

Access = Literal["read", "read_write"]
StateKind = Literal["", "cache", "seen"]


@dataclass(frozen=True, slots=True)
class Slot:
    """A buffer that a shader sees as array<`element`>."""

    name: str
    element: str
    access: Access = "read"


# What ops on a state see of it, in group 1. Dimensions: `State` in compute/state.py.
_STATE_SLOTS: dict[StateKind, tuple[Slot, ...]] = {
    "": (),
    "cache": (Slot("keys", "f32", "read_write"), Slot("values", "f32", "read_write")),
    "seen": (Slot("seen", "u32", "read_write"),),  # four ids a word, the first in the low bits
}
_STATE_SIZES: dict[StateKind, tuple[str, ...]] = {
    "": (),
    "cache": ("length", "heads", "head_dim"),
    "seen": ("words",),  # of a stream
}

_PREAMBLE = f"""
struct Call {{ rows: u32 }}

// The workgroup's number where Grid has folded them into two dimensions.
fn group_number(workgroup: vec3<u32>) -> u32 {{
    return workgroup.x + workgroup.y * {_FOLD}u;
}}
"""


@dataclass(frozen=True)
class Shader:
    """A compute shader with the entry point `main`.

    Attributes:
        name: for errors and the device's tools.
        slots: buffers of group 0, after the two uniforms.
        constants: members of the uniform `op`, as WGSL declares them ("width: u32").
        body: functions and `main`.
        state: what it sees of a state, in group 1.
    """

    name: str
    slots: tuple[Slot, ...]
    constants: tuple[str, ...]
    body: str
    state: StateKind = ""

    @cached_property
    def text(self) -> str:
        """The whole program in WGSL."""
        lines = [f"struct Op {{ {', '.join(self.constants)} }}"]
        lines += [
            "@group(0) @binding(0) var<uniform> op: Op;",
            "@group(0) @binding(1) var<uniform> call: Call;",
        ]
        lines += [_declaration(0, i + 2, slot) for i, slot in enumerate(self.slots)]
        if self.state:
            members = ", ".join(f"{name}: u32" for name in _STATE_SIZES[self.state])
            lines += [
                f"struct StateSizes {{ {members} }}",
                "@group(1) @binding(0) var<uniform> state: StateSizes;",
            ]
            state_slots = _STATE_SLOTS[self.state]
            lines += [_declaration(1, i + 1, slot) for i, slot in enumerate(state_slots)]
        return _PREAMBLE + "\n".join(lines) + "\n" + self.body

    @property
    def accesses(self) -> tuple[Access, ...]:
        return tuple(slot.access for slot in self.slots)


def state_accesses(kind: StateKind) -> tuple[Access, ...]:
    """How group 1 is bound."""
    return tuple(slot.access for slot in _STATE_SLOTS[kind])


def _declaration(group: int, binding: int, slot: Slot) -> str:
    return (
        f"@group({group}) @binding({binding}) "
        f"var<storage, {slot.access}> {slot.name}: array<{slot.element}>;"
    )


@dataclass(frozen=True, slots=True)
class Grid:
    """How many workgroups a call of some rows takes.

    Attributes:
        items: for each row of the call.
        per_group: items that a workgroup takes.
        columns: workgroups in the first dimension, where items fill the second only; 0: items are
            folded into both, and a workgroup finds its own by `group_number`.
    """

    items: int
    per_group: int = 1
    columns: int = 0

    def groups(self, rows: int) -> tuple[int, int]:
        """Workgroups in the first and the second dimension."""
        count = -(-rows * self.items // self.per_group)
        if self.columns:
            return self.columns, count
        return min(count, _FOLD), -(-count // _FOLD)


@dataclass(frozen=True, slots=True)
class Dispatch:
    """One step of a program on the device.

    Attributes:
        shader: what runs.
        buffers: the device's buffers for the shader's slots.
        constants: int or float as the shader's `constants` declare them.
        grid: how many workgroups.
        state: number of the cache or set that the shader sees.
        alone: another shader with the same slots and constants, and its grid, for one row.
    """

    shader: Shader
    buffers: tuple[Any, ...]
    constants: tuple[int | float, ...]
    grid: Grid
    state: int = 0
    alone: tuple[Shader, Grid] | None = None
