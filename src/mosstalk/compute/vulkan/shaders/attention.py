"""Attention of one query head to what its stream has cached, by one workgroup.

Positions are taken in chunks that count from the oldest one the query sees, a thread for each
score. Where a head has fewer values than the workgroup threads, groups of threads share a chunk's
positions, each with every so many. The largest score so far, the sum of the chances and the
weighted values are carried from chunk to chunk, scaled down where a larger score turns up. So
nothing depends on the length of a cache, the place in a ring, or the other rows of the call.
"""

from functools import cache

from mosstalk.compute import ops
from mosstalk.compute.state import KEY_BLOCK
from mosstalk.compute.vulkan.place import Place
from mosstalk.compute.vulkan.shader import Dispatch, Grid, Shader, Slot
from mosstalk.compute.vulkan.shaders.numbers import EXP
from mosstalk.compute.vulkan.shaders.sums import over_threads

_CHUNK = 128  # positions, and threads of a workgroup

_SLOTS = (
    Slot("q", "f32"),
    Slot("positions", "i32"),
    Slot("streams", "i32"),
    Slot("out", "f32", "read_write"),
)
_CONSTANTS = (
    "heads: u32",
    "q_width: u32",
    "first_column: u32",
    "window: u32",
    "scale: f32",
    "multiple: u32",
)


def _readers(head_dim: int, groups: int) -> str:
    """A query's score of one position, and one of its values summed over a chunk."""
    return f"""
var<workgroup> query: array<f32, {head_dim}>;
var<workgroup> results: array<f32, {_CHUNK}>;
var<workgroup> chances: array<f32, {_CHUNK}>;

fn score_of(first_key: u32, at: u32) -> f32 {{
    let place = first_key + at / {KEY_BLOCK}u * {head_dim * KEY_BLOCK}u + at % {KEY_BLOCK}u;
    var sum = 0.0;
    for (var d = 0u; d < {head_dim}u; d++) {{
        sum = fma(query[d], keys[place + d * {KEY_BLOCK}u], sum);
    }}
    return sum * op.scale;
}}

// Of every {groups}-th position from `start` on.
fn values_of(first_value: u32, first: u32, count: u32, start: u32, dim: u32) -> f32 {{
    if (dim >= {head_dim}u) {{ return 0.0; }}
    var sum = 0.0;
    for (var i = start; i < count; i += {groups}u) {{
        let at = (first + i) % state.length;
        sum = fma(chances[i], values[first_value + at * {head_dim}u + dim], sum);
    }}
    return sum;
}}

// The groups' results, added in order.
fn write_joined(thread: u32, dim: u32, group: u32, item: u32, result: f32, total: f32) {{
    results[thread] = result;
    workgroupBarrier();
    if (group == 0u && dim < {head_dim}u) {{
        var sum = 0.0;
        for (var i = 0u; i < {groups}u; i++) {{ sum += results[thread + i * {head_dim}u]; }}
        out[item * {head_dim}u + dim] = sum / total;
    }}
    workgroupBarrier();
}}
"""


@cache
def _shader(head_dim: int) -> Shader:
    """`head_dim` values of a head, each thread with every `_CHUNK`-th of the result."""
    groups = max(1, _CHUNK // head_dim)
    each = range(-(-head_dim // _CHUNK))
    starts = "\n".join(f"    var result{n} = 0.0;" for n in each)
    values = "\n".join(
        f"        result{n} = fma(result{n}, shrink, "
        f"values_of(first_value, first, count, group, dim + {n * _CHUNK}u));"
        for n in each
    )
    ends = "\n".join(
        f"    write_joined(thread, dim + {n * _CHUNK}u, group, item, result{n}, total);"
        for n in each
    )
    body = f"""
{EXP}
{over_threads(_CHUNK)}
{_readers(head_dim, groups)}
@compute @workgroup_size({_CHUNK})
fn main(
    @builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) thread: u32
) {{
    let item = group_number(workgroup);
    let row = item / op.heads;
    let head = item % op.heads;
    if (row >= call.rows * op.multiple) {{ return; }}
    for (var d = thread; d < {head_dim}u; d += {_CHUNK}u) {{
        query[d] = q[row * op.q_width + op.first_column + head * {head_dim}u + d];
    }}
    let end = u32(positions[row]) + 1u;
    let oldest = select(0u, end - min(end, op.window), op.window > 0u);
    let group = thread / {head_dim}u;
    let dim = select(thread - group * {head_dim}u, {head_dim}u, group >= {groups}u);
    let cached = u32(streams[row]) * state.heads + head / (op.heads / state.heads);
    let first_value = cached * state.length * {head_dim}u;  // and first key: both are as long
    var largest = -3.0e38;
    var total = 0.0;
{starts}
    workgroupBarrier();
    for (var first = oldest; first < end; first += {_CHUNK}u) {{
        let count = min(end - first, {_CHUNK}u);
        var score = -3.0e38;
        if (thread < count) {{ score = score_of(first_value, (first + thread) % state.length); }}
        let before = largest;
        largest = max(before, largest_of(thread, score));
        let shrink = exp_of(before - largest);
        var chance = 0.0;
        if (thread < count) {{ chance = exp_of(score - largest); }}
        chances[thread] = chance;
        total = fma(total, shrink, sum_of(thread, chance));
{values}
        workgroupBarrier();
    }}
{ends}
}}
"""
    return Shader(f"attention {head_dim}", _SLOTS, _CONSTANTS, body, "cache")


def record(op: ops.Attention, place: Place) -> list[Dispatch]:
    buffers = tuple(place.buffer(buffer) for buffer in (op.q, op.positions, op.streams, op.out))
    multiple = op.out.multiple
    constants = (op.heads, op.q.width, op.first_column, op.window, float(op.scale), multiple)
    grid = Grid(multiple * op.heads)
    return [Dispatch(_shader(op.head_dim), buffers, constants, grid, op.cache)]
