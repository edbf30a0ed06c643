"""Rope: pairs of a head's values turn in place."""

from mosstalk.compute import ops
from mosstalk.compute.ops import RopePairs
from mosstalk.compute.vulkan.place import Place
from mosstalk.compute.vulkan.shader import Dispatch, Slot
from mosstalk.compute.vulkan.shaders.elements import element_shader, for_each

_SHADER = element_shader(
    "rope",
    (Slot("x", "f32", "read_write"), Slot("turns", "f32")),
    (
        "width: u32",
        "first_column: u32",
        "heads: u32",
        "pairs: u32",  # of a head
        "between: u32",  # a pair's first value and its second
        "stride: u32",  # from a pair to the next
    ),
    """
fn element(item: u32) {
    let pair = item % op.pairs;
    let head = item / op.pairs % op.heads;
    let row = item / (op.pairs * op.heads);
    let first = row * op.width + op.first_column + 2u * head * op.pairs + pair * op.stride;
    let second = first + op.between;
    let cosine = turns[2u * row * op.pairs + pair];
    let sine = turns[2u * row * op.pairs + op.pairs + pair];
    let a = x[first];
    let b = x[second];
    x[first] = fma(a, cosine, -(b * sine));
    x[second] = fma(b, cosine, a * sine);
}
""",
)


def record(op: ops.Rope, place: Place) -> list[Dispatch]:
    pairs = op.head_dim // 2
    between, stride = (1, 2) if op.pairs is RopePairs.INTERLEAVED else (pairs, 1)
    constants = (op.x.width, op.first_column, op.heads, pairs, between, stride)
    buffers = (place.buffer(op.x), place.buffer(op.turns))
    return [for_each(op.x.multiple * op.heads * pairs, _SHADER, buffers, constants)]
