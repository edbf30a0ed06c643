"""MOSS-TTS-Nano as the engine sees it: text and voice in, frames of codes out."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from mosstalk.compute.sampling import SamplingParams
from mosstalk.errors import UsageError
from mosstalk.models.moss_tts_nano.frame_decoder import FrameSampling
from mosstalk.models.moss_tts_nano.model import NanoModel
from mosstalk.models.moss_tts_nano.prompt import Prompt, PromptBuilder
from mosstalk.models.moss_tts_nano.session import NanoSession
from mosstalk.text.tokenizer import Tokenizer
from mosstalk.types import SpeechOptions, Voice

# Of the stop decision; spec nano.md 3.8.
_TEXT_SAMPLING = SamplingParams(temperature=1.0, top_k=50, top_p=1.0)
_KEPT_PREFIXES = 4  # voices whose prefilled prompt prefix is kept


class NanoUtterance:
    """One chunk of text whose prompt is prefilled."""

    retries = 0  # a run that ends before speech is what the model wanted

    def __init__(
        self, session: NanoSession, sampling: FrameSampling, lead_in: NDArray[np.int32]
    ) -> None:
        self.lead_in = lead_in
        self._session = session
        self._sampling = sampling

    def next_frame(self) -> NDArray[np.int32] | None:
        """Codes [active codebooks] of the next frame; None when the model stops."""
        codes = self._session.next_frame(self._sampling)
        return None if codes is None else codes[: self._session.num_codebooks]


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
        self._prefixes: dict[bytes, NanoSession] = {}

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
        if options.instruction is not None or options.language is not None:
            raise UsageError(
                "this model clones a voice and is told no instruction or language; describe a "
                "voice with `mosstalk design`"
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
    ) -> NanoUtterance:
        """Prefill the prompt of one chunk; a voice's part of it is computed once and kept.

        Raises UsageError for options that this model cannot follow.
        """
        num_codebooks = options.num_codebooks or self.num_codebooks
        voice = voices[0] if voices else None
        codes = None if voice is None else voice.codes[:, :num_codebooks]
        prompt = self._prompt(text, voice, codes, options)
        prefix = self._prefilled_prefix(prompt, num_codebooks)
        session = prefix.fork(self._budget(prompt, max_frames))
        session.prefill(prompt.rows, reuse_rows=prompt.num_shared)
        continues = codes is not None and options.mode == "continuation"
        lead_in = codes if continues else np.empty((0, num_codebooks), np.int32)
        assert lead_in is not None
        return NanoUtterance(session, self._sampling(options, seed, chunk), lead_in)

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

    def _prefilled_prefix(self, prompt: Prompt, num_codebooks: int) -> NanoSession:
        """A session that holds the shared rows; the least recently used is dropped."""
        shared = prompt.rows[: prompt.num_shared]
        key = shared.tobytes() + bytes([num_codebooks])
        session = self._prefixes.pop(key, None)
        if session is None:
            session = self.model.session(num_codebooks=num_codebooks)
            session.begin_generation(len(shared))
            session.prefill(shared)
        self._prefixes[key] = session
        if len(self._prefixes) > _KEPT_PREFIXES:
            del self._prefixes[next(iter(self._prefixes))]
        return session

    def _sampling(self, options: SpeechOptions, seed: int, chunk: int) -> FrameSampling:
        given = {
            name: value
            for name in ("temperature", "top_k", "top_p", "repetition_penalty")
            if (value := getattr(options, name)) is not None
        }
        audio = replace(self.model.config.audio_sampling, **given)
        text = replace(_TEXT_SAMPLING, temperature=0.0) if audio.greedy else _TEXT_SAMPLING
        return FrameSampling(text, audio, seed, chunk)
