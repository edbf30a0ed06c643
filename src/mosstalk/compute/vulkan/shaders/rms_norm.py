"""RmsNorm: a workgroup for each group of a row's values."""

from mosstalk.compute import ops
from mosstalk.compute.vulkan.place import Place
from mosstalk.compute.vulkan.shader import Dispatch, Grid, Shader, Slot
from mosstalk.compute.vulkan.shaders.sums import over_threads

_THREADS = 64

_SHADER = Shader(
    "rms norm",
    (Slot("x", "f32"), Slot("weight", "f32"), Slot("out", "f32", "read_write")),
    ("group: u32", "eps: f32", "groups: u32"),  # values of a group, groups for a row of the call
    f"""
{over_threads(_THREADS)}
@compute @workgroup_size({_THREADS})
fn main(
    @builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) thread: u32
) {{
    let number = group_number(workgroup);
    if (number >= call.rows * op.groups) {{ return; }}
    let first = number * op.group;
    var squares = 0.0;
    for (var i = thread; i < op.group; i += {_THREADS}u) {{
        squares = fma(x[first + i], x[first + i], squares);
    }}
    let scale = 1.0 / sqrt(sum_of(thread, squares) / f32(op.group) + op.eps);
    for (var i = thread; i < op.group; i += {_THREADS}u) {{
        out[first + i] = x[first + i] * scale * weight[i];
    }}
}}
""",
)


def record(op: ops.RmsNorm, place: Place) -> list[Dispatch]:
    buffers = (place.buffer(op.x), place.vector(op.weight), place.buffer(op.out))
    groups = op.out.multiple * (op.x.width // op.group)
    return [Dispatch(_SHADER, buffers, (op.group, float(op.eps), groups), Grid(groups))]
