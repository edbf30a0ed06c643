"""The step loop: a text becomes audio by pieces of work, done alone or with those of other texts.

`speak` is a generator. It yields audio, and work that must be done before it is resumed: who drives
it decides what is done together.
"""

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosstalk.codec.codec import Codec, DecodeNext
from mosstalk.compute.seats import Seat, Seats
from mosstalk.models.speech_model import SpeechModel, Utterance
from mosstalk.stream import Progress
from mosstalk.text.split import TextChunk
from mosstalk.types import AudioChunk, SpeechOptions, Voice

_LEAD_IN_FRAMES = 16  # of a recording that are decoded in one piece of work


@dataclass(frozen=True, slots=True)
class SpeechRequest:
    """A text to be spoken, checked and divided."""

    parts: tuple[TextChunk, ...]
    voices: tuple[Voice, ...]
    options: SpeechOptions
    max_frames: int  # of each part
    seed: int
    warnings: tuple[str, ...]


@dataclass(slots=True)
class Work:
    """What a text waits for. `error`: why it could not be done."""

    error: Exception | None = field(default=None, init=False)
    is_done: bool = field(default=False, init=False)

    def fail(self, error: Exception) -> None:
        self.error, self.is_done = error, True


@dataclass(slots=True)
class Prefill(Work):
    """The rows of a prompt."""

    utterance: Utterance


@dataclass(slots=True)
class MakeFrame(Work):
    """The next frame of an utterance: its codes [codebooks], or None when the model stops."""

    utterance: Utterance
    codes: NDArray[np.int32] | None = field(default=None, init=False)


@dataclass(slots=True)
class Decoding:
    """A stream of the codec: in a seat, or else alone."""

    seat: Seat | None
    alone: DecodeNext | None


@dataclass(slots=True)
class Decode(Work):
    """Codes [frames, codebooks] to the samples [channels, n] that come next."""

    stream: Decoding
    codes: NDArray[np.int32]
    samples: NDArray[np.float32] = field(init=False)


Talk = Generator[AudioChunk | Work, None, None]


@dataclass(frozen=True, slots=True)
class Studio:
    """What texts are spoken with; with seats, they can be spoken together."""

    model: SpeechModel[Any]
    codec: Codec
    seats: Seats | None = None
    codec_seats: Seats | None = None

    @contextmanager
    def open(self, index: int, request: SpeechRequest) -> Iterator[tuple[Utterance, Decoding]]:
        """An utterance of a part of the text and its stream of the codec, while they are needed."""
        text, options, seed = request.parts[index].text, request.options, request.seed
        what = (text, index, request.voices, options, seed, request.max_frames)
        utterance = self.model.start(*what, seats=self.seats)
        seat = None if self.codec_seats is None else self.codec_seats.take()
        try:
            num_frames = len(utterance.lead_in) + request.max_frames
            alone = self.codec.start(num_frames) if seat is None else None
            yield utterance, Decoding(seat, alone)
        finally:
            utterance.close()
            if seat is not None and self.codec_seats is not None:
                self.codec_seats.give_back(seat)


def speak(request: SpeechRequest, studio: Studio, progress: Progress) -> Talk:
    """For each part of the text its prompt, then frame after frame, then its pause."""
    rate, channels = studio.codec.sample_rate, studio.codec.num_channels
    capped = False
    for index, part in enumerate(request.parts):
        made = progress.frames
        with studio.open(index, request) as (utterance, decoding):
            yield Prefill(utterance)
            for at in range(0, len(utterance.lead_in), _LEAD_IN_FRAMES):
                heard = utterance.lead_in[at : at + _LEAD_IN_FRAMES]
                yield Decode(decoding, heard)  # by the codec, not by the user
            pending: list[NDArray[np.int32]] = []
            is_last = False
            while not is_last:
                frame = MakeFrame(utterance)
                yield frame
                if frame.codes is not None:
                    progress.frames += 1
                    pending.append(frame.codes)
                is_last = frame.codes is None or progress.frames - made == request.max_frames
                if pending and (is_last or len(pending) >= progress.budget()):
                    audio = Decode(decoding, np.stack(pending))
                    yield audio
                    yield AudioChunk(audio.samples, rate, index)
                    pending = []
            progress.retries += utterance.retries
        if progress.frames - made == request.max_frames:
            capped = True
            progress.warnings.append(
                f"part {index + 1} of the text was cut at {request.max_frames} frames; "
                "raise --max-frames, or try another seed"
            )
        if part.pause_seconds:
            silence = np.zeros((channels, round(part.pause_seconds * rate)), np.float32)
            yield AudioChunk(silence, rate, index, is_pause=True)
    progress.stop_reason = "max_frames" if capped else "end"
    if not progress.frames:
        progress.stop_reason = "no_audio"


def resume(talk: Talk, done: Work | None = None) -> AudioChunk | Work | None:
    """Go on after a piece of work: the next one, or audio; None when all is spoken.

    Raises what the work failed with; the talk is over then.
    """
    if done is not None and done.error is not None:
        return talk.throw(done.error)
    return next(talk, None)


def prefill(works: Sequence[Prefill], max_rows: int | None = None) -> None:
    """Compute prompts in order, up to `max_rows` rows in all."""
    for work in works:
        utterance = work.utterance
        left = utterance.rows_left
        if max_rows is not None and max_rows <= 0:
            return
        try:
            utterance.prefill(left if max_rows is None else min(left, max_rows))
        except Exception as error:
            work.fail(error)
            continue
        if max_rows is not None:
            max_rows -= left - utterance.rows_left
        work.is_done = not utterance.rows_left


def make_frames(works: Sequence[MakeFrame], model: SpeechModel[Any]) -> None:
    """A pass for all utterances: a frame of each, or nothing yet where a model needs several."""
    try:
        frames = model.next_frames([work.utterance for work in works])
    except Exception as error:
        for work in works:
            work.fail(error)
        return
    for work, frame in zip(works, frames, strict=True):
        if isinstance(frame, Exception):
            work.fail(frame)
        else:
            work.codes = frame
            work.is_done = frame is not None or work.utterance.has_stopped


def decode(works: Sequence[Decode], codec: Codec) -> None:
    """The samples of all; seats share passes over the weights."""
    seated = [(work.stream.seat, work) for work in works if work.stream.seat is not None]
    try:
        if seated:
            decoded = codec.decode_seats([(seat, work.codes) for seat, work in seated])
            for (_, work), samples in zip(seated, decoded, strict=True):
                work.samples, work.is_done = samples, True
        for work in works:
            if work.stream.alone is not None:
                work.samples, work.is_done = work.stream.alone(work.codes), True
    except Exception as error:
        for work in works:
            if not work.is_done:
                work.fail(error)


def do_alone(work: Work, studio: Studio) -> None:
    """Do a piece of work, or as much of it as one pass does."""
    match work:
        case Prefill():
            prefill([work])
        case MakeFrame():
            make_frames([work], studio.model)
        case Decode():
            decode([work], studio.codec)
