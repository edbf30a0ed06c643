"""The Qwen3 backbone: rows of one text id and n_vq codes in, hidden vectors out (spec 3.1, 3.2)."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mosstalk.compute.backend import Backend
from mosstalk.compute.ops import Buffer, RopePairs
from mosstalk.compute.program import Program
from mosstalk.compute.state import CacheSpec, State, StateSpec
from mosstalk.errors import CheckpointError
from mosstalk.models.moss_tts_delay.config import DelayConfig
from mosstalk.models.moss_tts_delay.weights import BlockWeights, DelayWeights
from mosstalk.nn.attention import Rows
from mosstalk.nn.rope import inverse_frequencies

MAX_ROWS = 128  # of one call; longer prompts take several


def state_spec(config: DelayConfig) -> StateSpec:
    """One cache for each block."""
    each = CacheSpec(config.num_key_value_heads, config.head_dim)
    return StateSpec((each,) * config.num_hidden_layers, max_rows=MAX_ROWS)


class Backbone:
    """Computes hidden vectors of new rows and adds their K/V to a state.

    `taps` records outputs `hidden.0` (the row embedding) and `hidden.i` (after block i).
    """

    def __init__(
        self, config: DelayConfig, weights: DelayWeights, backend: Backend, *, taps: bool = False
    ) -> None:
        self._config, self._weights, self._backend = config, weights, backend
        program = Program(MAX_ROWS)
        self._ids = program.input("ids", 1 + config.n_vq, is_int=True)
        self._rows = Rows.record(program, "backbone", config.head_dim)
        x = program.embed(self._ids, 0, [weights.embed_tokens, *weights.emb_ext])
        if taps:
            program.output("hidden.0", x)
        for i, block in enumerate(weights.blocks):
            x = _record_block(program, x, block, config, i, self._rows)
            if taps:
                program.output(f"hidden.{i + 1}", x)
        x = program.rms_norm(x, weights.norm, config.rms_norm_eps)
        self._hidden = program.output("last_hidden", x)
        self._frequencies = inverse_frequencies(config.head_dim, config.rope_theta)
        self.outputs = program.outputs
        self.program = backend.build(program)

    def run(
        self, state: State, rows: NDArray[np.int32], calls_of: int = MAX_ROWS, stream: int = 0
    ) -> NDArray[np.float32]:
        """Append `rows` [n, 1 + n_vq] to the stream, `calls_of` at a time: hidden [n, hidden].

        The hidden vectors are those after the final norm. Raises ValueError where the state has
        no room for the rows, and CheckpointError that names row and layer where a hidden vector
        is not finite.
        """
        state.check_room(len(rows), stream)
        hidden = []
        for start in range(0, len(rows), calls_of):
            part = rows[start : start + calls_of]
            found = self._call(state, part, stream)
            if not np.isfinite(found).all():
                raise self._fault(state, part, stream)
            state.lengths[stream] += len(part)
            hidden.append(found)
        return np.concatenate(hidden)

    def run_streams(
        self, state: State, rows: NDArray[np.int32], streams: Sequence[int]
    ) -> list[NDArray[np.float32] | CheckpointError]:
        """Append one of `rows` [n, 1 + n_vq] to each of n different streams in one call.

        Gives each row's hidden vector [hidden], or the error that `run` would raise for it: then
        the row is not appended.
        """
        for stream in streams:
            state.check_room(1, stream)
        positions = np.array([state.lengths[stream] for stream in streams], np.int32)
        found: list[NDArray[np.float32] | CheckpointError] = []
        hidden = self._compute(state, rows, positions, np.array(streams, np.int32))
        for vector, row, stream in zip(hidden, rows, streams, strict=True):
            if np.isfinite(vector).all():
                state.lengths[stream] += 1
                found.append(vector)
            else:
                found.append(self._fault(state, row[None], stream))
        return found

    def _call(self, state: State, rows: NDArray[np.int32], stream: int) -> NDArray[np.float32]:
        """One run of the program; the rows are not counted as cached."""
        first = state.lengths[stream]
        positions = np.arange(first, first + len(rows), dtype=np.int32)
        return self._compute(state, rows, positions, stream)

    def _compute(
        self,
        state: State,
        rows: NDArray[np.int32],
        positions: NDArray[np.int32],
        streams: NDArray[np.int32] | int,
    ) -> NDArray[np.float32]:
        count = len(rows)
        self._rows.place(self.program, positions, streams, self._frequencies)
        self.program.array(self._ids)[:count] = rows
        self.program.run(count, state)
        return self.program.array(self._hidden)[:count].copy()

    def _fault(self, state: State, rows: NDArray[np.int32], stream: int) -> CheckpointError:
        """Computes a call again, block by block: the first that spoils a row, and which row."""
        tapped = Backbone(self._config, self._weights, self._backend, taps=True)
        tapped._call(state, rows, stream)
        looked_at = (
            (name, np.isfinite(tapped.program.array(output)[: len(rows)]).all(axis=1))
            for name, output in tapped.outputs.items()
        )
        name, is_finite = next(found for found in looked_at if not found[1].all())
        row = state.lengths[stream] + int(is_finite.argmin())
        return CheckpointError(
            f"row {row} becomes infinite or no number in {_place(name)}; the weights are damaged, "
            "fetch them again"
        )


def _place(output: str) -> str:
    """How an error calls an output of a tapped backbone."""
    kind, _, number = output.partition(".")
    if kind == "last_hidden":
        return "the final norm"
    return f"layer {int(number) - 1}" if int(number) else "the embedding"


def _record_block(
    program: Program, x: Buffer, block: BlockWeights, config: DelayConfig, cache: int, rows: Rows
) -> Buffer:
    eps = config.rms_norm_eps
    normed = program.rms_norm(x, block.input_layernorm, eps)
    attended = _record_attention(program, normed, block, config, cache, rows)
    x = program.add(x, program.linear(attended, block.o_proj))
    normed = program.rms_norm(x, block.post_attention_layernorm, eps)
    gate, up = program.linear(normed, block.gate_proj), program.linear(normed, block.up_proj)
    return program.add(x, program.linear(program.silu_gate(gate, up), block.down_proj))


def _record_attention(
    program: Program, x: Buffer, block: BlockWeights, config: DelayConfig, cache: int, rows: Rows
) -> Buffer:
    """Causal attention whose queries and keys are normed head by head before they turn."""
    heads, eps = config.num_attention_heads, config.rms_norm_eps
    q = program.rms_norm(program.linear(x, block.q_proj), block.q_norm, eps)
    k = program.rms_norm(program.linear(x, block.k_proj), block.k_norm, eps)
    v = program.linear(x, block.v_proj)
    program.rope(q, rows.turns, 0, heads, RopePairs.HALVES)
    program.rope(k, rows.turns, 0, config.num_key_value_heads, RopePairs.HALVES)
    program.cache_write((k, 0), (v, 0), cache, rows.positions, rows.streams)
    shape = (heads, config.head_dim)
    return program.attention(q, cache, rows.positions, rows.streams, shape, window=0)
