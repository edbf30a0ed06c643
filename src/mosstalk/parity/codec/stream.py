"""A stream in chunks against a whole decode, and streams that share a decoder."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from mosstalk.codec.moss_audio_tokenizer.codec import Decoder
from mosstalk.compute.backend import open_backend
from mosstalk.compute.state import State
from mosstalk.parity.codec.layout import longest_window
from mosstalk.parity.codec.subject import CHUNKS, SHORT, Samples, Subject, decode_by
from mosstalk.parity.comparison import Comparison

_THREADS = (1, 2, 3)
_PLACE = 16  # frame at which a control goes wrong: another call than the first, in any chunks


def stream_check(num_frames: int) -> Callable[[Subject, Comparison], None]:
    """The first frames of the streams in chunks, second by second, against one whole decode.

    A second's differences are relative to its own peak.
    """

    def check(subject: Subject, comparison: Comparison) -> None:
        whole = subject.whole(num_frames)
        for size in CHUNKS:
            streamed = subject.streamed(size)[:, : subject.samples_of(num_frames)]
            if streamed.shape != whole.shape:
                comparison.add(f"chunks of {size}", whole, streamed)
                continue
            pairs = zip(subject.seconds(whole), subject.seconds(streamed), strict=True)
            for second, (expected, found) in enumerate(pairs):
                comparison.add(f"chunks of {size}, second {second}", expected, found)

    return check


def check_reset(subject: Subject, comparison: Comparison) -> None:
    """Codes A, then B, then A again on one decoder: states one after another, reset, in turns."""
    decoder = subject.codec.decoder
    codes = [subject.random_codes(SHORT, salt) for salt in (1, 2)]
    first = [decoder.decode(decoder.new_state(), part) for part in codes]
    again = decoder.decode(decoder.new_state(), codes[0])
    comparison.add("A again, by a state of its own", first[0], again)
    state = decoder.new_state()
    for name, which in (("A", 0), ("B", 1), ("A again", 0)):
        found = decode_by(lambda part: decoder.decode(state, part), codes[which])
        comparison.add(f"{name}, one state", first[which], found)
        state.reset()
    streams = [subject.codec.start(SHORT) for _ in codes]
    parts: tuple[list[Samples], list[Samples]] = ([], [])
    for at in range(SHORT):
        for stream, part, out in zip(streams, codes, parts, strict=True):
            out.append(stream(part[at : at + 1]))
    for name, expected, out in zip("AB", first, parts, strict=True):
        comparison.add(f"{name}, in turns", expected, np.concatenate(out, axis=1))


def check_state_size(subject: Subject, comparison: Comparison) -> None:
    """What a stream remembers takes the same memory after many frames as after the first."""
    decoder = subject.codec.decoder
    total = 2 * longest_window(subject.layout.decoder)
    codes = subject.random_codes(1 + total, 1)
    state = decoder.new_state()
    decoder.decode(state, codes[:1])
    before = _sizes(state)
    decoder.decode(state, codes[1:])
    comparison.require(
        state.lengths == [len(codes)], f"a stream of {len(codes)} frames counts {state.lengths}"
    )
    comparison.add_ids("bytes of each array", before, _sizes(state))


def check_threads(subject: Subject, comparison: Comparison) -> None:
    """The same weights on other numbers of threads."""
    codec = subject.codec
    codes = subject.random_codes(SHORT, 1)
    expected = codec.start(SHORT)(codes)
    for threads in _THREADS:
        if threads == codec.backend.threads:
            continue
        decoder = Decoder(codec.config, codec.weights, open_backend(codec.backend.name, threads))
        found = decoder.decode(decoder.new_state(SHORT), codes)
        comparison.add(f"{threads} threads", expected, found)


def check_order(subject: Subject, comparison: Comparison) -> None:
    """Control: two frames that come in the other order change all samples from there on."""
    codes = subject.random_codes(SHORT, 1)
    codes[_PLACE + 1] = (codes[_PLACE] + 1) % subject.layout.codebook_size
    expected = subject.codec.start(SHORT)(codes)
    codes[[_PLACE, _PLACE + 1]] = codes[[_PLACE + 1, _PLACE]]
    found = decode_by(subject.codec.start(SHORT), codes)
    changed, after = (subject.samples_of(_PLACE + frames) for frames in (0, 2))
    comparison.add("the exchanged frames", expected[:, changed:after], found[:, changed:after])
    comparison.add("the frames after them", expected[:, after:], found[:, after:])


def check_dropped_state(subject: Subject, comparison: Comparison) -> None:
    """Control: a stream that begins anew amid the codes gives other samples from there on."""
    codes = subject.random_codes(SHORT, 1)
    expected = subject.codec.start(SHORT)(codes)
    found = decode_by(subject.codec.start(SHORT), codes[_PLACE:])
    comparison.add("begun anew", expected[:, subject.samples_of(_PLACE) :], found)


def _sizes(state: State) -> NDArray[np.int64]:
    return np.array([array.nbytes for array in state.save().values()])
