"""Add, by a factor or by a vector."""

from mosstalk.compute import ops
from mosstalk.compute.vulkan.place import Place
from mosstalk.compute.vulkan.shader import Dispatch, Slot
from mosstalk.compute.vulkan.shaders.elements import element_shader, for_each

_SLOTS = (Slot("a", "f32"), Slot("b", "f32"), Slot("out", "f32", "read_write"))

_BY_FACTOR = element_shader(
    "add by a factor",
    _SLOTS,
    ("factor: f32",),
    """
fn element(item: u32) {
    out[item] = fma(op.factor, b[item], a[item]);
}
""",
)
_BY_VECTOR = element_shader(
    "add by a vector",
    (*_SLOTS, Slot("scale", "f32")),
    ("width: u32",),
    """
fn element(item: u32) {
    out[item] = fma(scale[item % op.width], b[item], a[item]);
}
""",
)


def record(op: ops.Add, place: Place) -> list[Dispatch]:
    items = op.out.multiple * op.out.width
    buffers = (place.buffer(op.a), place.buffer(op.b), place.buffer(op.out))
    if op.scale is None:
        return [for_each(items, _BY_FACTOR, buffers, (float(op.factor),))]
    return [for_each(items, _BY_VECTOR, (*buffers, place.vector(op.scale)), (op.out.width,))]
