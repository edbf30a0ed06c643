"""Shaders that compute each element, or a few of them, from its number alone."""

from typing import Any

from mosstalk.compute.vulkan.shader import Dispatch, Grid, Shader, Slot, StateKind

_THREADS = 64

_MAIN = f"""
@compute @workgroup_size({_THREADS})
fn main(
    @builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) thread: u32
) {{
    let item = group_number(workgroup) * {_THREADS}u + thread;
    if (item < call.rows * op.items) {{ element(item); }}
}}
"""


def element_shader(
    name: str,
    slots: tuple[Slot, ...],
    constants: tuple[str, ...],
    body: str,
    state: StateKind = "",
) -> Shader:
    """A shader that calls `element(item)`, which `body` defines, for each item of the call."""
    return Shader(name, slots, ("items: u32", *constants), body + _MAIN, state)


def for_each(
    items: int,
    shader: Shader,
    buffers: tuple[Any, ...],
    constants: tuple[int | float, ...] = (),
    state: int = 0,
) -> Dispatch:
    """`shader` on `items` items for each row of the call."""
    return Dispatch(shader, buffers, (items, *constants), Grid(items, _THREADS), state)
