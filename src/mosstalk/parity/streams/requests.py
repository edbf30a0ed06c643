"""What is asked for: prompts, sampling and codes of random requests, all different."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mosstalk.compute.sampling import SamplingParams
from mosstalk.parity.family.language_model import Drawing, LanguageModel

PREFIX_ROWS = 12  # that requests of one voice share
_MOST_ROWS = 24  # of a request's own
# A penalty everywhere, so that which ids a request has seen decides about its codes.
_GREEDY = SamplingParams(temperature=0.0, repetition_penalty=1.5)
_SAMPLED = SamplingParams(temperature=0.8, top_k=25, top_p=0.95, repetition_penalty=1.2)
_HOT = SamplingParams(temperature=2.0, repetition_penalty=1.1)
_TEXT = SamplingParams(temperature=1.0, top_k=50)


@dataclass(frozen=True, slots=True)
class Prompt:
    """What a language model is asked.

    Attributes:
        rows: int32 [n, 1 + n_vq].
        shares_prefix: its first PREFIX_ROWS rows are those of the voice, which may be prefilled
            once for all.
    """

    rows: NDArray[np.int32]
    shares_prefix: bool
    drawing: Drawing


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
        return "greedy" if self.prompt.drawing.audio.greedy else "sampled"

    def drawn_anew(self, seed: int) -> "Request":
        """The same prompt, with other random numbers, and hot enough to show it."""
        assert self.prompt is not None
        drawing = replace(self.prompt.drawing, audio=_HOT, seed=seed)
        return replace(self, prompt=replace(self.prompt, drawing=drawing))


def draw_prompts(model: LanguageModel, count: int, seed: int) -> list[Prompt]:
    """Of one voice or none, greedy and sampled, of all codebooks or fewer."""
    generator = np.random.default_rng((seed, 1))
    voice = model.random_prompt(PREFIX_ROWS, seed)
    prompts = []
    for i in range(count):
        rows = model.random_prompt(int(generator.integers(4, _MOST_ROWS + 1)), seed + 1 + i)
        shares = i % 2 == 0
        text, audio = ((_GREEDY, _GREEDY), (_TEXT, _SAMPLED), (_TEXT, _HOT))[(i + 1) % 3]
        books = model.codebook_counts[-1 if i % 4 == 3 else 0]
        drawing = Drawing(text, audio, seed + i, books)
        whole = np.concatenate([voice, rows]) if shares else rows
        prompts.append(Prompt(whole, shares, drawing))
    return prompts


def most_rows() -> int:
    """Of any prompt."""
    return PREFIX_ROWS + _MOST_ROWS
