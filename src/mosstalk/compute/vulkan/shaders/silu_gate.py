"""SiluGate."""

from mosstalk.compute import ops
from mosstalk.compute.vulkan.place import Place
from mosstalk.compute.vulkan.shader import Dispatch, Slot
from mosstalk.compute.vulkan.shaders.elements import element_shader, for_each
from mosstalk.compute.vulkan.shaders.numbers import EXP

_SHADER = element_shader(
    "silu gate",
    (Slot("gate", "f32"), Slot("up", "f32"), Slot("out", "f32", "read_write")),
    (),
    EXP
    + """
fn element(item: u32) {
    let v = gate[item];
    out[item] = v / (1.0 + exp_of(-v)) * up[item];
}
""",
)


def record(op: ops.SiluGate, place: Place) -> list[Dispatch]:
    buffers = (place.buffer(op.gate), place.buffer(op.up), place.buffer(op.out))
    return [for_each(op.out.multiple * op.out.width, _SHADER, buffers)]
