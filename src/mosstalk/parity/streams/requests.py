"""What is asked for: prompts, sampling and codes of random requests, all different."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mosstalk.compute.sampling import SamplingParams
from mosstalk.models.moss_tts_nano.config import NanoConfig
from mosstalk.models.moss_tts_nano.frame_decoder import FrameSampling
from mosstalk.parity.kv_cache.subject import random_rows

PREFIX_ROWS = 12  # that requests of one voice share
_MOST_ROWS = 24  # of a request's own
# A penalty everywhere, so that which ids a request has seen decides about its codes.
_GREEDY = SamplingParams(temperature=0.0, repetition_penalty=1.5)
_SAMPLED = SamplingParams(temperature=0.8, top_k=25, top_p=0.95, repetition_penalty=1.2)
_HOT = SamplingParams(temperature=2.0, repetition_penalty=1.1)
_GATE = SamplingParams(temperature=1.0, top_k=50)


@dataclass(frozen=True, slots=True)
class Prompt:
    """What a language model is asked.

    Attributes:
        rows: int32 [n, 1 + n_vq].
        shares_prefix: its first PREFIX_ROWS rows are those of the voice, which may be prefilled
            once for all.
        num_codebooks: that are generated.
    """

    rows: NDArray[np.int32]
    shares_prefix: bool
    sampling: FrameSampling
    num_codebooks: int


@dataclass(frozen=True, slots=True)
class Request:
    """One of the streams. Without a language model its codes are given."""

    name: str
    group: int  # frames that the codec gets in a call
    prompt: Prompt | None
    codes: NDArray[np.int32] | None  # [frames, codebooks]

    @property
    def sampling(self) -> str:
        """In a word."""
        if self.prompt is None:
            return "given codes"
        return "greedy" if self.prompt.sampling.audio.greedy else "sampled"

    def drawn_anew(self, seed: int) -> "Request":
        """The same prompt, with other random numbers, and hot enough to show it."""
        assert self.prompt is not None
        sampling = replace(self.prompt.sampling, audio=_HOT, seed=seed)
        return replace(self, prompt=replace(self.prompt, sampling=sampling))


def draw_prompts(config: NanoConfig, count: int, seed: int) -> list[Prompt]:
    """Of one voice or none, greedy and sampled, of all codebooks or half of them."""
    generator = np.random.default_rng((seed, 1))
    voice = random_rows(config, PREFIX_ROWS, seed)
    prompts = []
    for i in range(count):
        rows = random_rows(config, int(generator.integers(4, _MOST_ROWS + 1)), seed + 1 + i)
        shares = i % 2 == 0
        text, audio = ((_GREEDY, _GREEDY), (_GATE, _SAMPLED), (_GATE, _HOT))[(i + 1) % 3]
        sampling = FrameSampling(text, audio, seed + i)
        books = (config.n_vq + 1) // 2 if i % 4 == 3 else config.n_vq
        prompts.append(
            Prompt(np.concatenate([voice, rows]) if shares else rows, shares, sampling, books)
        )
    return prompts


def most_rows() -> int:
    """Of any prompt."""
    return PREFIX_ROWS + _MOST_ROWS
