"""Linear: products of activation rows with packed weight rows.

Sixteen threads share one product, each with every sixteenth group of four values. A call of one row
has a shader of its own, in which they compute one column of the result. In the other they compute
four columns of four rows, so that weights and activations are read once for four products. The
order of the sums is the same in both.
"""

from functools import cache

from mosstalk.checkpoint.storage import StorageType
from mosstalk.compute import ops
from mosstalk.compute.vulkan.place import Place
from mosstalk.compute.vulkan.shader import Dispatch, Grid, Shader, Slot
from mosstalk.compute.vulkan.shaders.packed import matrix_reader, matrix_slot

_LANES = 16  # threads of a product
_GROUPS = 4  # of threads in a workgroup, each with columns of its own
_THREADS = _LANES * _GROUPS
_TILE = 4  # rows, and columns, of a group; their product is at most _LANES

_CONSTANTS = (
    "width: u32",  # of x
    "steps: u32",  # ceil(width / 4)
    "out_width: u32",
    "first_column: u32",  # of the result: the first row of this part of the matrix
    "num_columns: u32",
    "multiple: u32",
    "has_bias: u32",
)

_READ_X = {
    "f32": """
fn x_at(row: u32, step: u32) -> vec4<f32> {
    let first = row * op.width + 4u * step;
    let left = op.width - 4u * step;  // of the row; padded weights are zeros, but not what follows
    var values = vec4(x[first], 0.0, 0.0, 0.0);
    if (left > 1u) { values.y = x[first + 1u]; }
    if (left > 2u) { values.z = x[first + 2u]; }
    if (left > 3u) { values.w = x[first + 3u]; }
    return values;
}
""",
    "vec4<f32>": """
fn x_at(row: u32, step: u32) -> vec4<f32> {
    return x[row * op.steps + step];
}
""",
}


@cache
def _shader(storage: StorageType, x_element: str, tile: int) -> Shader:
    """`tile` rows and columns of the result for each group of threads."""
    each = range(tile)
    pairs = [(r, c) for r in each for c in each]
    starts = "\n".join(f"    var sum{r}_{c} = vec4(0.0);" for r, c in pairs)
    rows = "\n".join(f"    let row{r} = min(first_row + {r}u, num_rows - 1u);" for r in each)
    columns = "\n".join(
        f"    let column{c} = min(first_column + {c}u, op.num_columns - 1u);" for c in each
    )
    loads = "\n".join(
        f"        let weight{i} = weight_at(column{i}, step);\n"
        f"        let x{i} = x_at(row{i}, step);"
        for i in each
    )
    terms = "\n".join(f"        sum{r}_{c} = fma(weight{c}, x{r}, sum{r}_{c});" for r, c in pairs)
    kept = "\n".join(
        f"    sums[{(r * tile + c) * _THREADS}u + thread] = all_of(sum{r}_{c});" for r, c in pairs
    )
    body = f"""
{matrix_reader(storage)}
{_READ_X[x_element]}
fn all_of(v: vec4<f32>) -> f32 {{ return (v.x + v.y) + (v.z + v.w); }}

var<workgroup> sums: array<f32, {tile * tile * _THREADS}>;

@compute @workgroup_size({_THREADS})
fn main(
    @builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) thread: u32
) {{
    let num_rows = call.rows * op.multiple;
    let lane = thread % {_LANES}u;
    let first_column = (workgroup.x * {_GROUPS}u + thread / {_LANES}u) * {tile}u;
    let first_row = workgroup.y * {tile}u;
{rows}
{columns}
{starts}
    for (var step = lane; step < op.steps; step += {_LANES}u) {{
{loads}
{terms}
    }}
{kept}
    workgroupBarrier();
    let row = first_row + lane / {tile}u;  // the first threads of a group end one sum each
    let column = first_column + lane % {tile}u;
    if (lane < {tile * tile}u && row < num_rows && column < op.num_columns) {{
        let first = lane * {_THREADS}u + thread - lane;
        var total = 0.0;
        for (var i = 0u; i < {_LANES}u; i++) {{ total += sums[first + i]; }}
        if (op.has_bias != 0u) {{ total += bias[op.first_column + column]; }}
        out[row * op.out_width + op.first_column + column] = total;
    }}
}}
"""
    slots = (
        Slot("x", x_element),
        matrix_slot(storage),
        Slot("bias", "f32"),
        Slot("out", "f32", "read_write"),
    )
    return Shader(f"linear {storage} {tile} {x_element}", slots, _CONSTANTS, body)


def record(op: ops.Linear, place: Place) -> list[Dispatch]:
    """A dispatch for each part of the matrix."""
    matrix = place.matrix(op.weight)
    x, out = place.buffer(op.x), place.buffer(op.out)
    bias = x if op.bias is None else place.vector(op.bias)  # without one nothing is read there
    x_element = "f32" if op.x.width % 4 else "vec4<f32>"
    width, multiple = op.x.width, op.x.multiple
    dispatches = []
    for part in matrix.parts:
        rest = (op.out.width, part.first_row, part.num_rows, multiple, int(op.bias is not None))
        shaders = [
            (
                _shader(matrix.storage, x_element, tile),
                Grid(multiple, tile, -(-part.num_rows // (_GROUPS * tile))),
            )
            for tile in (_TILE, 1)
        ]
        buffers = (x, part.buffer, bias, out)
        constants = (width, matrix.steps, *rest)
        dispatches.append(Dispatch(shaders[0][0], buffers, constants, shaders[0][1], 0, shaders[1]))
    return dispatches
