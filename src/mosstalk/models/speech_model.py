"""What the engine needs of a model family, and nothing more."""

from collections.abc import Sequence
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from mosstalk.compute.seats import Seats
from mosstalk.errors import MosstalkError
from mosstalk.types import SpeechOptions, Voice

# Codes [codebooks] of a frame; None: the model has stopped, or needs another pass for the frame;
# an error: of this utterance alone.
NextFrame = NDArray[np.int32] | MosstalkError | None


class Utterance(Protocol):
    """One part of a text, being spoken."""

    # Codes [frames, codebooks] that the codec must hear, unheard by the user, before the first
    # frame; empty where speech starts from nothing.
    lead_in: NDArray[np.int32]
    retries: int  # how often it was begun again, with a derived seed, as no speech came

    @property
    def rows_left(self) -> int:
        """Rows of the prompt that are still to be computed."""
        ...

    @property
    def has_stopped(self) -> bool:
        """Whether no frame comes any more."""
        ...

    def prefill(self, max_rows: int) -> None:
        """Compute up to `max_rows` more rows of the prompt."""
        ...

    def next_frame(self) -> NDArray[np.int32] | None:
        """Codes [codebooks] of the next frame; None when the model stops.

        Computes what is left of the prompt first.
        """
        ...

    def close(self) -> None:
        """Give its seat back, if it has one; nothing else may follow."""
        ...


U = TypeVar("U", bound=Utterance)


class SpeechModel(Protocol[U]):
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
        seats: Seats | None = None,
    ) -> U:
        """Build the prompt of one chunk of text; it can be prefilled.

        `options.max_frames` and `max_tokens` are not read. The utterance takes one of `seats`
        where one is free and long enough, else a state of its own.
        """
        ...

    def seats(self, num_streams: int) -> Seats:
        """For utterances that share passes over the weights."""
        ...

    def next_frames(self, utterances: Sequence[U]) -> list[NextFrame]:
        """The next frame of each, prefilled before; seats share a pass over the weights.

        The same bits as each utterance's own `next_frame`.
        """
        ...
