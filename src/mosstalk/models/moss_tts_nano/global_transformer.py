"""The global transformer: rows of one text id and n_vq codes in, hidden vectors out."""

import numpy as np
from numpy.typing import NDArray

from mosstalk.compute.backend import Backend
from mosstalk.compute.ops import Buffer
from mosstalk.compute.program import Program
from mosstalk.compute.state import CacheSpec, State, StateSpec
from mosstalk.models.moss_tts_nano.config import NanoConfig
from mosstalk.models.moss_tts_nano.transformer import record_stack
from mosstalk.models.moss_tts_nano.weights import NanoWeights
from mosstalk.nn.attention import Rows
from mosstalk.nn.rope import inverse_frequencies

MAX_ROWS = 128  # of one call; longer prompts take several


def state_spec(config: NanoConfig) -> StateSpec:
    """Caches of the global blocks, then of the local ones; a set of seen ids for each codebook."""
    each = CacheSpec(config.n_head, config.head_dim)
    local = CacheSpec(config.n_head, config.head_dim, fixed_len=config.n_vq + 1)
    caches = (each,) * config.n_layer + (local,) * config.local_transformer_layers
    return StateSpec(caches, config.audio_codebook_sizes, MAX_ROWS)


def record_global(
    program: Program,
    ids: Buffer,
    config: NanoConfig,
    weights: NanoWeights,
    taps: str | None = None,
) -> tuple[Buffer, Rows]:
    """Row embedding (spec 3.1), all blocks and ln_f: [rows, hidden]."""
    rows = Rows.record(program, "global", config.head_dim)
    # A code outside its table, such as audio_pad_token_id, adds nothing.
    x = program.embed(ids, 0, [weights.wte, *weights.audio_embeddings])
    return record_stack(program, x, weights.global_stack, config, 0, rows, taps), rows


class GlobalTransformer:
    """Computes hidden vectors of new rows and adds their K/V to a state."""

    def __init__(
        self, config: NanoConfig, weights: NanoWeights, backend: Backend, taps: bool = False
    ) -> None:
        program = Program(MAX_ROWS)
        self._ids = program.input("ids", 1 + config.n_vq, is_int=True)
        hidden, self._rows = record_global(
            program, self._ids, config, weights, "hidden" if taps else None
        )
        self._hidden = program.output("global_hidden", hidden)
        self._frequencies = inverse_frequencies(config.head_dim, config.rope_base)
        self.outputs = program.outputs
        self.program = backend.build(program)

    def run(
        self, state: State, rows: NDArray[np.int32], calls_of: int = MAX_ROWS, stream: int = 0
    ) -> NDArray[np.float32]:
        """Append `rows` [n, 1 + n_vq] to the stream, `calls_of` at a time: hidden [n, hidden].

        Raises ValueError where the state has no room for them.
        """
        state.check_room(len(rows), stream)
        hidden = []
        for start in range(0, len(rows), calls_of):
            part = rows[start : start + calls_of]
            first = state.lengths[stream]
            positions = np.arange(first, first + len(part), dtype=np.int32)
            self._rows.place(self.program, positions, stream, self._frequencies)
            self.program.array(self._ids)[: len(part)] = part
            self.program.run(len(part), state)
            state.lengths[stream] += len(part)
            hidden.append(self.program.array(self._hidden)[: len(part)].copy())
        return np.concatenate(hidden)
