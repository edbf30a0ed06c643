"""One request in flight: its session of the language model, and its stream of the codec."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from mosstalk.codec.codec import DecodeNext
from mosstalk.codec.moss_audio_tokenizer.codec import MossAudioTokenizer
from mosstalk.models.moss_tts_nano.model import NanoModel
from mosstalk.models.moss_tts_nano.session import NanoSession
from mosstalk.parity.streams.requests import PREFIX_ROWS, Prompt, Request


@dataclass(slots=True)
class Trace:
    """What a request has been given so far."""

    codes: list[NDArray[np.int32]] = field(default_factory=list)  # [n_vq] of each frame
    hidden: list[NDArray[np.float32]] = field(default_factory=list)  # after each frame
    samples: list[NDArray[np.float32]] = field(default_factory=list)  # [channels, n] of each call


@dataclass(frozen=True, slots=True)
class Parts:
    """What all requests share; one of the two may be missing."""

    model: NanoModel | None
    codec: MossAudioTokenizer | None

    def session(self, prompt: Prompt, frames: int, voice: NanoSession | None) -> NanoSession:
        """A session that holds the prompt; it goes on from the prefilled `voice` where it can."""
        assert self.model is not None
        budget = len(prompt.rows) + frames
        if voice is not None and prompt.shares_prefix:
            session = voice.fork(budget)
            session.num_codebooks = prompt.num_codebooks
            session.prefill(prompt.rows, reuse_rows=PREFIX_ROWS)
            return session
        session = self.model.session(num_codebooks=prompt.num_codebooks)
        session.begin_generation(budget)
        session.prefill(prompt.rows)
        return session

    def voice(self, prompts: list[Prompt]) -> NanoSession | None:
        """The rows that requests share, prefilled once."""
        if self.model is None:
            return None
        shared = next(prompt for prompt in prompts if prompt.shares_prefix)
        session = self.model.session()
        session.begin_generation(PREFIX_ROWS)
        session.prefill(shared.rows[:PREFIX_ROWS])
        return session


class Talk:
    """A request that is advanced frame by frame. It begins with its first frame.

    Where the model would stop, the codes it has drawn are appended by a step: a check always gets
    its frames.
    """

    def __init__(
        self, parts: Parts, request: Request, frames: int, voice: NanoSession | None = None
    ) -> None:
        self.request = request
        self.trace = Trace()
        self.session: NanoSession | None = None
        self._parts = parts
        self._frames = frames
        self._voice = voice
        self._decode: DecodeNext | None = None
        self._pending: list[NDArray[np.int32]] = []

    def next(self) -> None:
        """Make one frame; its samples come with those of its group."""
        if not self.trace.codes:
            self._begin()
        codes = self._next_codes()
        self.trace.codes.append(codes)
        self._pending.append(codes)
        is_last = len(self.trace.codes) == self._frames
        if is_last or len(self._pending) == self.request.group:
            self._hand_out()

    def cancel(self) -> None:
        """Give up: what the request holds is forgotten."""
        if self.session is not None:
            self.session.reset_cache()
        self._decode = None

    def take_over(self, session: NanoSession) -> None:
        """Begin in a session that another request has left."""
        prompt = self.request.prompt
        assert prompt is not None
        session.num_codebooks = prompt.num_codebooks
        session.begin_generation(len(prompt.rows) + self._frames)
        session.prefill(prompt.rows)
        self.session = session

    def _begin(self) -> None:
        prompt = self.request.prompt
        if prompt is not None and self.session is None:
            self.session = self._parts.session(prompt, self._frames, self._voice)
        if self._parts.codec is not None:
            self._decode = self._parts.codec.start(self._frames)

    def _next_codes(self) -> NDArray[np.int32]:
        session, prompt, model = self.session, self.request.prompt, self._parts.model
        if session is None or prompt is None or model is None:
            assert self.request.codes is not None
            given: NDArray[np.int32] = self.request.codes[len(self.trace.codes)]
            return given
        codes = session.next_frame(prompt.sampling)
        if codes is None:
            assert session.hidden is not None
            decoder = model.frame_decoder(session.num_codebooks)
            frame = len(self.trace.codes)
            _, codes, _ = decoder.run(session.state, session.hidden, frame, prompt.sampling)
            session.step(model.config.audio_assistant_slot_token_id, codes.tolist())
        assert session.hidden is not None
        self.trace.hidden.append(session.hidden.copy())
        return codes

    def _hand_out(self) -> None:
        if self._decode is not None:
            count = self.request.prompt.num_codebooks if self.request.prompt else None
            codes = np.stack(self._pending)[:, :count]
            self.trace.samples.append(self._decode(codes))
        self._pending = []
