"""The codec under test, random codes for it, and what it makes of them."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosstalk.codec.codec import DecodeNext
from mosstalk.codec.moss_audio_tokenizer.codec import MossAudioTokenizer
from mosstalk.parity.codec.layout import Layout
from mosstalk.parity.codec.written_out import Real, WrittenOut

Codes = NDArray[np.int32]  # [frames, codebooks]
Samples = NDArray[np.float32]  # [channels, frames * frame_len]

CHUNKS = (1, 2, 8, 15)  # frames of a call
SHORT = 43  # frames, where a check needs no more
_FEW = 8  # frames of a call, of the chunks that checks of state use
_LOUDNESS = (-2.0, 1.0)  # of frames that are encoded, as powers of ten of full scale


@dataclass(frozen=True, slots=True)
class Subject:
    """What every check works on. What several checks need is computed once, at first use."""

    codec: MossAudioTokenizer
    layout: Layout
    written: WrittenOut
    frames: tuple[int, ...]  # lengths to compare at, in order
    codes: Codes  # of the longest of them
    seed: int
    tolerance: float
    _decoded: dict[tuple[int, int], Samples] = field(default_factory=dict)  # frames, in a call
    _written: dict[tuple[int, int], Real] = field(default_factory=dict)  # by first frame and end

    @property
    def longest(self) -> int:
        return self.frames[-1]

    @property
    def can_encode(self) -> bool:
        """A codec may be opened to decode only."""
        return self.codec.weights.encoder is not None

    def whole(self, num_frames: int) -> Samples:
        """The first frames in one call, by a stream with room for just them."""
        key = (num_frames, num_frames)
        if key not in self._decoded:
            self._decoded[key] = self.codec.start(num_frames)(self.codes[:num_frames])
        return self._decoded[key]

    def streamed(self, size: int) -> Samples:
        """All frames, `size` in a call."""
        key = (self.longest, size)
        if key not in self._decoded:
            self._decoded[key] = decode_by(self.codec.start(self.longest), self.codes, size)
        return self._decoded[key]

    def written_out(self, first: int, end: int) -> Real:
        """The frames from `first` up to `end`, from the specification."""
        key = (first, end)
        if key not in self._written:
            self._written[key] = self.written.decode(self.codes[:end], first)
        return self._written[key]

    def written_spans(self) -> list[tuple[int, int]]:
        """Frames that are written out: the first, and the last second, as first and end."""
        if self.longest <= SHORT:
            return [(0, self.longest)]
        a_second = -(-self.layout.sample_rate // self.layout.frame_len)
        return [(0, SHORT), (max(SHORT, self.longest - a_second), self.longest)]

    def samples_of(self, num_frames: int) -> int:
        """Of a channel."""
        return num_frames * self.layout.frame_len

    def random_codes(self, num_frames: int, salt: int) -> Codes:
        """Other codes than the subject's; `salt` tells them apart."""
        return random_codes(self.layout, num_frames, (self.seed, salt))

    def noise(self, num_frames: int, salt: int) -> Samples:
        """A sound to encode: noise, each frame of a loudness of its own."""
        generator = np.random.default_rng((self.seed, salt))
        loudness = 10 ** generator.uniform(*_LOUDNESS, num_frames)
        shape = (self.layout.channels, num_frames, self.layout.frame_len)
        samples = loudness[:, None] * generator.standard_normal(shape)
        return samples.reshape(len(samples), -1).astype(np.float32)

    def seconds(self, samples: NDArray[Any]) -> Sequence[NDArray[Any]]:
        """Cut into seconds; the last may be shorter."""
        rate = self.layout.sample_rate
        return [samples[:, at : at + rate] for at in range(0, samples.shape[1], rate)]


def random_codes(layout: Layout, num_frames: int, seed: Sequence[int]) -> Codes:
    shape = (num_frames, layout.codebooks)
    return np.random.default_rng(seed).integers(layout.codebook_size, size=shape, dtype=np.int32)


def decode_by(decode: DecodeNext, codes: Codes, size: int = _FEW) -> Samples:
    """All of a stream, `size` frames in a call."""
    parts = [decode(codes[at : at + size]) for at in range(0, len(codes), size)]
    return np.concatenate(parts, axis=1)
