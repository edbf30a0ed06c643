"""Argmax: the first of the largest values, by a workgroup for each row."""

from mosstalk.compute import ops
from mosstalk.compute.vulkan.place import Place
from mosstalk.compute.vulkan.shader import Dispatch, Grid, Shader, Slot

_THREADS = 64

# `first_largest(thread, value, id)`: the lowest id of those with the largest value, in every
# thread. A thread without a value gives the id NOBODY.
FIRST_LARGEST = f"""
const NOBODY = 0xffffffffu;
var<workgroup> best_values: array<f32, {_THREADS}>;
var<workgroup> best_ids: array<u32, {_THREADS}>;

fn first_largest(thread: u32, value: f32, id: u32) -> u32 {{
    best_values[thread] = value;
    best_ids[thread] = id;
    workgroupBarrier();
    for (var half = {_THREADS // 2}u; half > 0u; half /= 2u) {{
        if (thread < half) {{
            let theirs = best_values[thread + half];
            let id = best_ids[thread + half];
            let ours = best_ids[thread];
            let is_ahead = theirs > best_values[thread]
                || (theirs == best_values[thread] && id < ours);
            if (id != NOBODY && (ours == NOBODY || is_ahead)) {{
                best_values[thread] = theirs;
                best_ids[thread] = id;
            }}
        }}
        workgroupBarrier();
    }}
    return workgroupUniformLoad(&best_ids[0]);
}}
"""

_SHADER = Shader(
    "argmax",
    (Slot("x", "f32"), Slot("out", "i32", "read_write")),
    ("width: u32", "out_width: u32", "column: u32", "multiple: u32"),
    f"""
{FIRST_LARGEST}
@compute @workgroup_size({_THREADS})
fn main(
    @builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) thread: u32
) {{
    let row = group_number(workgroup);
    if (row >= call.rows * op.multiple) {{ return; }}
    var largest = 0.0;
    var id = NOBODY;
    for (var i = thread; i < op.width; i += {_THREADS}u) {{
        let value = x[row * op.width + i];
        if (id == NOBODY || value > largest) {{
            largest = value;
            id = i;
        }}
    }}
    let found = first_largest(thread, largest, id);
    if (thread == 0u) {{ out[row * op.out_width + op.column] = i32(found); }}
}}
""",
)


def record(op: ops.Argmax, place: Place) -> list[Dispatch]:
    multiple = op.x.multiple
    constants = (op.x.width, op.out.width, op.column, multiple)
    buffers = (place.buffer(op.x), place.buffer(op.out))
    return [Dispatch(_SHADER, buffers, constants, Grid(multiple))]
