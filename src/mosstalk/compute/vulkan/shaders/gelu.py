"""Gelu, as a logistic function of the tanh form's argument, or by erf."""

from mosstalk.compute import ops
from mosstalk.compute.ops import GeluKind
from mosstalk.compute.vulkan.place import Place
from mosstalk.compute.vulkan.shader import Dispatch, Slot
from mosstalk.compute.vulkan.shaders.elements import element_shader, for_each
from mosstalk.compute.vulkan.shaders.numbers import ERF, EXP

_SLOTS = (Slot("x", "f32"), Slot("out", "f32", "read_write"))

_SHADERS = {
    # 0.5 v (1 + tanh u) = v / (1 + exp(-2 u)), u = sqrt(2 / pi) (v + 0.044715 v^3)
    GeluKind.TANH: element_shader(
        "gelu tanh",
        _SLOTS,
        (),
        EXP
        + """
fn element(item: u32) {
    let v = x[item];
    let cubic = v * fma(v * v, 0.044715, 1.0);
    out[item] = v / (1.0 + exp_of(cubic * -1.595769122));
}
""",
    ),
    GeluKind.ERF: element_shader(
        "gelu erf",
        _SLOTS,
        (),
        ERF
        + """
fn element(item: u32) {
    let v = x[item];
    out[item] = 0.5 * v * (1.0 + erf_of(v * 0.707106781));
}
""",
    ),
}


def record(op: ops.Gelu, place: Place) -> list[Dispatch]:
    buffers = (place.buffer(op.x), place.buffer(op.out))
    return [for_each(op.out.multiple * op.out.width, _SHADERS[op.kind], buffers)]
