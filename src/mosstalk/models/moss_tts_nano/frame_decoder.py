"""One frame in one program run: local transformer, sampling, then the next global step.

The local transformer sees 1 + n_vq positions (spec nano.md 3.3). Position 0 is the hidden vector
of the last global row and decides between continue and stop; position 1 is the embedding of
"continue", known beforehand, so the two are computed together. The codes drawn become the next
global row, whose hidden vector starts the next frame. After a stop the rest is not used.

A run takes a row of each of several streams: the weights are read once for all of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mosstalk.checkpoint.storage import StorageType, StoredTensor
from mosstalk.compute.backend import Backend, RunnableProgram
from mosstalk.compute.ops import Buffer
from mosstalk.compute.program import Program
from mosstalk.compute.sampling import NUM_PARAMS, SamplingParams, uniforms
from mosstalk.compute.state import State
from mosstalk.models.moss_tts_nano.config import NanoConfig
from mosstalk.models.moss_tts_nano.global_transformer import record_global
from mosstalk.models.moss_tts_nano.transformer import record_stack
from mosstalk.models.moss_tts_nano.weights import NanoWeights
from mosstalk.nn.attention import Rows
from mosstalk.nn.rope import inverse_frequencies

CONTINUE, STOP = 0, 1  # order of the gate's candidates


@dataclass(frozen=True, slots=True)
class FrameSampling:
    """How the gate and the codes of a generation are drawn."""

    text: SamplingParams
    audio: SamplingParams
    seed: int
    chunk: int = 0


@dataclass(frozen=True, slots=True)
class FrameRow:
    """What a stream brings to a run.

    Attributes:
        stream: of the state.
        hidden: float32 [hidden] of its last row.
        frame: number of the frame to be drawn, from 0.
    """

    stream: int
    hidden: NDArray[np.float32]
    frame: int
    sampling: FrameSampling


# Whether to go on, the codes [n_vq], and the hidden vector [hidden] of the row they make.
DrawnFrame = tuple[bool, NDArray[np.int32], NDArray[np.float32]]


class FrameDecoder:
    """Decodes frames of `num_codebooks` active codebooks; the others stay at audio_pad_token_id.

    `max_rows`: streams that a run can take.
    """

    def __init__(
        self,
        config: NanoConfig,
        weights: NanoWeights,
        backend: Backend,
        num_codebooks: int,
        max_rows: int = 1,
    ) -> None:
        self.config = config
        self.num_codebooks = num_codebooks
        self.max_rows = max_rows
        program = Program(max_rows)
        self._record(program, weights)
        self.program: RunnableProgram = backend.build(program)
        self._frequencies = inverse_frequencies(config.head_dim, config.rope_base)
        self._fill_constants(weights)

    def run(
        self,
        state: State,
        hidden: NDArray[np.float32],
        frame: int,
        sampling: FrameSampling,
        stream: int = 0,
    ) -> DrawnFrame:
        """A frame of one stream; see FrameRow and `run_rows`."""
        return self.run_rows(state, [FrameRow(stream, hidden, frame, sampling)])[0]

    def run_rows(self, state: State, rows: Sequence[FrameRow]) -> list[DrawnFrame]:
        """A frame for each of up to `max_rows` streams, which are all different.

        On "continue" the new row is in the state's caches; its owner counts it. Raises ValueError
        where the state has no room for it.
        """
        count, array = len(rows), self.program.array
        streams = np.array([row.stream for row in rows], np.int32)
        for r, row in enumerate(rows):
            state.check_room(1, row.stream)
            array(self._local_inputs)[2 * r] = row.hidden
            array(self._text_params)[r] = row.sampling.text.row()
            array(self._audio_params)[r] = row.sampling.audio.row()
            seed, chunk = row.sampling.seed, row.sampling.chunk
            array(self._uniforms)[r] = uniforms(seed, chunk, row.frame, 1 + self.config.n_vq)
        positions = np.array([state.lengths[stream] for stream in streams], np.int32)
        self._global_rows.place(self.program, positions, streams, self._frequencies)
        for local in self._local_rows:
            per_row = local.streams.multiple
            array(local.streams)[: count * per_row, 0] = np.repeat(streams, per_row)
        self.program.run(count, state)
        gates, codes = array(self._gate)[:count, 0], array(self._row)[:count, 1:].copy()
        hidden = array(self._hidden)[:count].copy()
        return [(int(gates[r]) == CONTINUE, codes[r], hidden[r]) for r in range(count)]

    def local_hidden(self) -> list[NDArray[np.float32]]:
        """Output of the local ln_f at each position of the last frame, for checks."""
        return [self.program.array(buffer)[0].copy() for buffer in self._local_hidden]

    def _record(self, program: Program, weights: NanoWeights) -> None:
        config, hidden = self.config, self.config.hidden_size
        self._row = program.input("row", 1 + config.n_vq, is_int=True)
        self._gate = program.input("gate", 1, is_int=True)
        self._uniforms = program.input("uniforms", 1 + config.n_vq)
        self._text_params = program.input("text_params", NUM_PARAMS)
        self._audio_params = program.input("audio_params", NUM_PARAMS)
        self._local_inputs = program.input("local_inputs", hidden, 2)
        self._pair_index = [program.input(f"pair.{i}", 1, is_int=True) for i in range(2)]
        self._local_rows = [Rows.record(program, "local.0", config.head_dim, 2)]
        pair = self._record_local(program, self._local_inputs, weights, self._local_rows[0])
        gate, x = (program.gather(pair, index) for index in self._pair_index)
        streams = program.input("global.streams", 1, is_int=True)
        logits = program.linear(gate, _gate_head(weights.wte, config))
        program.sample(self._gate, 0, logits, (self._text_params, self._uniforms, streams))
        self._local_hidden = [program.output("local_hidden.0", gate)]
        for q in range(self.num_codebooks):
            if q:
                embedded = program.embed(self._row, q, [weights.audio_embeddings[q - 1]])
                self._local_rows.append(Rows.record(program, f"local.{q}", config.head_dim))
                x = self._record_local(program, embedded, weights, self._local_rows[-1])
            self._local_hidden.append(program.output(f"local_hidden.{q + 1}", x))
            logits = program.output(f"logits.{q}", program.linear(x, weights.audio_embeddings[q]))
            inputs = (self._audio_params, self._uniforms, streams)
            program.sample(self._row, 1 + q, logits, inputs, seen=q)
        hidden_out, self._global_rows = record_global(program, self._row, config, weights)
        self._hidden = program.output("hidden", hidden_out)
        self.outputs = program.outputs

    def _record_local(
        self, program: Program, x: Buffer, weights: NanoWeights, rows: Rows
    ) -> Buffer:
        first_cache = self.config.n_layer
        return record_stack(program, x, weights.local_stack, self.config, first_cache, rows)

    def _fill_constants(self, weights: NanoWeights) -> None:
        """Inputs that never change: local positions, the row's fixed ids, position 1's vector."""
        config, array = self.config, self.program.array
        array(self._row)[:, 0] = config.audio_assistant_slot_token_id
        array(self._row)[:, 1:] = config.audio_pad_token_id
        slot = config.audio_assistant_slot_token_id
        array(self._local_inputs)[1::2] = _row_of(weights.wte, slot)
        for i, index in enumerate(self._pair_index):
            array(index)[:, 0] = np.arange(i, 2 * self.max_rows, 2)
        for q, rows in enumerate(self._local_rows):
            positions = np.array([0, 1] if q == 0 else [q + 1], np.int32)
            rows.place(self.program, np.tile(positions, self.max_rows), 0, self._frequencies)


def _row_of(table: StoredTensor, row: int) -> NDArray[np.float32]:
    """One row of a packed matrix as float32."""
    cut = StoredTensor(table.name, (1, table.shape[1]), table.storage, table.data[row : row + 1])
    values: NDArray[np.float32] = cut.to_float32()[0]
    return values


def _gate_head(wte: StoredTensor, config: NanoConfig) -> StoredTensor:
    """The rows of the text embedding that decide between CONTINUE and STOP (spec 3.4)."""
    ids = (config.audio_assistant_slot_token_id, config.audio_end_token_id)
    rows = np.stack([_row_of(wte, i) for i in ids])
    return StoredTensor("gate", rows.shape, StorageType.F32, rows)
