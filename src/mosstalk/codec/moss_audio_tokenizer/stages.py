"""Transformer stages and patches of the codec (spec nano.md 5.1, 5.2; voicegen.md 6.2, 6.3)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mosstalk.codec.moss_audio_tokenizer.config import Module, Patch, Stage
from mosstalk.codec.moss_audio_tokenizer.weights import LayerWeights, StageWeights
from mosstalk.compute.backend import RunnableProgram
from mosstalk.compute.ops import Buffer, GeluKind
from mosstalk.compute.program import Program
from mosstalk.compute.state import CacheSpec, State, StateSpec
from mosstalk.nn.attention import Heads, Rows, self_attention
from mosstalk.nn.rope import inverse_frequencies

MAX_FRAMES = 16  # of one call; longer audio takes several
_NORM_EPS = 1e-5


def state_spec(modules: tuple[Module, ...]) -> StateSpec:
    """A windowed K/V cache for every layer of every stage."""
    caches = [
        CacheSpec(stage.num_heads, stage.d_model // stage.num_heads, stage.window, stage.multiple)
        for stage in modules
        if isinstance(stage, Stage)
        for _ in range(stage.num_layers)
    ]
    return StateSpec(tuple(caches), max_rows=MAX_FRAMES)


@dataclass(frozen=True, slots=True)
class Span:
    """Frames of one stream, beside those of others in a call."""

    stream: int
    num_frames: int


@dataclass(frozen=True, slots=True)
class StageRows:
    """Where the positions of a stage stand, to be filled before each call."""

    rows: Rows
    stage: Stage

    def place(
        self, program: RunnableProgram, spans: Sequence[Span], lengths: Sequence[int], dropped: int
    ) -> None:
        """Each stream goes on after the frames that it has seen, `lengths[stream]`.

        `dropped`: positions that are no longer in the caches, where the next one lies at 0.
        """
        multiple = self.stage.multiple
        streams = np.array([span.stream for span in spans], np.int32)
        firsts = [lengths[stream] * multiple for stream in streams]
        counts = [span.num_frames * multiple for span in spans]
        each = [first + np.arange(count) for first, count in zip(firsts, counts, strict=True)]
        positions = np.concatenate(each).astype(np.int32)
        head_dim = self.stage.d_model // self.stage.num_heads
        frequencies = inverse_frequencies(head_dim, self.stage.rope_base)
        self.rows.place(program, positions, np.repeat(streams, counts), frequencies)
        program.array(self.rows.positions)[: len(positions), 0] -= dropped


def record_modules(
    program: Program,
    x: Buffer,
    modules: tuple[Module, ...],
    weights: dict[int, StageWeights],
    *,
    folds: bool,
    taps: str | None = None,
) -> tuple[Buffer, list[StageRows]]:
    """Patches and stages in order; `folds` for the encoder. Caches are numbered in order.

    `taps` names an output `{taps}.{i}` after module i, for tests.
    """
    placed: list[StageRows] = []
    cache = 0
    for i, module in enumerate(modules):
        if isinstance(module, Patch):
            x = program.patch_down(x, module.size) if folds else program.patch_up(x, module.size)
        else:
            head_dim = module.d_model // module.num_heads
            rows = Rows.record(program, f"stage.{module.index}", head_dim, module.multiple)
            placed.append(StageRows(rows, module))
            x = _record_stage(program, x, module, weights[module.index], cache, rows)
            cache += module.num_layers
        if taps is not None:
            program.output(f"{taps}.{i}", x)
    return x, placed


def run_frames(
    program: RunnableProgram,
    state: State,
    placed: list[StageRows],
    num_frames: int,
    dropped: Sequence[int] | None = None,
) -> None:
    """One call of `num_frames` frames that follow those the state's first stream has seen.

    `dropped`: for each stage the positions that `drop_as_rings` has dropped; none by default.
    Raises ValueError where the state was made for fewer frames.
    """
    run_spans(program, state, placed, [Span(0, num_frames)], dropped)


def run_spans(
    program: RunnableProgram,
    state: State,
    placed: list[StageRows],
    spans: Sequence[Span],
    dropped: Sequence[int] | None = None,
) -> None:
    """`run_frames` for frames of several different streams, one after another in the buffers."""
    for span in spans:
        state.check_room(span.num_frames, span.stream)
    for stage, count in zip(placed, dropped or [0] * len(placed), strict=True):
        stage.place(program, spans, state.lengths, count)
    program.run(sum(span.num_frames for span in spans), state)
    for span in spans:
        state.lengths[span.stream] += span.num_frames


def _record_stage(
    program: Program, x: Buffer, stage: Stage, weights: StageWeights, cache: int, rows: Rows
) -> Buffer:
    if weights.input_proj is not None:
        x = program.linear(x, weights.input_proj)
    for j, layer in enumerate(weights.layers):
        x = _record_layer(program, x, stage, layer, cache + j, rows)
    return x if weights.output_proj is None else program.linear(x, weights.output_proj)


def _record_layer(
    program: Program, x: Buffer, stage: Stage, layer: LayerWeights, cache: int, rows: Rows
) -> Buffer:
    heads = Heads(stage.num_heads, stage.d_model // stage.num_heads, stage.window)
    normed = program.layer_norm(x, *layer.norm1, _NORM_EPS)
    attended = self_attention(program, normed, (layer.in_proj, None), heads, cache, rows)
    x = program.add(x, program.linear(attended, layer.out_proj), layer.scale_1)
    normed = program.layer_norm(x, *layer.norm2, _NORM_EPS)
    inner = program.gelu(program.linear(normed, layer.ffn_in), GeluKind.ERF)
    return program.add(x, program.linear(inner, layer.ffn_out), layer.scale_2)
