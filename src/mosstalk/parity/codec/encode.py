"""Encoding: of a beginning alone, and against the specification."""

import numpy as np

from mosstalk.parity.codec.layout import longest_window
from mosstalk.parity.codec.subject import SHORT, Samples, Subject
from mosstalk.parity.comparison import Comparison

_PREFIXES = (1, 2, 8, 15, 16, 17, SHORT - 1)  # frames
_BEYOND = 4  # frames after which a window is full
_PLACE = 20  # frame from which on a control's sound is another


def check_prefixes(subject: Subject, comparison: Comparison) -> None:
    """The codes of a beginning are the same whatever follows: nothing, or another sound."""
    codec = subject.codec
    sound, other = _sound(subject, salt=1), _sound(subject, salt=2)
    codes = codec.encode(sound)
    part = subject.samples_of(1) // 2
    for frames in _PREFIXES:
        end = subject.samples_of(frames)
        found = codec.encode(sound[:, :end])
        comparison.add_ids(f"{frames} frames alone", codes[:frames], found)
        found = codec.encode(sound[:, : end + part])
        comparison.add_ids(f"{frames} frames and a part of one", codes[:frames], found)
    for frames in (1, SHORT - 1):
        end = subject.samples_of(frames)
        mixed = np.concatenate([sound[:, :end], other[:, end:]], axis=1)
        found = codec.encode(mixed)[:frames]
        comparison.add_ids(f"{frames} frames before another sound", codes[:frames], found)


def check_written(subject: Subject, comparison: Comparison) -> None:
    """Each code is the nearest by the encoder as it is written out.

    The difference is the cosine that the code found falls short of the nearest one's.
    """
    sound = _sound(subject, salt=1)
    codes = subject.codec.encode(sound)
    best, chosen = subject.written.code_scores(sound, codes)
    for i in range(codes.shape[1]):
        comparison.add(f"codebook {i}", best[:, i], chosen[:, i])


def check_change(subject: Subject, comparison: Comparison) -> None:
    """Control: another sound has other codes."""
    sound = subject.noise(SHORT, salt=1)
    other = sound.copy()
    start = subject.samples_of(_PLACE)
    other[:, start:] = subject.noise(SHORT, salt=2)[:, start:]
    codes, found = (subject.codec.encode(samples) for samples in (sound, other))
    # Counted from 1: a codec may find nothing but code 0.
    comparison.add("from there on", codes[_PLACE:] + 1, found[_PLACE:] + 1)


def _sound(subject: Subject, salt: int) -> Samples:
    """Noise that fills the encoder's windows."""
    full = longest_window(subject.layout.encoder)
    return subject.noise(max(SHORT, full + _BEYOND), salt)
