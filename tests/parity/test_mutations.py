"""A broken engine must not pass: each fault, and the checks that catch it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from mosstalk.compute.state import State
from mosstalk.models.moss_tts_nano.frame_decoder import FrameDecoder
from mosstalk.models.moss_tts_nano.global_transformer import GlobalTransformer
from mosstalk.models.moss_tts_nano.session import NanoSession
from mosstalk.parity.kv_cache.run import Options, run_kv_cache
from mosstalk.parity.opening import ModelChoice

Rows = NDArray[np.int32]
Patch = pytest.MonkeyPatch

_run = GlobalTransformer.run
_prefill = NanoSession.prefill
_next_frame = NanoSession.next_frame


def position_off_by_one(patch: Patch) -> None:
    def run(self: GlobalTransformer, state: State, rows: Rows, *args: Any, **kwargs: Any) -> Any:
        late = len(rows) == 1
        state.lengths[0] += late
        hidden = _run(self, state, rows, *args, **kwargs)
        state.lengths[0] -= late
        return hidden

    patch.setattr(GlobalTransformer, "run", run)


def stale_cache_row(patch: Patch) -> None:
    def prefill(self: NanoSession, rows: Rows, reuse_rows: int = 0) -> Any:
        values = self.state.values[0]
        stale = values[0, :, reuse_rows].copy() if reuse_rows < values.shape[2] else None
        hidden = _prefill(self, rows, reuse_rows)
        if reuse_rows and stale is not None:
            values[0, :, reuse_rows] = stale
        return hidden

    patch.setattr(NanoSession, "prefill", prefill)


def ring_overwritten(patch: Patch) -> None:
    """Caches of sixteen places, used round and round without complaint."""
    patch.setattr("mosstalk.compute.state.cache_len", lambda cache, capacity, max_rows: 16)
    patch.setattr(State, "check_room", lambda *args, **kwargs: None)


def prefix_not_truncated(patch: Patch) -> None:
    patch.setattr(State, "truncate", lambda *args, **kwargs: None)
    patch.setattr(State, "check_room", lambda *args, **kwargs: None)


def seen_ids_leak(patch: Patch) -> None:
    patch.setattr(State, "forget_seen", lambda *args, **kwargs: None)


def forks_share_seen_ids(patch: Patch) -> None:
    fork = State.fork

    def shared(self: State, *args: Any, **kwargs: Any) -> State:
        copy = fork(self, *args, **kwargs)
        copy.seen_sets = self.seen_sets
        return copy

    patch.setattr(State, "fork", shared)


def forks_share_caches(patch: Patch) -> None:
    fork = State.fork

    def shared(self: State, *args: Any, **kwargs: Any) -> State:
        copy = fork(self, *args, **kwargs)
        if copy.capacity == self.capacity:
            copy.caches = self.caches
        return copy

    patch.setattr(State, "fork", shared)


def frame_row_not_kept(patch: Patch) -> None:
    def next_frame(self: NanoSession, *args: Any) -> Any:
        length = self.cached_positions
        codes = _next_frame(self, *args)
        self.state.lengths[0] = length
        return codes

    patch.setattr(NanoSession, "next_frame", next_frame)


def frame_hidden_not_kept(patch: Patch) -> None:
    def next_frame(self: NanoSession, *args: Any) -> Any:
        hidden = self.hidden
        codes = _next_frame(self, *args)
        self.hidden = hidden
        return codes

    patch.setattr(NanoSession, "next_frame", next_frame)


def same_random_numbers_each_frame(patch: Patch) -> None:
    def next_frame(self: NanoSession, *args: Any) -> Any:
        codes = _next_frame(self, *args)
        self._frames = 0
        return codes

    patch.setattr(NanoSession, "next_frame", next_frame)


def hidden_is_nan(patch: Patch) -> None:
    patch.setattr(GlobalTransformer, "run", lambda *args, **kwargs: _run(*args, **kwargs) * np.nan)


def hidden_is_zero(patch: Patch) -> None:
    patch.setattr(GlobalTransformer, "run", lambda *args, **kwargs: _run(*args, **kwargs) * 0)


def hidden_is_constant(patch: Patch) -> None:
    def run(*args: Any, **kwargs: Any) -> Any:
        return np.ones_like(_run(*args, **kwargs))

    patch.setattr(GlobalTransformer, "run", run)


def prefix_never_read(patch: Patch) -> None:
    """Reuse that computes everything again: equal results, and no reuse."""

    def prefill(self: NanoSession, rows: Rows, reuse_rows: int = 0) -> Any:
        return _prefill(self, rows, 0)[reuse_rows:]

    patch.setattr(NanoSession, "prefill", prefill)


def rows_see_only_themselves(patch: Patch) -> None:
    def run(self: GlobalTransformer, state: State, rows: Rows, *args: Any, **kwargs: Any) -> Any:
        _run(self, state, rows, *args, **kwargs)
        alone = [_run(self, State(state.spec, 1), row[None]) for row in rows]
        return np.concatenate(alone)

    patch.setattr(GlobalTransformer, "run", run)


def save_forgets_values(patch: Patch) -> None:
    save = State.save

    def saved(self: State, *args: Any) -> Any:
        arrays = save(self, *args)
        arrays["values.1"] = np.zeros_like(arrays["values.1"])
        return arrays

    patch.setattr(State, "save", saved)


def slot_off_by_one(patch: Patch) -> None:
    """The local transformer's last slot stands one position too far."""

    def fill(self: FrameDecoder, weights: Any) -> None:
        _fill(self, weights)
        rows = self._local_rows[-1]
        rows.place(self.program, np.array([self.num_codebooks + 1], np.int32), 0, self._frequencies)
        self.program.array(rows.positions)[0] = self.num_codebooks

    _fill = FrameDecoder._fill_constants
    patch.setattr(FrameDecoder, "_fill_constants", fill)


def codes_out_of_range(patch: Patch) -> None:
    run = FrameDecoder.run

    def beyond(*args: Any) -> Any:
        goes_on, codes, hidden = run(*args)
        return goes_on, codes + 48, hidden

    patch.setattr(FrameDecoder, "run", beyond)


def fork_breaks_down(patch: Patch) -> None:
    def fork(*args: Any, **kwargs: Any) -> State:
        raise MemoryError("no room")

    patch.setattr(State, "fork", fork)


FAULTS: list[tuple[Callable[[Patch], None], set[str]]] = [
    (position_off_by_one, {"decode step vs prefill", "prefill vs chunked"}),
    (stale_cache_row, {"prefill vs chunked", "prefix reuse", "truncate", "fork"}),
    (ring_overwritten, {"prefill vs chunked", "decode step vs prefill", "frames, greedy"}),
    (prefix_not_truncated, {"prefix reuse", "truncate"}),
    (seen_ids_leak, {"second generation"}),
    (forks_share_seen_ids, {"second generation"}),
    (forks_share_caches, {"reads leave the cache", "fork"}),
    (frame_row_not_kept, {"frames, greedy", "frames, sampled"}),
    (frame_hidden_not_kept, {"frames, greedy", "frames, sampled"}),
    (same_random_numbers_each_frame, {"frames, sampled"}),
    (hidden_is_nan, {"prefill vs chunked", "frames, greedy", "prompt change must differ"}),
    (hidden_is_zero, {"prefill vs chunked", "prompt change must differ"}),
    (hidden_is_constant, {"prompt change must differ", "mismatched prefix must differ"}),
    (prefix_never_read, {"mismatched prefix must differ"}),
    (rows_see_only_themselves, {"prompt change must differ", "mismatched prefix must differ"}),
    (save_forgets_values, {"save and load"}),
    (slot_off_by_one, {"local frame slots"}),
    (codes_out_of_range, {"local frame repeat"}),
    (fork_breaks_down, {"fork", "frames, greedy"}),
]


@pytest.mark.parametrize(
    ("fault", "caught_by"), FAULTS, ids=[fault.__name__ for fault, _ in FAULTS]
)
def test_each_fault_is_caught(
    random_nano: Path, fault: Callable[[Patch], None], caught_by: set[str]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        fault(patch)
        report = run_kv_cache(ModelChoice(str(random_nano), threads=1).open(), Options())
    failed = {result.name for result in report.results if not result.passed}
    assert not report.passed
    assert caught_by <= failed, report.as_text()
