"""A broken delay model must not pass: each fault, and the checks meant for it.

`kv-cache` and `delay` need nothing but the engine; `reference` has a recorded dump and golden rows.
What looks the same whichever way it is computed only a reference can tell.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from delay_dumps import GOLDEN_RUNS, checkpoint_folder, golden_dump, recorded_without_codec
from numpy.typing import NDArray
from tiny_delay import write_tiny_delay

from mosstalk.checkpoint.storage import StorageType, StoredTensor, from_float32
from mosstalk.compute.ops import Buffer, RopePairs
from mosstalk.compute.program import Program
from mosstalk.compute.state import State
from mosstalk.models.moss_tts_delay import backbone, delay_pattern, model, run, sampling
from mosstalk.models.moss_tts_delay.backbone import Backbone
from mosstalk.models.moss_tts_delay.config import DelayConfig
from mosstalk.models.moss_tts_delay.delay_pattern import Staircase
from mosstalk.models.moss_tts_delay.delay_state import DelayState
from mosstalk.models.moss_tts_delay.heads import OutputHeads
from mosstalk.models.moss_tts_delay.sampling import CodeHistory, PenaltyScope
from mosstalk.models.moss_tts_delay.session import DelaySession
from mosstalk.models.moss_tts_delay.speech import DelaySpeech
from mosstalk.models.moss_tts_delay.weights import DelayWeights
from mosstalk.parity.comparison import CheckResult
from mosstalk.parity.delay import draws, traces
from mosstalk.parity.delay.heads import run_heads
from mosstalk.parity.delay.reference import run_dump_folder
from mosstalk.parity.delay.run import run_delay
from mosstalk.parity.kv_cache.run import Options, run_kv_cache
from mosstalk.parity.opening import ModelChoice
from mosstalk.parity.streams.run import Options as StreamsOptions
from mosstalk.parity.streams.run import run_streams

Rows = NDArray[np.int32]
Patch = pytest.MonkeyPatch
Names = set[str]

HIDDEN = {"hidden, one prefill", "hidden, prefill and step"}
ROWS = {"likeliest rows: greedy_audio"}
PENALISED = {"likeliest rows: greedy_audio_rep1.1"}

_call = Backbone._call
_prefill = DelaySession.prefill
_after = DelayState._after
_load_weights = model.load_weights
_draw_codes = sampling.draw_codes


# Caches and positions.


def stale_cache_row(patch: Patch) -> None:
    def prefill(self: DelaySession, rows: Rows, reuse_rows: int = 0) -> Any:
        values = self.state.values[0]
        stale = values[0, :, reuse_rows].copy() if reuse_rows < values.shape[2] else None
        hidden = _prefill(self, rows, reuse_rows)
        if reuse_rows and stale is not None:
            self.state.values[0][0, :, reuse_rows] = stale
        return hidden

    patch.setattr(DelaySession, "prefill", prefill)


def position_off_by_one(patch: Patch) -> None:
    """A step stands one position too far."""

    def call(self: Backbone, state: State, rows: Rows, stream: int) -> Any:
        late = len(rows) == 1
        state.lengths[stream] += late
        hidden = _call(self, state, rows, stream)
        state.lengths[stream] -= late
        return hidden

    patch.setattr(Backbone, "_call", call)


def forks_share_caches(patch: Patch) -> None:
    fork = State.fork

    def shared(self: State, *args: Any, **kwargs: Any) -> State:
        copy = fork(self, *args, **kwargs)
        if copy.capacity == self.capacity:
            copy.caches = self.caches
        return copy

    patch.setattr(State, "fork", shared)


def prefix_never_read(patch: Patch) -> None:
    """Reuse that computes everything again: equal results, and no reuse."""

    def prefill(self: DelaySession, rows: Rows, reuse_rows: int = 0) -> Any:
        return _prefill(self, rows, 0)[reuse_rows:]

    patch.setattr(DelaySession, "prefill", prefill)


def step_is_nan(patch: Patch) -> None:
    def call(self: Backbone, state: State, rows: Rows, stream: int) -> Any:
        hidden = _call(self, state, rows, stream)
        return hidden * np.nan if len(rows) == 1 else hidden

    patch.setattr(Backbone, "_call", call)


# The backbone: wrong the same way however it is computed.


def rope_pairs_interleaved(patch: Patch) -> None:
    patch.setattr(backbone, "RopePairs", SimpleNamespace(HALVES=RopePairs.INTERLEAVED))


def rope_base_of_another_model(patch: Patch) -> None:
    frequencies = backbone.inverse_frequencies
    patch.setattr(backbone, "inverse_frequencies", lambda dim, base: frequencies(dim, 1e4))


def query_heads_read_another_key(patch: Patch) -> None:
    """Head m reads key and value head m modulo their number, not m by the size of a group."""

    def load(config: DelayConfig, *args: Any) -> DelayWeights:
        weights = _load_weights(config, *args)
        groups = config.num_attention_heads // config.num_key_value_heads
        order = np.arange(config.num_attention_heads).reshape(groups, -1).T.reshape(-1)
        columns = np.arange(len(order) * config.head_dim).reshape(len(order), -1)[order].reshape(-1)
        return replace(
            weights,
            blocks=tuple(
                replace(
                    block,
                    q_proj=_changed(block.q_proj, lambda q: q[columns]),
                    o_proj=_changed(block.o_proj, lambda o: o[:, columns]),
                )
                for block in weights.blocks
            ),
        )

    patch.setattr(model, "load_weights", load)


def query_norm_skipped(patch: Patch) -> None:
    _without_norm(patch, "q_norm")


def key_norm_skipped(patch: Patch) -> None:
    _without_norm(patch, "k_norm")


def final_norm_skipped(patch: Patch) -> None:
    _without_norm(patch, "language_model.norm")


def pads_are_not_embedded(patch: Patch) -> None:
    """Right for a checkpoint whose pad rows are zero, and for no other."""

    def load(*args: Any) -> DelayWeights:
        weights = _load_weights(*args)

        def without_pad(table: NDArray[np.float32]) -> NDArray[np.float32]:
            table[-1] = 0
            return table

        return replace(weights, emb_ext=tuple(_changed(t, without_pad) for t in weights.emb_ext))

    patch.setattr(model, "load_weights", load)


def one_weight_is_nan(patch: Patch) -> None:
    def load(*args: Any) -> DelayWeights:
        weights = _load_weights(*args)

        def spoilt(table: NDArray[np.float32]) -> NDArray[np.float32]:
            table[0, 0] = np.nan
            return table

        return replace(weights, text_head=_changed(weights.text_head, spoilt))

    patch.setattr(model, "load_weights", load)


# Heads, draws and rows.


def slots_swapped(patch: Patch) -> None:
    slots = OutputHeads.slots
    patch.setattr(OutputHeads, "slots", lambda *args: slots(*args)[::-1].copy())


def heads_one_codebook_off(patch: Patch) -> None:
    audio = OutputHeads.audio
    patch.setattr(OutputHeads, "audio", lambda *args: np.roll(audio(*args), 1, axis=0))


def pad_is_offered(patch: Patch) -> None:
    patch.setattr(OutputHeads, "audio", lambda self, hidden: self._audio.logits(hidden))


def pad_column_drawn(patch: Patch) -> None:
    """Pads are drawn like codes."""

    def with_pad(
        logits: NDArray[np.float32], history: CodeHistory, *rest: Any
    ) -> NDArray[np.int32]:
        wider = np.concatenate([logits, np.full((len(logits), 1), -np.inf, np.float32)], axis=1)
        seen = np.concatenate([history.seen, np.zeros((len(logits), 1), np.uint8)], axis=1)
        return _draw_codes(wider, CodeHistory(seen), *rest)

    for module in (run, draws):
        patch.setattr(module, "draw_codes", with_pad)


def penalty_scope_swapped(patch: Patch) -> None:
    counted = CodeHistory.counted
    other = {
        PenaltyScope.UNION: PenaltyScope.PER_CODEBOOK,
        PenaltyScope.PER_CODEBOOK: PenaltyScope.UNION,
    }
    patch.setattr(CodeHistory, "counted", lambda self, scope: counted(self, other[scope]))


def drawn_codes_not_counted(patch: Patch) -> None:
    patch.setattr(CodeHistory, "after", lambda self, row: self)


def delayed_counter_off_by_one(patch: Patch) -> None:
    """The first delay-slot does not count, so that there is one too many."""

    def after(self: DelayState, text_id: int) -> DelayState:
        found = _after(self, text_id)
        is_first = self.draining is None and found.draining == 1
        return replace(found, draining=0) if is_first else found

    patch.setattr(DelayState, "_after", after)


def staircase_one_row_late(patch: Patch) -> None:
    """A codebook begins one row later than its delay."""

    def codebooks(self: DelayState) -> range:
        return range(self.draining or 0, min(max(self.audio_length - 1, 0), self.config.n_vq))

    patch.setattr(DelayState, "_codebooks", property(codebooks))


def all_codebooks_at_once(patch: Patch) -> None:
    """As if there were no delay: every codebook draws as soon as there is audio."""

    def codebooks(self: DelayState) -> range:
        return range(self.draining or 0, self.config.n_vq if self.audio_length else 0)

    patch.setattr(DelayState, "_codebooks", property(codebooks))


def recording_one_row_off(patch: Patch) -> None:
    """The last codebook of a recording in the prompt lies one row too high."""

    def delayed(codes: Rows, pad_code: int) -> Rows:
        rows = delay_pattern.delayed(codes, pad_code)
        rows[:, -1] = np.roll(rows[:, -1], -1)
        return rows

    patch.setattr(traces, "delayed", delayed)


def frame_of_the_wrong_rows(patch: Patch) -> None:
    """The last codebook of a frame is taken from the row before."""
    push = Staircase.push

    def off(self: Staircase, codes: Rows) -> Any:
        after, frame = push(self, codes)
        if frame is not None and len(self.rows) > 1:
            frame[-1] = self.rows[-1][-1]
        return after, frame

    patch.setattr(Staircase, "push", off)


def end_allowed_at_once(patch: Patch) -> None:
    banned = DelayState._banned

    def shorter(self: DelayState) -> Sequence[int]:
        return tuple(i for i in banned(self) if i != self.config.im_end_token_id)

    patch.setattr(DelayState, "_banned", shorter)


def delay_slot_allowed_at_once(patch: Patch) -> None:
    slots = DelayState._slots
    patch.setattr(DelayState, "_slots", lambda self: slots(replace(self, step=1)))


# fault: checks of kv-cache, of delay, of reference that must fail.
FAULTS: list[tuple[Callable[[Patch], None], Names, Names, Names]] = [
    (stale_cache_row, {"prefill vs chunked", "prefix reuse", "fork", "truncate"}, set(), set()),
    (
        position_off_by_one,
        {"decode step vs prefill", "single-row chain", "frames, greedy"},
        set(),
        {"hidden, prefill and step"},
    ),
    (forks_share_caches, {"fork", "reads leave the cache"}, set(), set()),
    (prefix_never_read, {"mismatched prefix must differ"}, set(), set()),
    (
        step_is_nan,
        {"decode step vs prefill", "frames, greedy"},
        set(),
        {"hidden, prefill and step"},
    ),
    (rope_pairs_interleaved, set(), set(), HIDDEN | ROWS),
    (rope_base_of_another_model, set(), set(), HIDDEN),
    (query_heads_read_another_key, set(), set(), HIDDEN),
    (query_norm_skipped, set(), set(), HIDDEN),
    (key_norm_skipped, set(), set(), HIDDEN),
    (final_norm_skipped, set(), set(), HIDDEN),
    (pads_are_not_embedded, set(), set(), HIDDEN),
    (one_weight_is_nan, {"heads repeat"}, set(), {"text head"}),
    (slots_swapped, {"heads in parts"}, set(), ROWS),
    (heads_one_codebook_off, set(), set(), ROWS),
    (pad_is_offered, {"heads repeat"}, set(), set()),
    (pad_column_drawn, set(), {"pads are not drawn"}, set()),
    (penalty_scope_swapped, set(), {"scope of the penalty"}, PENALISED),
    (drawn_codes_not_counted, {"frames, greedy"}, {"scope of the penalty"}, set()),
    (
        delayed_counter_off_by_one,
        set(),
        {"trace of a generation", "what may be drawn"},
        ROWS,
    ),
    (
        staircase_one_row_late,
        set(),
        {"trace of a generation", "trace after a bare start", "what may be drawn"},
        ROWS,
    ),
    (all_codebooks_at_once, set(), {"trace of a generation", "what may be drawn"}, ROWS),
    (recording_one_row_off, set(), {"delay pattern", "trace of a continuation"}, set()),
    (frame_of_the_wrong_rows, {"frames, greedy"}, {"trace of a generation"}, set()),
    (end_allowed_at_once, set(), {"what may be drawn"}, set()),
    (delay_slot_allowed_at_once, set(), {"what may be drawn"}, set()),
]


@pytest.mark.parametrize(
    ("fault", "kv_cache", "delay", "reference"), FAULTS, ids=[fault[0].__name__ for fault in FAULTS]
)
def test_each_delay_fault_is_caught(
    golden_dir: Path,
    tmp_path: Path,
    fault: Callable[[Patch], None],
    kv_cache: Names,
    delay: Names,
    reference: Names,
) -> None:
    folder = checkpoint_folder(golden_dir, "delay_small")
    golden = golden_dump(golden_dir, "delay_small", tmp_path / "golden")
    recorded = recorded_without_codec(tmp_path / "recorded")
    with pytest.MonkeyPatch.context() as patch:
        fault(patch)
        opened = ModelChoice(str(folder), threads=1).open()
        failed = [
            _failed(run_kv_cache(opened, Options()).results),
            _failed(run_delay().results),
            _failed(run_dump_folder(opened, recorded).results)
            | _failed(run_heads(opened, [golden / f"{name}.json" for name in GOLDEN_RUNS]).results),
        ]
    assert any(failed)
    for name, expected, found in zip(
        ("kv-cache", "delay", "reference"), (kv_cache, delay, reference), failed, strict=True
    ):
        assert expected <= found, f"{name}: {sorted(found)}"


# Requests that take turns.


def draws_depend_on_all_requests(patch: Patch) -> None:
    """The random numbers of a row are those of how many rows all requests have made."""
    uniforms, made = sampling._uniforms, iter(range(10**6))
    patch.setattr(sampling, "_uniforms", lambda s, step, count: uniforms(s, next(made), count))


def requests_share_their_session(patch: Patch) -> None:
    """Each request of the engine writes its rows into the session that keeps the prompt."""

    def prefix(self: DelaySpeech, rows: Rows) -> DelaySession:
        if self._kept is None:
            session = self.model.session()
            session.begin_generation(2000)
            self._kept = rows, session
        self._kept[1].truncate(0)
        return self._kept[1]

    patch.setattr(DelaySpeech, "_prefix", prefix)
    patch.setattr(DelaySession, "fork", lambda self, *args: self)


def staircase_of_all_requests(patch: Patch) -> None:
    """What one request has drawn completes another's frames."""
    push, latest = Staircase.push, {}

    def shared(self: Staircase, codes: Rows) -> Any:
        after, frame = push(latest.get(self.n_vq, self), codes)
        latest[self.n_vq] = after
        return after, frame

    patch.setattr(Staircase, "push", shared)


@pytest.mark.parametrize(
    ("fault", "caught_by"),
    [
        (draws_depend_on_all_requests, {"interleaved", "speaker, interleaved"}),
        (requests_share_their_session, {"speaker, interleaved", "speaker, one starts late"}),
        (staircase_of_all_requests, {"interleaved", "speaker, interleaved"}),
    ],
)
def test_requests_that_disturb_each_other_are_caught(
    tmp_path: Path, fault: Callable[[Patch], None], caught_by: Names
) -> None:
    tiny = write_tiny_delay(tmp_path / "tiny")
    options = StreamsOptions(streams=4, frames=8)
    with pytest.MonkeyPatch.context() as patch:
        fault(patch)
        report = run_streams(ModelChoice(str(tiny), threads=1).open(), options)
    assert caught_by <= _failed(report.results), report.as_text()
    report = run_streams(ModelChoice(str(tiny), threads=1).open(), options)
    assert report.passed, report.as_text()


def test_nothing_fails_without_a_fault(golden_dir: Path, tmp_path: Path) -> None:
    opened = ModelChoice(str(checkpoint_folder(golden_dir, "delay_small")), threads=1).open()
    golden = golden_dump(golden_dir, "delay_small", tmp_path / "golden")
    assert not _failed(run_kv_cache(opened, Options()).results)
    assert not _failed(run_delay().results)
    assert not _failed(run_heads(opened, [golden / f"{run}.json" for run in GOLDEN_RUNS]).results)


def _failed(results: Sequence[CheckResult]) -> Names:
    return {result.name for result in results if not result.passed}


def _changed(
    tensor: StoredTensor, change: Callable[[NDArray[np.float32]], NDArray[np.float32]]
) -> StoredTensor:
    return from_float32(tensor.name, change(tensor.to_float32().copy()), StorageType.F32)


def _without_norm(patch: Patch, name: str) -> None:
    norm = Program.rms_norm

    def skipped(self: Program, x: Buffer, weight: StoredTensor, eps: float) -> Buffer:
        return x if name in weight.name else norm(self, x, weight, eps)

    patch.setattr(Program, "rms_norm", skipped)
