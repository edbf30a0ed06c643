"""A broken engine must not pass, and the checks that fail say which part is broken."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from reference_dumps import (
    RECORDED,
    RECORDED_CODEC,
    RECORDED_MODEL,
    checkpoint_folder,
    golden_dump,
)

from mosstalk.codec.moss_audio_tokenizer import codec as codec_module
from mosstalk.codec.moss_audio_tokenizer import quantizer, stages
from mosstalk.codec.moss_audio_tokenizer.codec import Decoder, Encoder
from mosstalk.codec.moss_audio_tokenizer.config import CodecConfig, Stage
from mosstalk.compute.ops import Attention, Buffer, GeluKind, RopePairs
from mosstalk.compute.program import Program
from mosstalk.compute.state import State
from mosstalk.models.moss_tts_nano import frame_decoder, global_transformer, transformer
from mosstalk.models.moss_tts_nano.frame_decoder import FrameDecoder
from mosstalk.models.moss_tts_nano.global_transformer import GlobalTransformer
from mosstalk.models.moss_tts_nano.prompt import PromptBuilder
from mosstalk.nn import attention
from mosstalk.parity.opening import ModelChoice
from mosstalk.parity.reference.dump_file import write_dump_file
from mosstalk.parity.reference.run import run_reference

Patch = pytest.MonkeyPatch
Fault = Callable[[Patch], None]
Names = set[str]

HIDDEN, GREEDY = "hidden: random rows", "greedy: random rows"
TO_AUDIO, TO_CODES = "codec: codes to audio", "codec: audio to codes"
MODEL, CODEC = {HIDDEN, GREEDY}, {TO_AUDIO, TO_CODES}

_run = GlobalTransformer.run
_decode = Decoder.decode
_encode = Encoder.encode
_turns = attention.turns


def rope_pairs_swapped(patch: Patch) -> None:
    swapped = SimpleNamespace(INTERLEAVED=RopePairs.HALVES)
    patch.setattr(attention, "RopePairs", swapped)


def rope_base_of_another_model(patch: Patch) -> None:
    frequencies = global_transformer.inverse_frequencies
    for module in (global_transformer, frame_decoder):
        patch.setattr(module, "inverse_frequencies", lambda dim, base: frequencies(dim, 1e6))


def norm_eps(value: float) -> Fault:
    def fault(patch: Patch) -> None:
        norm = Program.layer_norm
        patch.setattr(
            Program,
            "layer_norm",
            lambda self, x, weight, bias, eps: norm(self, x, weight, bias, value),
        )

    fault.__name__ = f"norm_eps_{value:g}"
    return fault


def norm_eps_in_the_local_transformer(patch: Patch) -> None:
    record = transformer.record_stack

    def other(program: Program, x: Buffer, stack: Any, config: Any, *args: Any) -> Buffer:
        return record(program, x, stack, replace(config, layer_norm_epsilon=1e-6), *args)

    patch.setattr(frame_decoder, "record_stack", other)


def gelu_of_the_codec_in_the_model(patch: Patch) -> None:
    patch.setattr(transformer, "GeluKind", SimpleNamespace(TANH=GeluKind.ERF))


def gelu_of_the_model_in_the_codec(patch: Patch) -> None:
    patch.setattr(stages, "GeluKind", SimpleNamespace(ERF=GeluKind.TANH))


def attention_scaled_otherwise(patch: Patch) -> None:
    attend = Program.attention

    def scaled(self: Program, *args: Any) -> Buffer:
        out = attend(self, *args)
        op = self.ops[-1]
        assert isinstance(op, Attention)
        self.ops[-1] = replace(op, scale=1.0 / op.head_dim)
        return out

    patch.setattr(Program, "attention", scaled)


def model_sees_the_last_rows_only(patch: Patch) -> None:
    patch.setattr(transformer, "Heads", lambda heads, dim: attention.Heads(heads, dim, 32))


def position_off_by_one_in_steps(patch: Patch) -> None:
    place = FrameDecoder.run

    def late(self: FrameDecoder, state: State, *args: Any) -> Any:
        rows = self._global_rows
        original = type(rows).place

        def shifted(rows_: Any, program: Any, positions: NDArray[np.int32], *rest: Any) -> None:
            original(rows_, program, positions, *rest)
            program.array(rows_.turns)[: len(positions)] = _turns(positions + 1, rest[-1])

        with pytest.MonkeyPatch.context() as inner:
            inner.setattr(type(rows), "place", shifted)
            return place(self, state, *args)

    patch.setattr(FrameDecoder, "run", late)


def position_off_by_one_in_the_prompt(patch: Patch) -> None:
    """The second half of a call's rows stands one place too far."""

    def place(self: attention.Rows, program: Any, positions: Any, streams: Any, f: Any) -> None:
        _place(self, program, positions, streams, f)
        late = positions + (np.arange(len(positions)) >= len(positions) // 2)
        program.array(self.turns)[: len(positions)] = _turns(late, f)

    _place = attention.Rows.place
    run = GlobalTransformer.run

    def shifted(self: GlobalTransformer, *args: Any, **kwargs: Any) -> Any:
        with pytest.MonkeyPatch.context() as inner:
            inner.setattr(attention.Rows, "place", place)
            return run(self, *args, **kwargs)

    patch.setattr(GlobalTransformer, "run", shifted)


def slot_off_by_one(patch: Patch) -> None:
    """The local transformer's last slot stands one position too far."""
    fill = FrameDecoder._fill_constants

    def late(self: FrameDecoder, weights: Any) -> None:
        fill(self, weights)
        rows = self._local_rows[-1]
        position = np.array([self.num_codebooks + 1], np.int32)
        self.program.array(rows.turns)[:1] = _turns(position, self._frequencies)

    patch.setattr(FrameDecoder, "_fill_constants", late)


def pads_are_codes(patch: Patch) -> None:
    """audio_pad_token_id adds the embedding of a code."""

    def run(self: GlobalTransformer, state: State, rows: NDArray[np.int32], *args: Any) -> Any:
        filled = rows.copy()
        filled[:, 1:] = np.minimum(filled[:, 1:], self._last_code)
        return _run(self, state, filled, *args)

    init = GlobalTransformer.__init__

    def noted(self: Any, config: Any, *args: Any) -> None:
        init(self, config, *args)
        self._last_code = config.audio_codebook_sizes[0] - 1

    patch.setattr(GlobalTransformer, "__init__", noted)
    patch.setattr(GlobalTransformer, "run", run)


def a_codebook_is_not_embedded(patch: Patch) -> None:
    def run(self: GlobalTransformer, state: State, rows: NDArray[np.int32], *args: Any) -> Any:
        cut = rows.copy()
        cut[:, -1] = -1
        return _run(self, state, cut, *args)

    patch.setattr(GlobalTransformer, "run", run)


def gate_reversed(patch: Patch) -> None:
    patch.setattr(frame_decoder, "CONTINUE", frame_decoder.STOP)


def heads_in_another_order(patch: Patch) -> None:
    record = FrameDecoder._record

    def rolled(self: FrameDecoder, program: Program, weights: Any) -> None:
        tables = weights.audio_embeddings
        record(self, program, replace(weights, audio_embeddings=(*tables[1:], tables[0])))

    patch.setattr(FrameDecoder, "_record", rolled)


def hidden_times(factor: float) -> Fault:
    def fault(patch: Patch) -> None:
        scaled = np.float32(factor)
        patch.setattr(GlobalTransformer, "run", lambda *a, **k: _run(*a, **k) * scaled)

    fault.__name__ = f"hidden_times_{factor:g}"
    return fault


def hidden_is_constant(patch: Patch) -> None:
    patch.setattr(GlobalTransformer, "run", lambda *a, **k: np.ones_like(_run(*a, **k)))


def model_breaks_down(patch: Patch) -> None:
    def run(*args: Any, **kwargs: Any) -> Any:
        raise MemoryError("no room")

    patch.setattr(GlobalTransformer, "run", run)


def _with_windows(config: CodecConfig, factor: float) -> CodecConfig:
    def changed(modules: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(
            replace(m, window=round(m.window * factor)) if isinstance(m, Stage) else m
            for m in modules
        )

    return replace(config, encoder=changed(config.encoder), decoder=changed(config.decoder))


def windows_times(factor: float) -> Fault:
    def fault(patch: Patch) -> None:
        parse = codec_module.parse_config
        patch.setattr(
            codec_module, "parse_config", lambda values: _with_windows(parse(values), factor)
        )

    fault.__name__ = f"windows_times_{factor:g}"
    return fault


def channels_swapped(patch: Patch) -> None:
    patch.setattr(Decoder, "decode", lambda *args: _decode(*args)[::-1])


def one_sample_late(patch: Patch) -> None:
    patch.setattr(Decoder, "decode", lambda *args: np.roll(_decode(*args), 1, axis=1))


def last_codebook_left_out(patch: Patch) -> None:
    patch.setattr(Decoder, "decode", lambda self, state, codes: _decode(self, state, codes[:, :-1]))


def audio_is(value: float) -> Fault:
    def fault(patch: Patch) -> None:
        filled = np.float32(value)
        patch.setattr(Decoder, "decode", lambda *args: np.full_like(_decode(*args), filled))

    fault.__name__ = f"audio_is_{value:g}"
    return fault


def directions_not_normalised(patch: Patch) -> None:
    record = quantizer.record_encode

    def unequal(program: Program, x: Buffer, codes: Buffer, encoder: Any, codebooks: Any) -> None:
        searches = tuple(
            replace(search, directions=book.codebook)
            for search, book in zip(encoder.searches, codebooks, strict=True)
        )
        record(program, x, codes, replace(encoder, searches=searches), codebooks)

    patch.setattr(codec_module, "record_encode", unequal)


def residual_not_taken(patch: Patch) -> None:
    add = Program.add

    def kept(self: Program, a: Buffer, b: Buffer, scale: Any = None, factor: float = 1.0) -> Buffer:
        return add(self, a, b, scale, 0.0 if factor < 0 else factor)

    patch.setattr(Program, "add", kept)


def partial_frame_kept(patch: Patch) -> None:
    def encode(self: Encoder, samples: NDArray[np.float32]) -> Any:
        missing = -samples.shape[1] % self._config.frame_len
        return _encode(self, np.pad(samples, ((0, 0), (0, missing))))

    patch.setattr(Encoder, "encode", encode)


FAULTS: list[tuple[Fault, Names]] = [
    (rope_pairs_swapped, MODEL | CODEC),
    (rope_base_of_another_model, MODEL),
    (norm_eps(1e-3), MODEL | CODEC),
    (norm_eps(1e-6), {HIDDEN}),
    (norm_eps_in_the_local_transformer, {GREEDY}),
    (gelu_of_the_codec_in_the_model, MODEL),
    (gelu_of_the_model_in_the_codec, {TO_AUDIO}),
    (attention_scaled_otherwise, MODEL | CODEC),
    (model_sees_the_last_rows_only, MODEL),
    (position_off_by_one_in_steps, {GREEDY}),
    (position_off_by_one_in_the_prompt, MODEL),
    (slot_off_by_one, {GREEDY}),
    (pads_are_codes, MODEL),
    (a_codebook_is_not_embedded, MODEL),
    (gate_reversed, {GREEDY}),
    (heads_in_another_order, {GREEDY}),
    (hidden_times(1.0001), {HIDDEN}),
    (hidden_times(0.0), MODEL),
    (hidden_times(np.nan), MODEL),
    (hidden_is_constant, MODEL),
    (model_breaks_down, MODEL),
    (windows_times(0.5), {TO_AUDIO}),
    (windows_times(2.0), {TO_AUDIO}),
    (channels_swapped, {TO_AUDIO}),
    (one_sample_late, {TO_AUDIO}),
    (last_codebook_left_out, {TO_AUDIO}),
    (audio_is(0.0), {TO_AUDIO}),
    (audio_is(np.nan), {TO_AUDIO}),
    (directions_not_normalised, {TO_CODES}),
    (residual_not_taken, {TO_CODES}),
    (partial_frame_kept, {TO_CODES}),
]


@pytest.mark.parametrize(
    ("fault", "parts"), FAULTS, ids=lambda value: getattr(value, "__name__", "")
)
def test_each_fault_is_found_and_placed(
    golden_dir: Path, monkeypatch: Patch, fault: Fault, parts: Names
) -> None:
    model = checkpoint_folder(golden_dir, RECORDED_MODEL)
    codec = checkpoint_folder(golden_dir, RECORDED_CODEC)
    fault(monkeypatch)
    report = run_reference(ModelChoice(str(model), str(codec), threads=1).open(), RECORDED)
    failed = {result.name for result in report.results if not result.passed}
    assert failed >= parts, report.as_text()
    for whole in (MODEL, CODEC):  # a part that is sound is not blamed
        assert parts & whole or not failed & whole, report.as_text()
    assert all(result.problem for result in report.results if not result.passed)


def test_a_fault_of_prompts_is_found_and_placed(
    golden_dir: Path, monkeypatch: Patch, tmp_path: Path
) -> None:
    model = checkpoint_folder(golden_dir, "nano_c")
    path = tmp_path / "dump.npz"
    write_dump_file(path, golden_dump(golden_dir, "nano_c", codec=False).as_file())
    clone = PromptBuilder.clone
    monkeypatch.setattr(PromptBuilder, "clone", lambda self, t, codes: clone(self, " .", codes))
    report = run_reference(ModelChoice(str(model)).open(), path)
    failed = [result for result in report.results if not result.passed]
    assert [result.name for result in failed] == ["prompt ids"]
    assert failed[0].problem.startswith("clone: ids of shape")


def test_a_model_without_tokeniser_fails_prompts_that_it_has_to_build(
    golden_dir: Path, tmp_path: Path
) -> None:
    model = checkpoint_folder(golden_dir, "nano_c")
    path = tmp_path / "dump.npz"
    write_dump_file(path, golden_dump(golden_dir, "nano_c", codec=False).as_file())
    bare = tmp_path / "bare"
    bare.mkdir()
    for name in ("config.json", "model.safetensors"):
        (bare / name).write_bytes((model / name).read_bytes())
    report = run_reference(ModelChoice(str(bare)).open(), path)
    failed = [result for result in report.results if not result.passed]
    assert [(result.name, result.problem) for result in failed] == [
        ("prompt ids", "the model has no tokenizer.model")
    ]
