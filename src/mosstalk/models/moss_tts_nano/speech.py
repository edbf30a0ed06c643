"""MOSS-TTS-Nano as the engine sees it: text and voice in, frames of codes out."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mosstalk.compute.sampling import SamplingParams
from mosstalk.compute.seats import Seats
from mosstalk.compute.state import State
from mosstalk.errors import UsageError
from mosstalk.models.moss_tts_nano.frame_decoder import FrameSampling
from mosstalk.models.moss_tts_nano.model import NanoModel
from mosstalk.models.moss_tts_nano.prompt import Prompt, PromptBuilder
from mosstalk.models.moss_tts_nano.session import NanoSession, next_frames
from mosstalk.models.speech_model import NextFrame
from mosstalk.text.tokenizer import Tokenizer
from mosstalk.types import SpeechOptions, Voice

# Of the stop decision; spec nano.md 3.8.
_TEXT_SAMPLING = SamplingParams(temperature=1.0, top_k=50, top_p=1.0)
_KEPT_PREFIXES = 4  # voices whose prefilled prompt prefix is kept, or one for each seat
_SEAT_ROWS = 2048  # the longest voice (30 s), a part of a text and two minutes of speech fit


@dataclass(frozen=True, slots=True)
class Prefix:
    """Rows that all texts of a voice begin with, and the session that holds them when prefilled."""

    session: NanoSession
    rows: NDArray[np.int32]  # [n, 1 + n_vq]

    @property
    def rows_left(self) -> int:
        return len(self.rows) - self.session.cached_positions


class NanoUtterance:
    """One chunk of text: its prompt `rows` are prefilled after `prefix`, then frames follow.

    Its session has room for `budget` rows; it is that of `seat`, where there is one.
    """

    retries = 0  # a run that ends before speech is what the model wanted

    def __init__(
        self,
        prefix: Prefix,
        rows: NDArray[np.int32],
        budget: int,
        sampling: FrameSampling,
        lead_in: NDArray[np.int32],
        seats: Seats | None = None,
    ) -> None:
        self.lead_in = lead_in
        self.has_stopped = False
        self.sampling = sampling
        self._prefix = prefix
        self._rows = rows
        self._budget = budget
        self._seats = seats
        self._seat = None if seats is None else seats.take(budget)
        self._session: NanoSession | None = None

    @property
    def session(self) -> NanoSession:
        """Holds the whole prompt, or all of the prefix that is prefilled."""
        return self._session or self._prefix.session

    @property
    def rows_left(self) -> int:
        """Rows of the prompt that are still to be computed."""
        return max(0, len(self._rows) - self.session.cached_positions)

    def prefill(self, max_rows: int) -> None:
        """Compute up to `max_rows` more rows, those of the prefix first, where nobody has yet."""
        prefix = self._prefix
        if self._session is None:
            max_rows -= prefix.session.extend(prefix.rows, max_rows)
            if prefix.rows_left:
                return
            self._session = prefix.session.fork(self._budget, self._seat)
        self._session.extend(self._rows, max_rows)

    def next_frame(self) -> NDArray[np.int32] | None:
        """Codes [active codebooks] of the next frame; None when the model stops."""
        self.prefill(self.rows_left)
        return self.take(self.session.next_frame(self.sampling))

    def take(self, codes: NDArray[np.int32] | None) -> NDArray[np.int32] | None:
        """What `next_frame` makes of a frame of the session."""
        self.has_stopped = codes is None
        return None if codes is None else codes[: self.session.num_codebooks]

    def close(self) -> None:
        """Give the seat back."""
        if self._seats is not None and self._seat is not None:
            self._seats.give_back(self._seat)
        self._seat = None


class NanoSpeech:
    """The language model with its tokeniser, prompts and prefilled prefixes."""

    max_voices = 1
    levels_references = False
    default_max_frames = 375  # 30 s; spec nano.md 6
    default_max_tokens = 75

    def __init__(self, model: NanoModel, tokenizer: Tokenizer) -> None:
        self.model = model
        self.tokenizer = tokenizer
        self.prompts = PromptBuilder(model.config, tokenizer)
        self.num_codebooks = model.config.n_vq
        self.codec_sample_rate = model.config.audio_tokenizer_sample_rate
        self.needs_voice = model.config.needs_voice
        self._prefixes: dict[bytes, Prefix] = {}
        self._kept_prefixes = _KEPT_PREFIXES

    def count_tokens(self, text: str) -> int:
        return len(self.tokenizer.encode(text))

    def clean(self, text: str) -> tuple[str, tuple[str, ...]]:
        """The text without control characters and special tokens, and warnings about them."""
        return self.tokenizer.sanitise(text)

    def check(self, options: SpeechOptions) -> None:
        """Raise UsageError for options that this model cannot follow."""
        if (options.num_codebooks or 1) > self.num_codebooks:
            raise UsageError(
                f"codebooks is {options.num_codebooks}, but this model has {self.num_codebooks}"
            )
        if options.instruction is not None:
            raise UsageError(
                "this model clones a voice and is told no instruction; describe a voice with "
                "`mosstalk design`"
            )
        if options.force_audio_start:
            raise UsageError("this model always starts with speech; leave --force-audio-start out")
        self._sampling(options, seed=0, chunk=0)

    def start(
        self,
        text: str,
        chunk: int,
        voices: Sequence[Voice],
        options: SpeechOptions,
        seed: int,
        max_frames: int,
        seats: Seats | None = None,
    ) -> NanoUtterance:
        """Build the prompt of one chunk; a voice's part of it is computed once and kept.

        Raises UsageError for options that this model cannot follow.
        """
        num_codebooks = options.num_codebooks or self.num_codebooks
        voice = voices[0] if voices else None
        codes = None if voice is None else voice.codes[:, :num_codebooks]
        prompt = self._prompt(text, voice, codes, options)
        continues = codes is not None and options.mode == "continuation"
        lead_in = codes if continues else np.empty((0, num_codebooks), np.int32)
        assert lead_in is not None
        budget = self._budget(prompt, max_frames)
        sampling = self._sampling(options, seed, chunk)
        prefix = self._prefix(prompt, num_codebooks)
        return NanoUtterance(prefix, prompt.rows, budget, sampling, lead_in, seats)

    def seats(self, num_streams: int) -> Seats:
        """For utterances that share passes over the weights."""
        self._kept_prefixes = max(self._kept_prefixes, num_streams)
        rows = min(_SEAT_ROWS, self.model.config.max_position_embeddings)
        return Seats(State(self.model.spec, rows, num_streams))

    def next_frames(self, utterances: Sequence[NanoUtterance]) -> list[NextFrame]:
        """The next frame of each; seats of as many codebooks share a pass over the weights."""
        groups: dict[tuple[int, int], list[int]] = {}
        for i, utterance in enumerate(utterances):
            session = utterance.session
            groups.setdefault((id(session.state), session.num_codebooks), []).append(i)
        made: list[NextFrame] = [None] * len(utterances)
        for group in groups.values():
            if len(group) == 1:
                made[group[0]] = utterances[group[0]].next_frame()
                continue
            members = [utterances[i] for i in group]
            drawn = next_frames([u.session for u in members], [u.sampling for u in members])
            for i, utterance, codes in zip(group, members, drawn, strict=True):
                made[i] = utterance.take(codes)
        return made

    def _prompt(
        self,
        text: str,
        voice: Voice | None,
        codes: NDArray[np.int32] | None,
        options: SpeechOptions,
    ) -> Prompt:
        if options.mode == "continuation":
            if voice is None or codes is None or not voice.transcript:
                raise UsageError(
                    "continuation needs a voice with a transcript; add one with "
                    "`mosstalk voices add NAME CLIP --transcript TEXT`"
                )
            return self.prompts.continuation(text, codes, voice.transcript)
        return self.prompts.plain(text) if codes is None else self.prompts.clone(text, codes)

    def _budget(self, prompt: Prompt, max_frames: int) -> int:
        """Rows that the chunk may take; raises UsageError where the model does not reach."""
        budget = len(prompt.rows) + max_frames
        longest = self.model.config.max_position_embeddings
        if budget > longest:
            raise UsageError(
                f"the prompt's {len(prompt.rows)} rows and {max_frames} frames are more "
                f"than the model's {longest} positions; lower --max-frames or shorten the text"
            )
        return budget

    def _prefix(self, prompt: Prompt, num_codebooks: int) -> Prefix:
        """That of the prompt's shared rows; the least recently used is dropped."""
        shared = prompt.rows[: prompt.num_shared]
        key = shared.tobytes() + bytes([num_codebooks])
        prefix = self._prefixes.pop(key, None)
        if prefix is None:
            session = self.model.session(num_codebooks=num_codebooks)
            session.begin_generation(len(shared))
            prefix = Prefix(session, shared)
        self._prefixes[key] = prefix
        if len(self._prefixes) > self._kept_prefixes:
            del self._prefixes[next(iter(self._prefixes))]
        return prefix

    def _sampling(self, options: SpeechOptions, seed: int, chunk: int) -> FrameSampling:
        given = {
            name: value
            for name in ("temperature", "top_k", "top_p", "repetition_penalty")
            if (value := getattr(options, name)) is not None
        }
        audio = replace(self.model.config.audio_sampling, **given)
        text = replace(_TEXT_SAMPLING, temperature=0.0) if audio.greedy else _TEXT_SAMPLING
        return FrameSampling(text, audio, seed, chunk)
