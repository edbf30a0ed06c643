"""LayerNorm: a workgroup for each row; mean, then variance about it."""

from mosstalk.compute import ops
from mosstalk.compute.vulkan.place import Place
from mosstalk.compute.vulkan.shader import Dispatch, Grid, Shader, Slot
from mosstalk.compute.vulkan.shaders.sums import over_threads

_THREADS = 64

_SHADER = Shader(
    "layer norm",
    (
        Slot("x", "f32"),
        Slot("weight", "f32"),
        Slot("bias", "f32"),
        Slot("out", "f32", "read_write"),
    ),
    ("width: u32", "eps: f32", "multiple: u32"),
    f"""
{over_threads(_THREADS)}
@compute @workgroup_size({_THREADS})
fn main(
    @builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) thread: u32
) {{
    let row = group_number(workgroup);
    if (row >= call.rows * op.multiple) {{ return; }}
    let first = row * op.width;
    var sum = 0.0;
    for (var i = thread; i < op.width; i += {_THREADS}u) {{ sum += x[first + i]; }}
    let mean = sum_of(thread, sum) / f32(op.width);
    var squares = 0.0;
    for (var i = thread; i < op.width; i += {_THREADS}u) {{
        let centred = x[first + i] - mean;
        squares = fma(centred, centred, squares);
    }}
    let scale = 1.0 / sqrt(sum_of(thread, squares) / f32(op.width) + op.eps);
    for (var i = thread; i < op.width; i += {_THREADS}u) {{
        out[first + i] = fma((x[first + i] - mean) * scale, weight[i], bias[i]);
    }}
}}
""",
)


def record(op: ops.LayerNorm, place: Place) -> list[Dispatch]:
    weights = (place.vector(op.weight), place.vector(op.bias))
    buffers = (place.buffer(op.x), *weights, place.buffer(op.out))
    multiple = op.out.multiple
    constants = (op.x.width, float(op.eps), multiple)
    return [Dispatch(_SHADER, buffers, constants, Grid(multiple))]
