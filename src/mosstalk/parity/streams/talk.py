"""One request in flight: its session of the language model, and its stream of the codec."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from mosstalk.codec.codec import DecodeNext
from mosstalk.codec.moss_audio_tokenizer.codec import MossAudioTokenizer
from mosstalk.models.row_session import RowSession
from mosstalk.parity.family.language_model import LanguageModel, Run
from mosstalk.parity.streams.requests import PREFIX_ROWS, Prompt, Request


@dataclass(slots=True)
class Trace:
    """What a request has been given so far."""

    ids: list[NDArray[np.int32]] = field(default_factory=list)  # a row, or a frame's given codes
    hidden: list[NDArray[np.float32]] = field(default_factory=list)  # after each row
    samples: list[NDArray[np.float32]] = field(default_factory=list)  # [channels, n] of each call


@dataclass(frozen=True, slots=True)
class Parts:
    """What all requests share; one of the two may be missing."""

    model: LanguageModel | None
    codec: MossAudioTokenizer | None

    def turns_for(self, frames: int) -> int:
        """Turns of a request in which so many frames become whole."""
        return frames if self.model is None else self.model.rows_for(frames)

    def run(self, prompt: Prompt, turns: int, voice: RowSession | None) -> Run:
        """A run after the prompt; it goes on from the prefilled `voice` where it can."""
        assert self.model is not None
        budget = len(prompt.rows) + turns
        if voice is not None and prompt.shares_prefix:
            session = voice.fork(budget)
            session.prefill(prompt.rows, reuse_rows=PREFIX_ROWS)
        else:
            session = self.model.session()
            session.begin_generation(budget)
            session.prefill(prompt.rows)
        return self.model.start(session, prompt.rows, prompt.drawing)

    def voice(self, prompts: list[Prompt]) -> RowSession | None:
        """The rows that requests share, prefilled once."""
        if self.model is None:
            return None
        shared = next(prompt for prompt in prompts if prompt.shares_prefix)
        session = self.model.session()
        session.begin_generation(PREFIX_ROWS)
        session.prefill(shared.rows[:PREFIX_ROWS])
        return session


class Talk:
    """A request that is advanced turn by turn: a row, or a frame of given codes. It begins with
    its first turn."""

    def __init__(
        self, parts: Parts, request: Request, turns: int, voice: RowSession | None = None
    ) -> None:
        self.request = request
        self.trace = Trace()
        self._run: Run | None = None
        self._parts = parts
        self._turns = turns
        self._voice = voice
        self._decode: DecodeNext | None = None
        self._pending: list[NDArray[np.int32]] = []

    @property
    def session(self) -> RowSession | None:
        """What holds the rows; None without a language model, and before the first turn."""
        return None if self._run is None else self._run.session

    def next(self) -> None:
        """Take one turn; samples come when a group of frames is whole."""
        if not self.trace.ids:
            self._begin()
        frame = self._advance()
        if frame is not None:
            self._pending.append(frame)
        is_last = len(self.trace.ids) == self._turns
        if self._pending and (is_last or len(self._pending) == self.request.group):
            self._hand_out()

    def cancel(self) -> None:
        """Give up: what the request holds is forgotten."""
        if self.session is not None:
            self.session.reset_cache()
        self._decode = None

    def take_over(self, session: RowSession) -> None:
        """Begin in a session that another request has left."""
        prompt, model = self.request.prompt, self._parts.model
        assert prompt is not None and model is not None
        session.begin_generation(len(prompt.rows) + self._turns)
        session.prefill(prompt.rows)
        self._run = model.start(session, prompt.rows, prompt.drawing)

    def _begin(self) -> None:
        prompt = self.request.prompt
        if prompt is not None and self._run is None:
            self._run = self._parts.run(prompt, self._turns, self._voice)
        if self._parts.codec is not None:
            self._decode = self._parts.codec.start(self._turns)

    def _advance(self) -> NDArray[np.int32] | None:
        """The next row or codes; the frame that is whole with them, if any."""
        if self._run is None:
            assert self.request.codes is not None
            given: NDArray[np.int32] = self.request.codes[len(self.trace.ids)]
            self.trace.ids.append(given)
            return given
        turn = self._run.next()
        assert self._run.session.hidden is not None
        self.trace.ids.append(turn.row)
        self.trace.hidden.append(self._run.session.hidden.copy())
        return turn.frame

    def _hand_out(self) -> None:
        if self._decode is not None:
            self.trace.samples.append(self._decode(np.stack(self._pending)))
        self._pending = []
