"""Gather: rows by number."""

from mosstalk.compute import ops
from mosstalk.compute.vulkan.place import Place
from mosstalk.compute.vulkan.shader import Dispatch, Slot
from mosstalk.compute.vulkan.shaders.elements import element_shader, for_each

_SHADER = element_shader(
    "gather",
    (Slot("x", "f32"), Slot("index", "i32"), Slot("out", "f32", "read_write")),
    ("width: u32",),
    """
fn element(item: u32) {
    out[item] = x[u32(index[item / op.width]) * op.width + item % op.width];
}
""",
)


def record(op: ops.Gather, place: Place) -> list[Dispatch]:
    buffers = (place.buffer(op.x), place.buffer(op.index), place.buffer(op.out))
    return [for_each(op.out.multiple * op.out.width, _SHADER, buffers, (op.out.width,))]
