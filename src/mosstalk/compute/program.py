"""Recording a forward pass as a list of ops over preallocated buffers.

A `Program` is recorded once and run for ever: everything that changes between calls (ids,
positions, random numbers, sampling parameters) lies in its named input buffers. It holds no
state: K/V caches and sets of seen ids belong to a `State` (compute/state.py) given to each run.
"""

from dataclasses import dataclass, field, fields

from mosstalk.checkpoint.storage import StoredTensor
from mosstalk.compute import ops
from mosstalk.compute.ops import Buffer, GeluKind, Op, RopePairs, Weight


@dataclass(slots=True)
class Program:
    """Ops, buffers and weights; built by the methods, which check shapes and return results."""

    max_rows: int
    buffers: list[Buffer] = field(default_factory=list)
    weights: list[StoredTensor] = field(default_factory=list)
    ops: list[Op] = field(default_factory=list)
    inputs: dict[str, Buffer] = field(default_factory=dict)
    outputs: dict[str, Buffer] = field(default_factory=dict)

    def buffer(self, width: int, multiple: int = 1, *, is_int: bool = False) -> Buffer:
        made = Buffer(len(self.buffers), width, multiple, is_int)
        self.buffers.append(made)
        return made

    def input(self, name: str, width: int, multiple: int = 1, *, is_int: bool = False) -> Buffer:
        """The input buffer `name`; the same one each time it is asked for."""
        if name not in self.inputs:
            self.inputs[name] = self.buffer(width, multiple, is_int=is_int)
        found = self.inputs[name]
        assert (found.width, found.multiple, found.is_int) == (width, multiple, is_int), name
        return found

    def output(self, name: str, buffer: Buffer) -> Buffer:
        self.outputs[name] = buffer
        return buffer

    def weight(self, tensor: StoredTensor) -> Weight:
        index = next((i for i, held in enumerate(self.weights) if held is tensor), None)
        if index is None:
            index = len(self.weights)
            self.weights.append(tensor)
        rows = tensor.shape[0] if len(tensor.shape) == 2 else 1
        return Weight(index, rows, tensor.shape[-1])

    def embed(
        self, ids: Buffer, first_column: int, tables: list[StoredTensor], *, concat: bool = False
    ) -> Buffer:
        weights = tuple(self.weight(table) for table in tables)
        assert ids.is_int and first_column + len(tables) <= ids.width
        assert concat or len({w.columns for w in weights}) == 1
        width = sum(w.columns for w in weights) if concat else weights[0].columns
        out = self.buffer(width, ids.multiple)
        self.ops.append(ops.Embed(out, ids, first_column, weights, concat))
        return out

    def gather(self, x: Buffer, index: Buffer) -> Buffer:
        out = self.buffer(x.width, index.multiple)
        self.ops.append(ops.Gather(out, x, index))
        return out

    def linear(self, x: Buffer, weight: StoredTensor, bias: StoredTensor | None = None) -> Buffer:
        matrix = self.weight(weight)
        assert matrix.columns == x.width, (weight.name, weight.shape, x.width)
        assert bias is None or bias.shape == (matrix.rows,), (weight.name, weight.shape)
        out = self.buffer(matrix.rows, x.multiple)
        self.ops.append(ops.Linear(out, x, matrix, None if bias is None else self.weight(bias)))
        return out

    def layer_norm(self, x: Buffer, weight: StoredTensor, bias: StoredTensor, eps: float) -> Buffer:
        assert weight.shape == bias.shape == (x.width,), (weight.name, weight.shape, x.width)
        out = self.buffer(x.width, x.multiple)
        self.ops.append(ops.LayerNorm(out, x, self.weight(weight), self.weight(bias), eps))
        return out

    def rms_norm(self, x: Buffer, weight: StoredTensor, eps: float) -> Buffer:
        group = weight.shape[0]
        assert x.width % group == 0, (weight.name, weight.shape, x.width)
        out = self.buffer(x.width, x.multiple)
        self.ops.append(ops.RmsNorm(out, x, self.weight(weight), group, eps))
        return out

    def rope(
        self, x: Buffer, turns: Buffer, first_column: int, heads: int, pairs: RopePairs
    ) -> None:
        head_dim = turns.width
        assert first_column + heads * head_dim <= x.width and x.multiple == turns.multiple
        self.ops.append(ops.Rope(x, turns, first_column, heads, head_dim, pairs))

    def cache_write(
        self,
        keys: tuple[Buffer, int],
        values: tuple[Buffer, int],
        cache: int,
        positions: Buffer,
        streams: Buffer,
    ) -> None:
        """`keys` and `values`: a buffer and the column where they start; the two may share one."""
        assert keys[0].multiple == values[0].multiple == positions.multiple == streams.multiple
        self.ops.append(ops.CacheWrite(*keys, *values, cache, positions, streams))

    def attention(
        self,
        q: Buffer,
        cache: int,
        positions: Buffer,
        streams: Buffer,
        shape: tuple[int, int],
        window: int,
    ) -> Buffer:
        """`shape`: heads, head_dim; the queries are the first columns of q."""
        heads, head_dim = shape
        out = self.buffer(heads * head_dim, q.multiple)
        self.ops.append(
            ops.Attention(
                out, q, 0, cache, positions, streams, heads, head_dim, window, head_dim**-0.5
            )
        )
        return out

    def gelu(self, x: Buffer, kind: GeluKind) -> Buffer:
        out = self.buffer(x.width, x.multiple)
        self.ops.append(ops.Gelu(out, x, kind))
        return out

    def silu_gate(self, gate: Buffer, up: Buffer) -> Buffer:
        assert gate.width == up.width and gate.multiple == up.multiple
        out = self.buffer(gate.width, gate.multiple)
        self.ops.append(ops.SiluGate(out, gate, up))
        return out

    def add(
        self, a: Buffer, b: Buffer, scale: StoredTensor | None = None, factor: float = 1.0
    ) -> Buffer:
        assert a.width == b.width and a.multiple == b.multiple
        assert scale is None or scale.shape == (a.width,), scale.name
        out = self.buffer(a.width, a.multiple)
        vector = None if scale is None else self.weight(scale)
        self.ops.append(ops.Add(out, a, b, vector, factor))
        return out

    def patch_up(self, x: Buffer, patch: int) -> Buffer:
        assert x.width % patch == 0, (x.width, patch)
        out = self.buffer(x.width // patch, x.multiple * patch)
        self.ops.append(ops.PatchUp(out, x, patch))
        return out

    def patch_down(self, x: Buffer, patch: int) -> Buffer:
        assert x.multiple % patch == 0, (x.multiple, patch)
        out = self.buffer(x.width * patch, x.multiple // patch)
        self.ops.append(ops.PatchDown(out, x, patch))
        return out

    def argmax(self, out: Buffer, column: int, x: Buffer) -> None:
        assert out.is_int and column < out.width
        self.ops.append(ops.Argmax(out, column, x))

    def sample(
        self,
        out: Buffer,
        column: int,
        logits: Buffer,
        inputs: tuple[Buffer, Buffer, Buffer],
        seen: int = -1,
    ) -> None:
        """`inputs`: sampling parameters, uniforms, streams."""
        assert out.is_int and column < out.width
        self.ops.append(ops.Sample(out, column, logits, *inputs, seen))

    def storage_plan(self) -> list[int]:
        """For each buffer, the number of the block of memory that it may use.

        Buffers that are not inputs, outputs or ints, and are never alive together, share memory
        where their sizes agree: the layers of a model work in the same few blocks.
        """
        kept = {b.index for b in (*self.inputs.values(), *self.outputs.values())}
        kept.update(b.index for b in self.buffers if b.is_int)
        last_use: dict[int, int] = {}
        for at, op in enumerate(self.ops):
            for buffer in _buffers_of(op):
                last_use[buffer.index] = at
        plan: dict[int, int] = {}
        free: dict[tuple[int, int], list[int]] = {}
        for at, op in enumerate(self.ops):
            used = [b for b in _buffers_of(op) if b.index not in kept]
            for buffer in used:
                if buffer.index not in plan:
                    spare = free.get((buffer.width, buffer.multiple))
                    plan[buffer.index] = spare.pop() if spare else buffer.index
            for buffer in {b.index: b for b in used}.values():
                if last_use[buffer.index] == at:
                    size = (buffer.width, buffer.multiple)
                    free.setdefault(size, []).append(plan[buffer.index])
        return [plan.get(b.index, b.index) for b in self.buffers]


def _buffers_of(op: Op) -> list[Buffer]:
    values = (getattr(op, item.name) for item in fields(op))
    return [value for value in values if isinstance(value, Buffer)]
