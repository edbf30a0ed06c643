"""Reading packed matrices in WGSL, four values at a time; the layout is that of weights.py.

Every value comes out as the float32 that `StoredTensor.to_float32` gives: bits are moved by hand,
because a driver's own conversion of half precision may lose its smallest numbers.
"""

from mosstalk.checkpoint.storage import StorageType
from mosstalk.compute.vulkan.shader import Slot

_ELEMENTS = {
    StorageType.F32: "vec4<f32>",
    StorageType.F16: "vec2<u32>",
    StorageType.BF16: "vec2<u32>",
    StorageType.Q8_0: "u32",
}

_READERS = {
    StorageType.F32: """
fn weight_at(row: u32, step: u32) -> vec4<f32> {
    return weight[row * op.steps + step];
}
""",
    StorageType.F16: """
fn half(bits: u32) -> f32 {
    let size = bits & 0x7fffu;
    let normal = bitcast<f32>((size << 13u) + 0x38000000u);  // exponents are biased by 15, 127
    let value = select(normal, f32(size) * 5.9604644775390625e-8, size < 0x400u);  // times 2^-24
    return select(value, -value, (bits & 0x8000u) != 0u);
}

fn weight_at(row: u32, step: u32) -> vec4<f32> {
    let packed = weight[row * op.steps + step];
    return vec4(half(packed.x), half(packed.x >> 16u), half(packed.y), half(packed.y >> 16u));
}
""",
    StorageType.BF16: """
fn weight_at(row: u32, step: u32) -> vec4<f32> {
    let packed = weight[row * op.steps + step];
    let low = packed << vec2(16u);
    let high = packed & vec2(0xffff0000u);
    return bitcast<vec4<f32>>(vec4(low.x, high.x, low.y, high.y));
}
""",
    StorageType.Q8_0: """
fn weight_at(row: u32, step: u32) -> vec4<f32> {
    let block = (row * op.steps + step) / 8u * 9u;  // a scale, then eight words
    let word = bitcast<i32>(weight[block + 1u + step % 8u]);
    let values = vec4(word << 24u, word << 16u, word << 8u, word) >> vec4(24u);
    return vec4<f32>(values) * bitcast<f32>(weight[block]);
}
""",
}


def matrix_slot(storage: StorageType) -> Slot:
    """The slot `weight` of a matrix."""
    return Slot("weight", _ELEMENTS[storage])


def matrix_reader(storage: StorageType) -> str:
    """`weight_at(row, step)`: values 4 step ... 4 step + 3 of a row; needs `op.steps`."""
    return _READERS[storage]
