"""The delay family as the engine sees it: text, instruction and voices in, frames of codes out."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from mosstalk.errors import UsageError
from mosstalk.models.moss_tts_delay.delay_pattern import Staircase
from mosstalk.models.moss_tts_delay.delay_state import Limits
from mosstalk.models.moss_tts_delay.members import member_of
from mosstalk.models.moss_tts_delay.model import DelayModel
from mosstalk.models.moss_tts_delay.prompt import Prompt
from mosstalk.models.moss_tts_delay.requests import prompt_maker
from mosstalk.models.moss_tts_delay.run import DelayRun
from mosstalk.models.moss_tts_delay.sampling import TEXT_SAMPLING, DelaySampling, retry_seed
from mosstalk.models.moss_tts_delay.session import DelaySession
from mosstalk.text.bpe_tokenizer import BpeTokenizer
from mosstalk.types import SpeechOptions, Voice

# About one run in fifty begins with text instead of speech (spec 5.7): so many in a row are not
# chance, and the last is left to go where it goes.
MAX_RETRIES = 4


class DelayUtterance:
    """One text whose prompt is prefilled in `session`.

    Attributes:
        lead_in: codes [frames, n_vq] of a recording that speech goes on from.
        retries: runs that began with text and were begun again with a derived seed.
    """

    def __init__(
        self, session: DelaySession, prompt: Prompt, start: DelayRun, sampling: DelaySampling
    ) -> None:
        config = start.state.config
        self.lead_in = prompt.lead_in
        self.retries = 0
        self._session = session
        self._rows = prompt.rows
        self._start = self._run = start
        self._sampling = self._first_sampling = sampling
        self._no_rows = self._staircase = Staircase(config.n_vq, config.audio_pad_code)

    def next_frame(self) -> NDArray[np.int32] | None:
        """Codes [n_vq] of the next frame; None when the model stops."""
        while self._run.state.stop is None:
            frame = self._step()
            if frame is not None:
                return frame
            if self._failed() and self.retries < MAX_RETRIES:
                self._retry()
        return None

    def _step(self) -> NDArray[np.int32] | None:
        """Draw one row and append it; the frame that it completes, if any."""
        self._run, row = self._run.draw(self._session, self._sampling)
        self._staircase, frame = self._staircase.push(row[1:])
        if self._run.state.stop is None:
            self._session.step(row)
        return frame

    def _failed(self) -> bool:
        state = self._run.state
        return state.began_in_text or state.stop == "no_audio"

    def _retry(self) -> None:
        """Begin again: the prompt is cached, its last row is computed once more."""
        self.retries += 1
        seed = retry_seed(self._first_sampling.seed, self.retries)
        self._sampling = replace(self._first_sampling, seed=seed)
        self._session.prefill(self._rows, reuse_rows=len(self._rows) - 1)
        self._run, self._staircase = self._start, self._no_rows


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
    ) -> DelayUtterance:
        """Prefill the prompt; what it shares with the last one is not computed again.

        Raises UsageError for options that this model cannot follow.
        """
        prompt = self._prompt(text, voices, options)
        limits = Limits(max_frames)
        session = self._prefilled(prompt, limits)
        start = DelayRun.start(self.model.config, prompt.rows, limits)
        return DelayUtterance(session, prompt, start, self._sampling(options, seed, chunk))

    def _prefilled(self, prompt: Prompt, limits: Limits) -> DelaySession:
        """A session that holds the prompt, with room for the longest run."""
        rows, config = prompt.rows, self.model.config
        budget = len(rows) + limits.max_rows(config.n_vq)
        if budget > config.max_position_embeddings:
            raise UsageError(
                f"the prompt's {len(rows)} rows and {limits.max_frames} frames are more than the "
                f"model's {config.max_position_embeddings} positions; lower --max-frames or "
                "shorten the text"
            )
        if self._kept is None:
            session, shared = self.model.session(), 0
            session.begin_generation(len(rows))
        else:
            held, session = self._kept
            shared = min(_num_equal(held, rows), len(rows) - 1)
            session = session.fork(max(len(rows), session.cached_positions))
        session.prefill(rows, reuse_rows=shared)
        self._kept = rows, session
        return session.fork(budget)

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
