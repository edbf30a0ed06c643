"""A broken codec must not pass: each fault, and the check that is there for it."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from random_codecs import small_config, write_codec

from mosstalk.codec.moss_audio_tokenizer import codec as codec_module
from mosstalk.codec.moss_audio_tokenizer import config as config_module
from mosstalk.codec.moss_audio_tokenizer.codec import Decoder, Encoder, MossAudioTokenizer
from mosstalk.compute.host_arrays import HostArrays
from mosstalk.compute.ops import RopePairs
from mosstalk.compute.program import Program
from mosstalk.compute.state import State
from mosstalk.nn.attention import Rows
from mosstalk.parity.codec.run import Options, run_codec
from mosstalk.parity.comparison import CheckResult
from mosstalk.parity.opening import ModelChoice
from mosstalk.parity.report import Report

Patch = pytest.MonkeyPatch
Codes = NDArray[np.int32]
Samples = NDArray[np.float32]

FRAMES = (20, 43, 171)
LATE = 150  # frame, between the last two lengths

_decode = Decoder.decode
_encode = Encoder.encode
_start = MossAudioTokenizer.start
_stage = config_module._stage


@pytest.fixture(scope="module")
def codec_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_codec(tmp_path_factory.mktemp("codecs") / "small", small_config())


def _windows(patch: Patch, change: Callable[[int], int]) -> None:
    def stage(*args: Any) -> config_module.Stage:
        made = _stage(*args)
        return replace(made, window=change(made.window))

    patch.setattr(config_module, "_stage", stage)


def windows_doubled(patch: Patch) -> None:
    _windows(patch, lambda window: 2 * window)


def windows_one_too_long(patch: Patch) -> None:
    _windows(patch, lambda window: window + 1)


def windows_one_too_short(patch: Patch) -> None:
    _windows(patch, lambda window: window - 1)


def windows_forgotten(patch: Patch) -> None:
    """Attention to all that the rings hold."""
    attention = Program.attention

    def whole(self: Program, *args: Any) -> Any:
        return attention(self, *args[:-1], args[-1] + 3)

    patch.setattr(Program, "attention", whole)


def ring_slot_off_by_one(patch: Patch) -> None:
    """A call of one frame writes and looks one place further on."""
    place = Rows.place

    def further(self: Rows, program: Any, positions: NDArray[np.int32], *args: Any) -> None:
        place(self, program, positions, *args)
        if len(positions) == self.positions.multiple:
            program.array(self.positions)[: len(positions), 0] += 1

    patch.setattr(Rows, "place", further)


def stale_row(patch: Patch) -> None:
    """The first place that a call should have written holds what it held before."""

    def decode(self: Decoder, state: State, codes: Codes) -> Samples:
        values = state.values[0]
        place = state.lengths[0] % values.shape[2]
        stale = values[0, :, place].copy()
        samples = _decode(self, state, codes)
        values[0, :, place] = stale
        return samples

    patch.setattr(Decoder, "decode", decode)


def position_not_advanced(patch: Patch) -> None:
    run_frames = codec_module.run_frames

    def stuck(program: Any, state: State, placed: Any, count: int, *args: Any) -> None:
        held = state.lengths[0]
        run_frames(program, state, placed, count, *args)
        state.lengths[0] = max(held, 1)

    patch.setattr(codec_module, "run_frames", stuck)


def position_lags(patch: Patch) -> None:
    """A full call counts one frame too few."""
    run_frames = codec_module.run_frames

    def lag(program: Any, state: State, placed: Any, count: int, *args: Any) -> None:
        run_frames(program, state, placed, count, *args)
        state.lengths[0] -= count == codec_module.MAX_FRAMES

    patch.setattr(codec_module, "run_frames", lag)


def streams_share_rings(patch: Patch) -> None:
    new_state = Decoder.new_state
    shared: dict[int, State] = {}

    def new(self: Decoder, num_frames: int | None = None) -> State:
        state = new_state(self)
        first = shared.setdefault(id(self), state)
        state.caches = first.caches
        return state

    patch.setattr(Decoder, "new_state", new)


def streams_share_state(patch: Patch) -> None:
    new_state = Decoder.new_state
    shared: dict[int, State] = {}

    def new(self: Decoder, num_frames: int | None = None) -> State:
        return shared.setdefault(id(self), new_state(self))

    patch.setattr(Decoder, "new_state", new)


def reset_does_nothing(patch: Patch) -> None:
    patch.setattr(State, "reset", lambda *args: None)


def rope_pairs_swapped(patch: Patch) -> None:
    swapped = SimpleNamespace(INTERLEAVED=RopePairs.HALVES)
    patch.setattr("mosstalk.nn.attention.RopePairs", swapped)


def rope_turns_backwards(patch: Patch) -> None:
    rope = Program.rope

    def back(self: Program, x: Any, turns: Any, first: int, heads: int, pairs: Any) -> None:
        rope(self, x, turns, first, heads // 2, pairs)  # queries, and the keys stay

    patch.setattr(Program, "rope", back)


def nan_in_a_late_frame(patch: Patch) -> None:
    def decode(self: Decoder, state: State, codes: Codes) -> Samples:
        at = LATE - state.lengths[0]
        samples = _decode(self, state, codes)
        if 0 <= at < len(codes):
            samples[:, at * (samples.shape[1] // len(codes))] = np.nan
        return samples

    patch.setattr(Decoder, "decode", decode)


def gain_drifts_by_frame(patch: Patch) -> None:
    """The same drift in a stream and in a whole: 1e-6 for each frame."""

    def decode(self: Decoder, state: State, codes: Codes) -> Samples:
        frames = np.arange(state.lengths[0], state.lengths[0] + len(codes))
        samples = _decode(self, state, codes)
        gain = np.repeat(1 + 1e-6 * frames, samples.shape[1] // len(codes))
        return (samples * gain).astype(np.float32)

    patch.setattr(Decoder, "decode", decode)


def gain_drifts_by_call(patch: Patch) -> None:
    calls: dict[int, int] = {}

    def decode(self: Decoder, state: State, codes: Codes) -> Samples:
        calls[id(state)] = calls.get(id(state), 0) + 1 if state.lengths[0] else 0
        return _decode(self, state, codes) * np.float32(1 + 1e-6 * calls[id(state)])

    patch.setattr(Decoder, "decode", decode)


def last_chunk_dropped(patch: Patch) -> None:
    """A call of fewer frames than the one before gives nothing."""

    def start(self: MossAudioTokenizer, max_frames: int) -> Callable[[Codes], Samples]:
        decode = _start(self, max_frames)
        longest = 0

        def next_samples(codes: Codes) -> Samples:
            nonlocal longest
            longest = max(longest, len(codes))
            return decode(codes)[:, : None if len(codes) == longest else 0]

        return next_samples

    patch.setattr(MossAudioTokenizer, "start", start)


def state_grows(patch: Patch) -> None:
    def decode(self: Decoder, state: State, codes: Codes) -> Samples:
        samples = _decode(self, state, codes)
        held = sum(array.size for array in state.seen)
        state.seen_sets = HostArrays([np.zeros((1, held + codes.size), np.uint8)])
        return samples

    patch.setattr(Decoder, "decode", decode)


def past_is_not_forgotten(patch: Patch) -> None:
    """A trace of the first frame stays in all samples."""
    traces: dict[int, float] = {}

    def decode(self: Decoder, state: State, codes: Codes) -> Samples:
        if state.lengths[0] == 0:
            traces[id(state)] = 1e-5 * float(codes[0, 0])
        return _decode(self, state, codes) + np.float32(traces.get(id(state), 0))

    patch.setattr(Decoder, "decode", decode)


def next_frame_leaks(patch: Patch) -> None:
    """A frame hears a little of the one that comes after it in its call."""

    def decode(self: Decoder, state: State, codes: Codes) -> Samples:
        samples = _decode(self, state, codes)
        frame_len = samples.shape[1] // len(codes)
        later = np.roll(samples, -frame_len, axis=1)
        later[:, -frame_len:] = 0
        return samples + np.float32(1e-3) * later

    patch.setattr(Decoder, "decode", decode)


def samples_are_constant(patch: Patch) -> None:
    patch.setattr(Decoder, "decode", lambda *args: np.ones_like(_decode(*args)))


def samples_are_zero(patch: Patch) -> None:
    patch.setattr(Decoder, "decode", lambda *args: 0 * _decode(*args))


def frames_decoded_alone(patch: Patch) -> None:
    """Each frame by a state of its own: nothing is remembered."""

    def decode(self: Decoder, state: State, codes: Codes) -> Samples:
        state.lengths[0] += len(codes)
        return np.concatenate(
            [_decode(self, self.new_state(1), code[None]) for code in codes], axis=1
        )

    patch.setattr(Decoder, "decode", decode)


def encoder_sees_one_frame_more(patch: Patch) -> None:
    def encode(self: Encoder, samples: Samples) -> Codes:
        later = np.roll(samples, -self._config.frame_len, axis=1)
        return _encode(self, samples + later)

    patch.setattr(Encoder, "encode", encode)


def encoder_windows_doubled(patch: Patch) -> None:
    def modules(*args: Any) -> Sequence[config_module.Module]:
        with Patch.context() as inner:
            if args[1] == "encoder_kwargs":
                windows_doubled(inner)
            return _modules(*args)

    _modules = config_module._modules
    patch.setattr(config_module, "_modules", modules)


def a_codebook_finds_the_next_code(patch: Patch) -> None:
    def encode(self: Encoder, samples: Samples) -> Codes:
        codes = _encode(self, samples)
        codes[:, -1] = (codes[:, -1] + 1) % self._config.codebook_size
        return codes

    patch.setattr(Encoder, "encode", encode)


def encoder_is_deaf(patch: Patch) -> None:
    patch.setattr(Encoder, "encode", lambda self, samples: _encode(self, samples) * 0)


def codec_breaks_down(patch: Patch) -> None:
    def decode(*args: Any) -> Samples:
        raise MemoryError("no room")

    patch.setattr(Decoder, "decode", decode)


_LAST = f"stream vs whole, {FRAMES[-1]} frames"
# The fault, checks that must catch it, and checks that must not: they tell where it is not.
FAULTS: list[tuple[Callable[[Patch], None], set[str], set[str]]] = [
    (windows_doubled, {"windows", "decoder as written out", "encoder as written out"}, {_LAST}),
    (windows_one_too_long, {"windows"}, {_LAST}),
    (windows_one_too_short, {"window's end must be heard"}, {_LAST, "windows"}),
    (windows_forgotten, {"windows"}, {_LAST}),
    (ring_slot_off_by_one, {_LAST, "reset, A-B-A"}, set()),
    (stale_row, {_LAST, "silence after sound"}, set()),
    (position_not_advanced, {_LAST, "state does not grow"}, set()),
    (position_lags, {_LAST, "decoder as written out"}, {"windows"}),
    (streams_share_rings, {"reset, A-B-A"}, {_LAST}),
    (streams_share_state, {"reset, A-B-A"}, set()),
    (reset_does_nothing, {"reset, A-B-A"}, {_LAST}),
    (rope_pairs_swapped, {"decoder as written out"}, {_LAST, "decoder on reference"}),
    (rope_turns_backwards, {"decoder as written out"}, {_LAST, "decoder on reference"}),
    (nan_in_a_late_frame, {_LAST}, {"stream vs whole, 43 frames"}),
    (gain_drifts_by_frame, {"noise does not grow"}, {_LAST}),
    (gain_drifts_by_call, {"noise does not grow", _LAST}, set()),
    (last_chunk_dropped, {_LAST}, set()),
    (state_grows, {"state does not grow"}, {_LAST}),
    (past_is_not_forgotten, {"silence after sound"}, {_LAST}),
    (next_frame_leaks, {"causality", _LAST}, set()),
    (samples_are_constant, {"frame change must differ", "decoder as written out"}, {_LAST}),
    (samples_are_zero, {"frame change must differ", _LAST}, set()),
    (frames_decoded_alone, {"dropped state must differ", "frame change must differ"}, {_LAST}),
    (encoder_sees_one_frame_more, {"encode, prefixes"}, {_LAST}),
    (encoder_windows_doubled, {"encoder as written out"}, {"encode, prefixes", "windows"}),
    (a_codebook_finds_the_next_code, {"encoder as written out"}, {"encode, prefixes"}),
    (encoder_is_deaf, {"other sound must differ"}, {"encode, prefixes"}),
    (codec_breaks_down, {_LAST, "causality"}, {"encode, prefixes"}),
]


def run_with(fault: Callable[[Patch], None], path: Path) -> Report:
    with Patch.context() as patch:
        fault(patch)
        return run_codec(ModelChoice(str(path), threads=1).open(), Options(frames=FRAMES))


def named(report: Report, name: str) -> CheckResult:
    return next(result for result in report.results if result.name == name)


@pytest.mark.parametrize(
    ("fault", "caught_by", "passed_by"), FAULTS, ids=[fault.__name__ for fault, _, _ in FAULTS]
)
def test_each_fault_is_caught(
    codec_path: Path, fault: Callable[[Patch], None], caught_by: set[str], passed_by: set[str]
) -> None:
    report = run_with(fault, codec_path)
    failed = {result.name for result in report.results if not result.passed}
    assert not report.passed
    assert caught_by <= failed, report.as_text()
    assert not passed_by & failed, report.as_text()
    if fault is not codec_breaks_down:
        for name in caught_by:
            assert named(report, name).compared, "a number shows it, not an exception"


def test_a_late_nan_is_counted(codec_path: Path) -> None:
    result = named(run_with(nan_in_a_late_frame, codec_path), _LAST)
    assert result.non_finite == 4 * 2  # chunkings, channels
    assert "second 15" in result.problem


def test_a_drift_is_told_with_its_growth(codec_path: Path) -> None:
    problem = named(run_with(gain_drifts_by_frame, codec_path), "noise does not grow").problem
    assert problem.startswith("written out: noise grows from")


def test_a_broken_codec_has_a_report_without_curves(codec_path: Path) -> None:
    report = run_with(codec_breaks_down, codec_path)
    assert report.figures == ()
    assert "MemoryError: no room" in report.as_text()
