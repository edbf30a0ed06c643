"""CacheWrite: this call's keys and values into their stream's cache."""

from mosstalk.compute import ops
from mosstalk.compute.state import KEY_BLOCK
from mosstalk.compute.vulkan.place import Place
from mosstalk.compute.vulkan.shader import Dispatch, Slot
from mosstalk.compute.vulkan.shaders.elements import element_shader, for_each

_SHADER = element_shader(
    "cache write",
    (
        Slot("new_keys", "f32"),
        Slot("new_values", "f32"),
        Slot("positions", "i32"),
        Slot("streams", "i32"),
    ),
    (
        "most: u32",  # values of a row: what the state holds of one is not known before
        "keys_width: u32",
        "key_column: u32",
        "values_width: u32",
        "value_column: u32",
    ),
    f"""
fn element(item: u32) {{
    let row = item / op.most;
    let column = item % op.most;
    if (column >= state.heads * state.head_dim) {{ return; }}
    let head = u32(streams[row]) * state.heads + column / state.head_dim;
    let dim = column % state.head_dim;
    let at = u32(positions[row]) % state.length;
    let block = head * (state.length / {KEY_BLOCK}u) + at / {KEY_BLOCK}u;
    keys[(block * state.head_dim + dim) * {KEY_BLOCK}u + at % {KEY_BLOCK}u] =
        new_keys[row * op.keys_width + op.key_column + column];
    values[(head * state.length + at) * state.head_dim + dim] =
        new_values[row * op.values_width + op.value_column + column];
}}
""",
    "cache",
)


def record(op: ops.CacheWrite, place: Place) -> list[Dispatch]:
    most = min(op.keys.width - op.key_column, op.values.width - op.value_column)
    constants = (most, op.keys.width, op.key_column, op.values.width, op.value_column)
    buffers = tuple(
        place.buffer(buffer) for buffer in (op.keys, op.values, op.positions, op.streams)
    )
    return [for_each(op.keys.multiple * most, _SHADER, buffers, constants, op.cache)]
