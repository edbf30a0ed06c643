"""PatchUp and PatchDown: values of a row to rows of fewer values, and back."""

from mosstalk.compute import ops
from mosstalk.compute.vulkan.place import Place
from mosstalk.compute.vulkan.shader import Dispatch, Slot
from mosstalk.compute.vulkan.shaders.elements import element_shader, for_each

_SLOTS = (Slot("x", "f32"), Slot("out", "f32", "read_write"))
_CONSTANTS = ("channels: u32", "patch_len: u32")  # of the narrow rows, and how many make a wide one

# Item (t, c, k) of the wide row t lies at [t * patch_len + k, c] of the narrow rows.
_PLACE = """
fn narrow(item: u32) -> u32 {
    let k = item % op.patch_len;
    let c = item / op.patch_len % op.channels;
    let t = item / (op.patch_len * op.channels);
    return (t * op.patch_len + k) * op.channels + c;
}
"""
_UP = element_shader(
    "patch up",
    _SLOTS,
    _CONSTANTS,
    _PLACE + "fn element(item: u32) { out[narrow(item)] = x[item]; }",
)
_DOWN = element_shader(
    "patch down",
    _SLOTS,
    _CONSTANTS,
    _PLACE + "fn element(item: u32) { out[item] = x[narrow(item)]; }",
)


def record_up(op: ops.PatchUp, place: Place) -> list[Dispatch]:
    buffers = (place.buffer(op.x), place.buffer(op.out))
    return [for_each(op.x.multiple * op.x.width, _UP, buffers, (op.out.width, op.patch))]


def record_down(op: ops.PatchDown, place: Place) -> list[Dispatch]:
    buffers = (place.buffer(op.x), place.buffer(op.out))
    return [for_each(op.out.multiple * op.out.width, _DOWN, buffers, (op.x.width, op.patch))]
