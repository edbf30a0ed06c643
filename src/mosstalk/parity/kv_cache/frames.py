"""Frames of codes: over the caches, and with all rows computed from the start for each frame."""

import numpy as np
from numpy.typing import NDArray

from mosstalk.compute.sampling import SamplingParams
from mosstalk.models.moss_tts_nano.frame_decoder import FrameSampling
from mosstalk.models.moss_tts_nano.model import NanoModel
from mosstalk.models.moss_tts_nano.session import NanoSession
from mosstalk.parity.comparison import Comparison
from mosstalk.parity.kv_cache.subject import Subject, cached_rows, compare_cached

_GREEDY = SamplingParams(temperature=0.0)
_GREEDY_NEW = SamplingParams(temperature=0.0, repetition_penalty=1.5)
_GATE = SamplingParams(temperature=1.0, top_k=50)
_SAMPLED = SamplingParams(temperature=0.8, top_k=25, top_p=0.95, repetition_penalty=1.2)


class _Run:
    """Frames drawn one after another by a session.

    Where the model would stop, the codes it has drawn are appended by a step, so that a check
    always gets its frames. `index` is the session's own count of frames.
    """

    def __init__(self, model: NanoModel, session: NanoSession, sampling: FrameSampling) -> None:
        self.session = session
        self.index = 0
        self._model = model
        self._sampling = sampling

    def next(self) -> tuple[bool, NDArray[np.int32]]:
        """Whether the model goes on, and the frame's codes [n_vq]."""
        spare = self.session.fork()
        codes = self.session.next_frame(self._sampling)
        if codes is not None:
            self.index += 1
            return True, codes
        assert spare.hidden is not None
        decoder = self._model.frame_decoder(spare.num_codebooks)
        _, codes, _ = decoder.run(spare.state, spare.hidden, self.index, self._sampling)
        spare.step(self._model.config.audio_assistant_slot_token_id, codes.tolist())
        self.session = spare
        return False, codes


def check_greedy(subject: Subject, comparison: Comparison) -> None:
    """The likeliest codes, without and with a repetition penalty."""
    for what, audio in (("greedy", _GREEDY), ("greedy with penalty", _GREEDY_NEW)):
        sampling = FrameSampling(_GREEDY, audio, subject.seed)
        _compare_frames(subject, comparison, what, sampling)


def check_sampled(subject: Subject, comparison: Comparison) -> None:
    """Codes drawn with a fixed seed."""
    sampling = FrameSampling(_GATE, _SAMPLED, subject.seed)
    _compare_frames(subject, comparison, "sampled", sampling)


def check_second_generation(subject: Subject, comparison: Comparison) -> None:
    """A session, and forks of it, that have generated before give the same frames again."""
    sampling = FrameSampling(_GREEDY, _GREEDY_NEW, subject.seed)
    prefix = subject.prefilled()
    first = _Run(subject.model, prefix.fork(), sampling)
    codes = [first.next()[1] for _ in range(subject.frames)]
    assert first.session.hidden is not None
    again = first.session
    again.prefill(subject.rows, reuse_rows=len(subject.rows) - 1)
    for what, session in (("same session", again), ("another fork", prefix.fork())):
        run = _Run(subject.model, session, sampling)
        found = [run.next()[1] for _ in range(subject.frames)]
        comparison.add_ids(f"{what}, codes", np.stack(codes), np.stack(found))
    hidden = again.prefill(subject.rows)
    subject.compare(comparison, "prompt after frames", again, hidden)


def _compare_frames(
    subject: Subject, comparison: Comparison, what: str, sampling: FrameSampling
) -> None:
    """Each frame over the caches of a fork, against one whose rows are all computed anew."""
    model, config = subject.model, subject.model.config
    run = _Run(model, subject.prefilled().fork(subject.budget), sampling)
    rows = subject.rows
    seen = [np.zeros(size, np.uint8) for size in config.audio_codebook_sizes]
    for frame in range(subject.frames):
        at = f"{what} frame {frame}"
        whole = subject.session()
        whole.prefill(rows)
        _compare_last(comparison, at, whole, run.session)
        for held, known in zip(whole.state.seen, seen, strict=True):
            held[0] = known
        assert whole.hidden is not None
        decoder = model.frame_decoder(config.n_vq)
        index = run.index
        goes_on, codes = run.next()
        expected = decoder.run(whole.state, whole.hidden, index, sampling)
        comparison.add_ids(f"{at}, codes", expected[1], codes)
        comparison.require(expected[0] == goes_on, f"{at}: one goes on and the other stops")
        for known, code in zip(seen, codes, strict=True):
            known[code] = 1
        row = np.array([[config.audio_assistant_slot_token_id, *codes]], np.int32)
        rows = np.concatenate([rows, row])
    whole = subject.session()
    whole.prefill(rows)
    _compare_last(comparison, f"after {what} frames", whole, run.session)


def _compare_last(
    comparison: Comparison, what: str, whole: NanoSession, found: NanoSession
) -> None:
    if found.cached_positions != whole.cached_positions:
        comparison.fail(
            f"{what}: {found.cached_positions} rows are cached, not {whole.cached_positions}"
        )
        return
    assert whole.hidden is not None and found.hidden is not None
    comparison.add(f"{what}, hidden", whole.hidden, found.hidden)
    compare_cached(comparison, what, cached_rows(whole), cached_rows(found))
