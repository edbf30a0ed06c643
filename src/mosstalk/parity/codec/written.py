"""The decoder against others that cannot be wrong in the same way."""

from mosstalk.codec.moss_audio_tokenizer.codec import Decoder
from mosstalk.compute.backend import open_backend
from mosstalk.parity.codec.subject import Subject
from mosstalk.parity.comparison import Comparison

_REFERENCE_FRAMES = 8  # NumPy takes a program's positions one by one


def check_written(subject: Subject, comparison: Comparison) -> None:
    """The codec as its specification says it, in one call without caches."""
    whole = subject.whole(subject.longest)
    for first, end in subject.written_spans():
        found = whole[:, subject.samples_of(first) : subject.samples_of(end)]
        comparison.add(f"frames {first} to {end}", subject.written_out(first, end), found)


def check_reference(subject: Subject, comparison: Comparison) -> None:
    """The same programs on the NumPy backend."""
    codec = subject.codec
    codes = subject.random_codes(_REFERENCE_FRAMES, 1)
    decoder = Decoder(codec.config, codec.weights, open_backend("reference"))
    expected = decoder.decode(decoder.new_state(len(codes)), codes)
    comparison.add("samples", expected, codec.start(len(codes))(codes))
