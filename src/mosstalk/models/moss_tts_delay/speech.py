"""The delay family as the engine sees it: text, instruction and voices in, frames of codes out."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from mosstalk.compute.seats import Seats
from mosstalk.compute.state import State
from mosstalk.errors import UsageError
from mosstalk.models.moss_tts_delay.delay_state import Limits
from mosstalk.models.moss_tts_delay.members import member_of
from mosstalk.models.moss_tts_delay.model import DelayModel
from mosstalk.models.moss_tts_delay.prompt import Prompt
from mosstalk.models.moss_tts_delay.requests import prompt_maker
from mosstalk.models.moss_tts_delay.run import DelayRun
from mosstalk.models.moss_tts_delay.sampling import TEXT_SAMPLING, DelaySampling
from mosstalk.models.moss_tts_delay.session import DelaySession
from mosstalk.models.moss_tts_delay.utterance import DelayUtterance, next_frames
from mosstalk.models.speech_model import NextFrame
from mosstalk.text.bpe_tokenizer import BpeTokenizer
from mosstalk.types import SpeechOptions, Voice

_SEAT_ROWS = 1280  # a prompt of 200 rows and the longest run by default fit


class DelaySpeech:
    """The language model with its tokeniser and prompts, and the prompt that was prefilled last."""

    default_max_frames = 1000  # 80 s; the reference's cap on rows (spec 5.4)
    default_max_tokens = 0  # a text is not divided: each part would get another voice
    needs_voice = False
    levels_references = True  # spec voicegen.md 6.6

    def __init__(self, model: DelayModel, tokenizer: BpeTokenizer) -> None:
        config = model.config
        self.model = model
        self.tokenizer = tokenizer
        self.member = member_of(config)
        self.max_voices = self.member.max_voices
        self.num_codebooks = config.n_vq
        self.codec_sample_rate = config.sampling_rate
        self._prompt = prompt_maker(self.member, config, tokenizer)
        self._kept: tuple[NDArray[np.int32], DelaySession] | None = None

    def count_tokens(self, text: str) -> int:
        return len(self.tokenizer.encode(text))

    def clean(self, text: str) -> tuple[str, tuple[str, ...]]:
        """The text without control characters and special tokens, and warnings about them."""
        return self.tokenizer.sanitise(text)

    def check(self, options: SpeechOptions) -> None:
        """Raise UsageError for options that this model cannot follow."""
        if options.num_codebooks not in (None, self.num_codebooks):
            raise UsageError(
                f"codebooks is {options.num_codebooks}, but this model draws all of its "
                f"{self.num_codebooks}"
            )
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
    ) -> DelayUtterance:
        """Build the prompt; what it shares with the last one is not computed again.

        Raises UsageError for options that this model cannot follow.
        """
        prompt = self._prompt(text, voices, options)
        limits = Limits(max_frames)
        budget = self._budget(prompt, limits)
        sampling = self._sampling(options, seed, chunk)
        start = DelayRun.start(self.model.config, prompt.rows, limits)
        prefix = self._prefix(prompt.rows)
        return DelayUtterance(prefix, prompt, budget, start, sampling, seats)

    def seats(self, num_streams: int) -> Seats:
        """For utterances that share passes over the backbone."""
        rows = min(_SEAT_ROWS, self.model.config.max_position_embeddings)
        return Seats(State(self.model.spec, rows, num_streams))

    def next_frames(self, utterances: Sequence[DelayUtterance]) -> list[NextFrame]:
        """One row of each, and the frame that it completes: several are needed for the first."""
        return next_frames(utterances)

    def _budget(self, prompt: Prompt, limits: Limits) -> int:
        """Rows that the longest run may take; raises UsageError where the model does not reach."""
        config = self.model.config
        budget = len(prompt.rows) + limits.max_rows(config.n_vq)
        if budget > config.max_position_embeddings:
            raise UsageError(
                f"the prompt's {len(prompt.rows)} rows and {limits.max_frames} frames are more "
                f"than the model's {config.max_position_embeddings} positions; lower --max-frames "
                "or shorten the text"
            )
        return budget

    def _prefix(self, rows: NDArray[np.int32]) -> DelaySession:
        """A session for the prompt's rows that holds those that the last prompt began with too."""
        if self._kept is None:
            session = self.model.session()
            session.begin_generation(len(rows))
        else:
            held, session = self._kept
            session = session.fork(max(len(rows), session.cached_positions))
            shared = min(_num_equal(held, rows), len(rows) - 1, session.cached_positions)
            session.truncate(shared)
        self._kept = rows, session
        return session

    def _sampling(self, options: SpeechOptions, seed: int, chunk: int) -> DelaySampling:
        given = {
            name: value
            for name in ("temperature", "top_k", "top_p", "repetition_penalty")
            if (value := getattr(options, name)) is not None
        }
        audio = replace(self.member.audio_sampling, **given)
        text = replace(TEXT_SAMPLING, temperature=0.0) if audio.greedy else TEXT_SAMPLING
        return DelaySampling(text, audio, seed, chunk)


def _num_equal(a: NDArray[np.int32], b: NDArray[np.int32]) -> int:
    """How many rows the two have in common at the start."""
    shortest = min(len(a), len(b))
    differs = (a[:shortest] != b[:shortest]).any(axis=1)
    return int(differs.argmax()) if differs.any() else shortest
