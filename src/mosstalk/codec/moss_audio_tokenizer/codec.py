"""The codec: audio to codes, codes to audio, whole or in a stream."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from mosstalk.checkpoint.storage import StoredTensor
from mosstalk.codec.codec import DecodeNext
from mosstalk.codec.moss_audio_tokenizer.config import CodecConfig, Stage, parse_config
from mosstalk.codec.moss_audio_tokenizer.quantizer import record_decode, record_encode
from mosstalk.codec.moss_audio_tokenizer.rings import drop_as_rings
from mosstalk.codec.moss_audio_tokenizer.stages import (
    MAX_FRAMES,
    Span,
    record_modules,
    run_frames,
    run_spans,
    state_spec,
)
from mosstalk.codec.moss_audio_tokenizer.weights import CodecWeights, load_weights
from mosstalk.compute.backend import Backend
from mosstalk.compute.program import Program
from mosstalk.compute.seats import Seat, Seats
from mosstalk.compute.state import State
from mosstalk.errors import UsageError

NO_CODE = -1  # stands for a codebook that is not used


class Encoder:
    """Samples to codes. Raises UsageError for weights that can only decode."""

    def __init__(
        self, config: CodecConfig, weights: CodecWeights, backend: Backend, taps: bool = False
    ) -> None:
        if weights.encoder is None:
            raise UsageError(
                "this codec was opened to decode only and cannot encode a recording; open it whole"
            )
        self._config = config
        self._spec = state_spec(config.encoder)
        program = Program(MAX_FRAMES)
        self._samples = program.input("samples", 1, config.frame_len * config.num_channels)
        x, self._placed = record_modules(
            program,
            self._samples,
            config.encoder,
            weights.encoder.stages,
            folds=True,
            taps="encoder" if taps else None,
        )
        self._codes = program.input("codes", config.num_codebooks, is_int=True)
        record_encode(program, x, self._codes, weights.encoder, weights.codebooks)
        self.outputs = program.outputs
        self.program = backend.build(program)

    def encode(self, samples: NDArray[np.float32]) -> NDArray[np.int32]:
        """Codes [frames, codebooks] of `samples` [channels, n]; a last partial frame is dropped."""
        channels, num_samples = samples.shape
        frame_values = self._config.frame_len * channels
        num_frames = num_samples // self._config.frame_len
        state = State(self._spec, num_frames)
        stream = np.ascontiguousarray(samples.T).reshape(-1)  # channels interleaved
        codes = np.empty((num_frames, self._config.num_codebooks), np.int32)
        for start in range(0, num_frames, MAX_FRAMES):
            count = min(MAX_FRAMES, num_frames - start)
            values = stream[start * frame_values : (start + count) * frame_values]
            self.program.array(self._samples)[: count * frame_values, 0] = values
            run_frames(self.program, state, self._placed, count)
            codes[start : start + count] = self.program.array(self._codes)[:count]
        return codes


class Decoder:
    """Codes to samples. It holds no state: a stream's state is made by `new_state`."""

    def __init__(
        self, config: CodecConfig, weights: CodecWeights, backend: Backend, taps: bool = False
    ) -> None:
        self._config = config
        self._spec = state_spec(config.decoder)
        program = Program(MAX_FRAMES)
        self._codes = program.input("codes", config.num_codebooks, is_int=True)
        x = program.output("vectors", record_decode(program, self._codes, weights))
        x, self._placed = record_modules(
            program,
            x,
            config.decoder,
            weights.decoder,
            folds=False,
            taps="decoder" if taps else None,
        )
        self._samples = program.output("samples", x)
        self.outputs = program.outputs
        self.program = backend.build(program)

    def new_state(self, num_frames: int | None = None, num_streams: int = 1) -> State:
        """Empty streams; of at most `num_frames` frames if given, which saves memory."""
        windows = max((cache.window for cache in self._spec.caches), default=0)
        capacity = windows + MAX_FRAMES if num_frames is None else num_frames
        return State(self._spec, capacity, num_streams)

    def decode(self, state: State, codes: NDArray[np.int32]) -> NDArray[np.float32]:
        """The samples [channels, frames * frame_len] that follow those the state has seen.

        `codes` [frames, n]: the first n codebooks. The same bits whatever the frames are split
        into.
        """
        return self._decode(state, codes, None)

    def decode_chunk(self, state: State, codes: NDArray[np.int32]) -> NDArray[np.float32]:
        """The samples that follow, as the original decodes one chunk of a stream.

        Its layers see less than their windows (see rings.py), so what the frames are split into
        changes the samples. A stream is decoded by `decode` or by this, not by both.

        Raises UsageError for a chunk that is longer than a layer's window.
        """
        stages = [module for module in self._config.decoder if isinstance(module, Stage)]
        longest = min(stage.window // stage.multiple for stage in stages)
        if len(codes) > longest:
            raise UsageError(
                f"a chunk of {len(codes)} frames is longer than the codec's context; "
                f"give at most {longest}"
            )
        return self._decode(state, codes, drop_as_rings(state, self._config.decoder, len(codes)))

    def decode_streams(
        self, state: State, parts: Sequence[tuple[int, NDArray[np.int32]]]
    ) -> list[NDArray[np.float32]]:
        """`decode` for some streams of the state together: (stream, codes) to samples of each.

        Up to MAX_FRAMES frames share a pass over the weights. The same bits as one by one.
        """
        samples = [[np.empty((self._config.num_channels, 0), np.float32)] for _ in parts]
        queue = [
            (i, stream, codes[at : at + MAX_FRAMES])
            for i, (stream, codes) in enumerate(parts)
            for at in range(0, len(codes), MAX_FRAMES)
        ]
        while queue:
            call = _first_call(queue)
            del queue[: len(call)]
            self._place_codes([codes for _, _, codes in call])
            spans = [Span(stream, len(codes)) for _, stream, codes in call]
            run_spans(self.program, state, self._placed, spans)
            at = 0
            for i, _, codes in call:
                samples[i].append(self._samples_of(at, len(codes)))
                at += len(codes)
        return [np.concatenate(pieces, axis=1) for pieces in samples]

    def _decode(
        self, state: State, codes: NDArray[np.int32], dropped: Sequence[int] | None
    ) -> NDArray[np.float32]:
        out = [np.empty((self._config.num_channels, 0), np.float32)]
        for start in range(0, len(codes), MAX_FRAMES):
            part = codes[start : start + MAX_FRAMES]
            self._place_codes([part])
            run_frames(self.program, state, self._placed, len(part), dropped)
            out.append(self._samples_of(0, len(part)))
        return np.concatenate(out, axis=1)

    def _place_codes(self, parts: Sequence[NDArray[np.int32]]) -> None:
        """The codes of a call; of each part the first codebooks."""
        given, at = self.program.array(self._codes), 0
        for codes in parts:
            frames = given[at : at + len(codes)]
            frames[:] = NO_CODE
            frames[:, : codes.shape[1]] = codes
            at += len(codes)

    def _samples_of(self, first_frame: int, num_frames: int) -> NDArray[np.float32]:
        """A copy of the samples [channels, n] of some frames of the last call."""
        channels = self._config.num_channels
        frame_values = self._config.frame_len * channels
        values = self.program.array(self._samples)[
            first_frame * frame_values : (first_frame + num_frames) * frame_values, 0
        ]
        samples: NDArray[np.float32] = values.reshape(-1, channels).T.copy()
        return samples


def _first_call(
    queue: Sequence[tuple[int, int, NDArray[np.int32]]],
) -> list[tuple[int, int, NDArray[np.int32]]]:
    """The first of the parts that fit into one call, each of another stream."""
    call, frames, streams = [], 0, set()
    for i, stream, codes in queue:
        frames += len(codes)
        if frames > MAX_FRAMES or stream in streams:
            break
        call.append((i, stream, codes))
        streams.add(stream)
    return call


class MossAudioTokenizer:
    """A codec checkpoint, ready to run; the encoder is recorded at first use.

    `decode_only` neither needs nor reads the encoder's tensors, which are half of them.
    """

    def __init__(
        self,
        config: Mapping[str, object],
        tensors: Mapping[str, StoredTensor],
        backend: Backend,
        *,
        decode_only: bool = False,
    ) -> None:
        self.config = parse_config(config)
        self.weights = load_weights(self.config, tensors, decode_only=decode_only)
        self.backend = backend
        self.sample_rate = self.config.sample_rate
        self.num_channels = self.config.num_channels
        self.frame_len = self.config.frame_len
        self.num_codebooks = self.config.num_codebooks
        self.decoder = Decoder(self.config, self.weights, backend)
        self._encoder: Encoder | None = None

    @property
    def encoder(self) -> Encoder:
        if self._encoder is None:
            self._encoder = Encoder(self.config, self.weights, self.backend)
        return self._encoder

    def encode(self, samples: NDArray[np.float32]) -> NDArray[np.int32]:
        """Codes [frames, codebooks] of samples [channels, n]; a partial frame is dropped.

        The codebooks are residual: the first n columns are the codes for n codebooks.

        Raises UsageError for a codec that was opened to decode only.
        """
        return self.encoder.encode(samples)

    def decode(
        self, codes: NDArray[np.int32], reference_chunk_seconds: float | None = None
    ) -> NDArray[np.float32]:
        """The samples [channels, frames * frame_len] of whole `codes` [frames, n].

        Every layer sees its whole window, as in a stream. With `reference_chunk_seconds` it sees
        what it does in the original's decoder by chunks of this length, which its processor uses
        with 8.0 (spec voicegen.md 6.5); up to one chunk both are the same.

        Raises UsageError for a chunk that is not a whole number of frames, or longer than the
        codec's context.
        """
        if reference_chunk_seconds is None:
            return self.start(len(codes))(codes)
        num_samples = reference_chunk_seconds * self.sample_rate
        chunk = round(num_samples / self.frame_len)
        if chunk < 1 or round(num_samples) != chunk * self.frame_len:
            raise UsageError(
                f"a chunk of {reference_chunk_seconds:g} s is no whole number of frames; give a "
                f"multiple of {self.frame_len / self.sample_rate:g} s"
            )
        state = self.decoder.new_state(len(codes))
        parts = [codes[at : at + chunk] for at in range(0, max(1, len(codes)), chunk)]
        samples = [self.decoder.decode_chunk(state, part) for part in parts]
        return np.concatenate(samples, axis=1)

    def start(self, max_frames: int) -> DecodeNext:
        """A decoding stream of at most `max_frames` frames, with a state of its own."""
        state = self.decoder.new_state(max_frames)
        return lambda codes: self.decoder.decode(state, codes)

    def seats(self, num_streams: int) -> Seats:
        """For decoding streams of any length that share passes over the weights."""
        return Seats(self.decoder.new_state(num_streams=num_streams))

    def decode_seats(
        self, parts: Sequence[tuple[Seat, NDArray[np.int32]]]
    ) -> list[NDArray[np.float32]]:
        """Next samples of seats of one state, each its own: (seat, codes) to samples of each."""
        return self.decoder.decode_streams(
            parts[0][0].state, [(seat.stream, codes) for seat, codes in parts]
        )
