"""Embed: rows of packed tables, added up or side by side; a dispatch for each part of a table.

A table's first part writes or adds to the sum, and an id outside counts as zeros. So ids need no
check before, and parts of one table exclude each other.
"""

from functools import cache

from mosstalk.checkpoint.storage import StorageType
from mosstalk.compute import ops
from mosstalk.compute.vulkan.place import Place
from mosstalk.compute.vulkan.shader import Dispatch, Shader, Slot
from mosstalk.compute.vulkan.shaders.elements import element_shader, for_each
from mosstalk.compute.vulkan.shaders.packed import matrix_reader, matrix_slot

_CONSTANTS = (
    "columns: u32",  # of the table
    "steps: u32",  # ceil(columns / 4)
    "out_width: u32",
    "first_column: u32",  # of the result
    "ids_width: u32",
    "ids_column: u32",
    "first_row: u32",  # of this part of the table
    "num_rows: u32",
    "adds: u32",
)


@cache
def _shader(storage: StorageType) -> Shader:
    body = f"""
{matrix_reader(storage)}
fn element(item: u32) {{
    let row = item / op.steps;
    let step = item % op.steps;
    let id = ids[row * op.ids_width + op.ids_column];
    var values = vec4(0.0);
    if (id >= i32(op.first_row) && id < i32(op.first_row + op.num_rows)) {{
        values = weight_at(u32(id) - op.first_row, step);
    }}
    let first = row * op.out_width + op.first_column + 4u * step;
    for (var i = 0u; i < min(4u, op.columns - 4u * step); i++) {{
        out[first + i] = select(values[i], out[first + i] + values[i], op.adds != 0u);
    }}
}}
"""
    slots = (Slot("ids", "i32"), matrix_slot(storage), Slot("out", "f32", "read_write"))
    return element_shader(f"embed {storage}", slots, _CONSTANTS, body)


def record(op: ops.Embed, place: Place) -> list[Dispatch]:
    """A dispatch for each part of each table, in order."""
    dispatches: list[Dispatch] = []
    first_column = 0
    for i, table in enumerate(op.tables):
        matrix = place.matrix(table)
        for j, part in enumerate(matrix.parts):
            adds = j > 0 or (i > 0 and not op.concat)
            target = (op.out.width, first_column, op.ids.width, op.first_column + i)
            rest = (part.first_row, part.num_rows, int(adds))
            buffers = (place.buffer(op.ids), part.buffer, place.buffer(op.out))
            constants = (table.columns, matrix.steps, *target, *rest)
            items = op.out.multiple * matrix.steps
            dispatches.append(for_each(items, _shader(matrix.storage), buffers, constants))
        first_column += table.columns if op.concat else 0
    return dispatches
