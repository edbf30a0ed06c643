"""What the engine needs of a model family, and nothing more."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from mosstalk.types import SpeechOptions, Voice


class Utterance(Protocol):
    """One part of a text, being spoken."""

    # Codes [frames, codebooks] that the codec must hear, unheard by the user, before the first
    # frame; empty where speech starts from nothing.
    lead_in: NDArray[np.int32]
    retries: int  # how often it was begun again, with a derived seed, as no speech came

    def next_frame(self) -> NDArray[np.int32] | None:
        """Codes [codebooks] of the next frame; None when the model stops."""
        ...


class SpeechModel(Protocol):
    """A language model that turns text into frames of codes."""

    num_codebooks: int
    codec_sample_rate: int
    needs_voice: bool  # without one it is near silent
    max_voices: int  # how many it can be given; 0: it makes voices and takes none
    levels_references: bool  # brings recordings towards one loudness before they are encoded
    default_max_frames: int  # cap on a part of the text
    default_max_tokens: int  # longest part that a text is divided into; 0: not divided

    def count_tokens(self, text: str) -> int: ...

    def clean(self, text: str) -> tuple[str, tuple[str, ...]]:
        """The text without what must not reach a prompt, and warnings about what was removed."""
        ...

    def check(self, options: SpeechOptions) -> None:
        """Raise UsageError for options that this model cannot follow."""
        ...

    def start(
        self,
        text: str,
        chunk: int,
        voices: Sequence[Voice],
        options: SpeechOptions,
        seed: int,
        max_frames: int,
    ) -> Utterance:
        """Prefill the prompt of one chunk of text; the first frame can be asked for.

        `options.max_frames` and `max_tokens` are not read.
        """
        ...
