"""An engine whose streams disturb each other must not pass: each fault, and the check for it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any
from weakref import WeakSet

import numpy as np
import pytest
from numpy.typing import NDArray
from random_codecs import small_config, write_codec
from tiny_model import write_tiny_model

from mosstalk.codec.moss_audio_tokenizer.codec import Decoder, MossAudioTokenizer
from mosstalk.compute.state import State, StateSpec
from mosstalk.models.moss_tts_nano.frame_decoder import FrameDecoder
from mosstalk.models.moss_tts_nano.session import NanoSession
from mosstalk.models.moss_tts_nano.speech import NanoUtterance
from mosstalk.parity.opening import ModelChoice
from mosstalk.parity.report import Report
from mosstalk.parity.streams.run import Options, run_streams
from mosstalk.stream import SpeechStream

Patch = pytest.MonkeyPatch
Samples = NDArray[np.float32]

OPTIONS = Options(streams=4, frames=10)

_init = State.__init__
_next_frame = NanoSession.next_frame
_new_state = Decoder.new_state
_decode = Decoder.decode
_close = SpeechStream.close


@pytest.fixture(scope="module")
def talker(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model with tokeniser and codec that speaks until its cap."""
    return write_tiny_model(tmp_path_factory.mktemp("models") / "talker")


def seen_ids_shared(patch: Patch) -> None:
    """What one request has drawn is penalised in all."""
    shared: dict[StateSpec, Any] = {}

    def init(self: State, spec: StateSpec, *args: Any) -> None:
        _init(self, spec, *args)
        if spec.seen_sizes:
            self.seen_sets = shared.setdefault(spec, self.seen_sets)

    patch.setattr(State, "__init__", init)


def random_counter_shared(patch: Patch) -> None:
    """The draws of a frame depend on how many frames all requests have made."""
    made = 0

    def next_frame(self: NanoSession, *args: Any) -> Any:
        nonlocal made
        self._frames, made = made, made + 1
        return _next_frame(self, *args)

    patch.setattr(NanoSession, "next_frame", next_frame)


def kv_cache_shared(patch: Patch) -> None:
    """All sessions write their rows into the same caches."""
    shared: dict[StateSpec, Any] = {}

    def init(self: State, spec: StateSpec, capacity: int, num_streams: int = 1) -> None:
        _init(self, spec, 400 if spec.seen_sizes else capacity, num_streams)
        if spec.seen_sizes:
            self.caches = shared.setdefault(spec, self.caches)
        self.capacity = capacity

    patch.setattr(State, "__init__", init)


def forks_share_caches(patch: Patch) -> None:
    """Requests of one voice write into one copy of its rows."""
    fork = State.fork
    copies: dict[int, tuple[State, State]] = {}

    def shared(self: State, capacity: int | None = None, stream: int = 0) -> State:
        copy = fork(self, 400, stream)
        _, first = copies.setdefault(id(self), (self, copy))
        copy.caches = first.caches
        return copy

    patch.setattr(State, "fork", shared)


def codec_state_shared(patch: Patch) -> None:
    """One state for all streams of a codec; it has room for ever."""
    shared: dict[int, State] = {}

    def new(self: Decoder, num_frames: int | None = None) -> State:
        return shared.setdefault(id(self), _new_state(self))

    patch.setattr(Decoder, "new_state", new)


def codec_rings_shared(patch: Patch) -> None:
    """Each stream counts for itself, and all write into the same rings."""
    shared: dict[int, State] = {}

    def new(self: Decoder, num_frames: int | None = None) -> State:
        state = _new_state(self)
        first = shared.setdefault(id(self), state)
        state.caches = first.caches
        return state

    patch.setattr(Decoder, "new_state", new)


def samples_of_another_stream(patch: Patch) -> None:
    """A codec stream continues the one that was started last."""
    latest: dict[int, Any] = {}
    start = MossAudioTokenizer.start

    def started(self: MossAudioTokenizer, max_frames: int) -> Callable[[Any], Samples]:
        latest[id(self)] = start(self, 1000)
        return lambda codes: latest[id(self)](codes)

    patch.setattr(MossAudioTokenizer, "start", started)


def last_hidden_shared(patch: Patch) -> None:
    """A request's frame starts from the hidden vector of whoever came before it."""
    last: list[NDArray[np.float32]] = []

    def next_frame(self: NanoSession, *args: Any) -> Any:
        if last and self._frames:
            self.hidden = last[0]
        codes = _next_frame(self, *args)
        last[:] = [self.hidden]
        return codes

    patch.setattr(NanoSession, "next_frame", next_frame)


def cancel_resets_another(patch: Patch) -> None:
    """Giving a session up takes the last row from the others."""
    living: WeakSet[NanoSession] = WeakSet()
    init, reset = NanoSession.__init__, NanoSession.reset_cache

    def remember(self: NanoSession, *args: Any) -> None:
        init(self, *args)
        living.add(self)

    def reset_all(self: NanoSession) -> None:
        if self.cached_positions:
            for other in living:
                if other is not self and other.cached_positions > 1:
                    other.state.lengths[0] -= 1
        reset(self)

    patch.setattr(NanoSession, "__init__", remember)
    patch.setattr(NanoSession, "reset_cache", reset_all)


def reset_leaves_seen_ids(patch: Patch) -> None:
    """What the request before had drawn is penalised in the next one on a session."""
    patch.setattr(State, "forget_seen", lambda *args: None)


def newcomer_disturbs(patch: Patch) -> None:
    """A prompt that is prefilled while others speak takes the newest row from them."""
    living: WeakSet[NanoSession] = WeakSet()
    prefill = NanoSession.prefill

    def prefilled(self: NanoSession, *args: Any, **kwargs: Any) -> Any:
        for other in living:
            if other is not self and other._frames > 4:
                other.state.lengths[0] -= 1
        living.add(self)
        return prefill(self, *args, **kwargs)

    patch.setattr(NanoSession, "prefill", prefilled)


def close_resets_another(patch: Patch) -> None:
    """Closing a stream of the engine empties the rings of all codec streams."""
    living: list[State] = []

    def new(self: Decoder, num_frames: int | None = None) -> State:
        living.append(_new_state(self, num_frames))
        return living[-1]

    def close(self: SpeechStream) -> None:
        for state in living:
            for values in state.values:
                values[...] = 0
        _close(self)

    patch.setattr(Decoder, "new_state", new)
    patch.setattr(SpeechStream, "close", close)


def close_does_nothing(patch: Patch) -> None:
    patch.setattr(SpeechStream, "close", lambda self: None)


def engine_mixes_frames(patch: Patch) -> None:
    """An utterance gives the frame of the one that was asked before it."""
    before: list[NDArray[np.int32]] = []
    next_frame = NanoUtterance.next_frame

    def other(self: NanoUtterance) -> Any:
        codes = next_frame(self)
        if codes is None:
            return None
        before.append(codes)
        return before[-2:][0]

    patch.setattr(NanoUtterance, "next_frame", other)


def seed_not_used(patch: Patch) -> None:
    uniforms = np.full(1, 0.5, np.float32)
    patch.setattr(
        "mosstalk.models.moss_tts_nano.frame_decoder.uniforms",
        lambda seed, chunk, frame, count: np.repeat(uniforms, count),
    )


def codes_and_samples_constant(patch: Patch) -> None:
    patch.setattr(Decoder, "decode", lambda *args: np.ones_like(_decode(*args)))


def nan_late(patch: Patch) -> None:
    """The hidden vector of a late frame is no number, alone and together."""

    def next_frame(self: NanoSession, *args: Any) -> Any:
        codes = _next_frame(self, *args)
        if self._frames == OPTIONS.frames and self.hidden is not None:
            self.hidden = self.hidden * np.float32("nan")
        return codes

    patch.setattr(NanoSession, "next_frame", next_frame)


def engine_breaks_down(patch: Patch) -> None:
    def run(*args: Any) -> Any:
        raise MemoryError("no room")

    patch.setattr(FrameDecoder, "run", run)


# The fault, checks that must catch it, and checks that must not: they tell where it is not.
FAULTS: list[tuple[Callable[[Patch], None], set[str], set[str]]] = [
    (seen_ids_shared, {"interleaved", "one starts late"}, {"requests must differ"}),
    (random_counter_shared, {"interleaved", "speaker, interleaved"}, set()),
    (kv_cache_shared, {"interleaved", "one cancelled", "speaker, interleaved"}, set()),
    (forks_share_caches, {"interleaved", "one cancelled"}, set()),
    (codec_state_shared, {"interleaved", "speaker, interleaved"}, set()),
    (codec_rings_shared, {"interleaved", "speaker, interleaved"}, set()),
    (samples_of_another_stream, {"interleaved", "speaker, interleaved"}, set()),
    (last_hidden_shared, {"interleaved", "speaker, interleaved"}, set()),
    (cancel_resets_another, {"one cancelled"}, {"interleaved", "one starts late"}),
    (reset_leaves_seen_ids, {"session used again"}, {"interleaved", "one cancelled"}),
    (newcomer_disturbs, {"one starts late"}, set()),
    (close_resets_another, {"speaker, one closed"}, {"speaker, interleaved", "one cancelled"}),
    (close_does_nothing, {"speaker, one closed"}, {"speaker, interleaved", "one cancelled"}),
    (engine_mixes_frames, {"speaker, interleaved"}, {"interleaved"}),
    (
        seed_not_used,
        {"other seed must differ", "speaker, other seed must differ"},
        {"interleaved", "speaker, interleaved"},
    ),
    (
        codes_and_samples_constant,
        {"requests must differ", "speaker, other seed must differ"},
        {"interleaved"},
    ),
    (nan_late, {"interleaved"}, {"speaker, interleaved"}),
    (engine_breaks_down, {"interleaved", "speaker, interleaved"}, set()),
]


def run_with(fault: Callable[[Patch], None], path: Path) -> Report:
    with Patch.context() as patch:
        fault(patch)
        return run_streams(ModelChoice(str(path), threads=1).open(), OPTIONS)


@pytest.mark.parametrize(
    ("fault", "caught_by", "passed_by"), FAULTS, ids=[fault.__name__ for fault, _, _ in FAULTS]
)
def test_each_fault_is_caught(
    talker: Path, fault: Callable[[Patch], None], caught_by: set[str], passed_by: set[str]
) -> None:
    report = run_with(fault, talker)
    failed = {result.name: result for result in report.results if not result.passed}
    assert not report.passed
    assert caught_by <= set(failed), report.as_text()
    assert not passed_by & set(failed), report.as_text()
    if fault is not engine_breaks_down:
        assert all(failed[name].compared for name in caught_by), "numbers, not an exception"


@pytest.mark.parametrize(
    "fault", [codec_state_shared, codec_rings_shared, samples_of_another_stream]
)
def test_faults_of_a_codec_alone_are_caught(tmp_path: Path, fault: Callable[[Patch], None]) -> None:
    path = write_codec(tmp_path, small_config())
    failed = {r.name for r in run_with(fault, path).results if not r.passed}
    assert "interleaved" in failed
