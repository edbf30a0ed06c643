"""What samples depend on: the frames in the windows, and nothing else."""

import numpy as np
from numpy.typing import NDArray

from mosstalk.compute.state import KEY_BLOCK, State
from mosstalk.parity.codec.layout import longest_window
from mosstalk.parity.codec.subject import SHORT, Codes, Subject, decode_by
from mosstalk.parity.comparison import Comparison

_CHANGED = (1, 5, 23, SHORT - 2)  # frames; of a first, second and third call of any backend
_PAST = 16  # frames of sound before the silence
_TAIL = 4  # frames of silence that are compared


def check_windows(subject: Subject, comparison: Comparison) -> None:
    """Places of a layer's cache that no query sees hold what is no number; nothing changes.

    Which these are follows from the config (layout.py), not from the codec's own windows.
    """
    state, codes = _full_state(subject)
    decoder = subject.codec.decoder
    expected = decoder.decode(state.fork(), codes)
    for i, first in enumerate(_oldest_seen(subject, state)):
        spoilt = state.fork()
        length = spoilt.values[i].shape[2]
        held = _positions_held(subject, state, i)
        unseen = np.ones(length, bool)
        unseen[np.arange(first, held) % length] = False
        _spoil(spoilt, i, np.flatnonzero(unseen))
        found = decoder.decode(spoilt, codes)
        comparison.add(f"layer {i} reads beyond its window", expected, found, layer=i)


def check_oldest(subject: Subject, comparison: Comparison) -> None:
    """Control: the oldest place of a layer's window holds what is no number, and it is heard."""
    state, codes = _full_state(subject)
    for i, first in enumerate(_oldest_seen(subject, state)):
        spoilt = state.fork()
        _spoil(spoilt, i, np.array([first % spoilt.values[i].shape[2]]))
        found = np.isfinite(subject.codec.decoder.decode(spoilt, codes)).astype(np.float32)
        comparison.add(f"the end of the window of layer {i}", np.ones_like(found), found)


def check_silence(subject: Subject, comparison: Comparison) -> None:
    """Silence that is longer than all windows together: nothing of the sound before is left.

    After one sound it is decoded whole, after another in chunks. Differences are relative to the
    peak of the silence itself.
    """
    silence = _silence(subject, subject.layout.reach + _TAIL)
    tail = subject.samples_of(_TAIL)
    sounds = [subject.random_codes(_PAST, salt) for salt in (1, 2)]
    codes = [np.concatenate([sound, silence]) for sound in sounds]
    streams = [subject.codec.start(len(part)) for part in codes]
    expected = streams[0](codes[0])[:, -tail:]
    found = decode_by(streams[1], codes[1])[:, -tail:]
    comparison.add("silence after another sound", expected, found)


def check_causality(subject: Subject, comparison: Comparison) -> None:
    """Another frame leaves the samples before it as they were."""
    codes = subject.random_codes(SHORT, 1)
    expected = subject.codec.start(SHORT)(codes)
    for frame in _CHANGED:
        found = subject.codec.start(SHORT)(_changed(subject, codes, frame))
        before = subject.samples_of(frame)
        comparison.add(f"before frame {frame}", expected[:, :before], found[:, :before])


def check_change(subject: Subject, comparison: Comparison) -> None:
    """Control: another frame changes its own samples, and those of the frames after it."""
    codes = subject.random_codes(SHORT, 1)
    expected = subject.codec.start(SHORT)(codes)
    for frame in _CHANGED:
        found = subject.codec.start(SHORT)(_changed(subject, codes, frame))
        start, end = subject.samples_of(frame), subject.samples_of(frame + 1)
        comparison.add(f"frame {frame}", expected[:, start:end], found[:, start:end])
        comparison.add(f"after frame {frame}", expected[:, end:], found[:, end:])


def _full_state(subject: Subject) -> tuple[State, Codes]:
    """A stream whose windows are all full, and the frame that comes next."""
    held = longest_window(subject.layout.decoder) + 1
    codes = subject.random_codes(held + 1, 1)
    state = subject.codec.decoder.new_state()
    subject.codec.decoder.decode(state, codes[:held])
    return state, codes[held:]


def _positions_held(subject: Subject, state: State, layer: int) -> int:
    return state.lengths[0] * subject.layout.decoder_layers[layer].multiple


def _oldest_seen(subject: Subject, state: State) -> list[int]:
    """The oldest position of each layer that the next position sees."""
    layers = subject.layout.decoder_layers
    return [_positions_held(subject, state, i) - layer.window + 1 for i, layer in enumerate(layers)]


def _spoil(state: State, cache: int, places: NDArray[np.intp]) -> None:
    """For the layout see State."""
    state.values[cache][0, :, places] = np.nan
    state.keys[cache][0, :, places // KEY_BLOCK, :, places % KEY_BLOCK] = np.nan


def _silence(subject: Subject, num_frames: int) -> Codes:
    """Codes of no sound; for a codec that cannot encode, of one that does not change."""
    if not subject.can_encode:
        return np.zeros((num_frames, subject.layout.codebooks), np.int32)
    nothing = np.zeros((subject.layout.channels, subject.samples_of(_PAST)), np.float32)
    codes = subject.codec.encode(nothing)
    return np.repeat(codes[-1:], num_frames, axis=0)


def _changed(subject: Subject, codes: Codes, frame: int) -> Codes:
    """Every code of one frame is another."""
    changed = codes.copy()
    changed[frame] = (changed[frame] + 1) % subject.layout.codebook_size
    return changed
