"""A language model of any family, as the checks of caches, streams and storage types see it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from mosstalk.checkpoint.storage import StoredTensor
from mosstalk.compute.backend import Backend
from mosstalk.compute.sampling import SamplingParams
from mosstalk.compute.state import StateSpec
from mosstalk.models.row_session import PrefillMode, RowSession, RowTransformer


@dataclass(frozen=True, slots=True)
class Drawing:
    """How a run is drawn.

    Attributes:
        text: of what decides between the kinds of rows.
        audio: of the codes.
        num_codebooks: that are drawn; None: all.
    """

    text: SamplingParams
    audio: SamplingParams
    seed: int
    num_codebooks: int | None = None


@dataclass(frozen=True, slots=True)
class Turn:
    """One step of a run.

    Attributes:
        row: what was drawn, [1 + n_vq].
        stops: whether the model would end here.
        frame: codes that are now whole, [n_vq] or as many as are drawn; None where none are.
    """

    row: NDArray[np.int32]
    stops: bool
    frame: NDArray[np.int32] | None


class Run(Protocol):
    """A run: rows drawn one after another and appended to a session.

    Where the model would end it is made to go on, so that a check always gets its rows.
    """

    session: RowSession

    def next(self) -> Turn:
        """Draw a row and append it."""
        ...

    def expected(self, whole: RowSession) -> Turn:
        """What `next` must give, from a session that holds the same rows.

        What the run has drawn before is taken from its rows alone. `whole` is used up; the run
        stays as it is.
        """
        ...


@dataclass(frozen=True, slots=True)
class Choice:
    """The likeliest of some ids."""

    channel: str  # "text", "codebook 3"
    logits: NDArray[np.float32]
    chosen: int  # index of the largest


@dataclass(frozen=True, slots=True)
class GreedyRow:
    """The likeliest next row, and each choice that was made for it.

    `is_chain`: whether a choice depends on those before it in the same row.
    """

    row: NDArray[np.int32]
    choices: tuple[Choice, ...]
    is_chain: bool


class GreedyRun(Protocol):
    """A run of likeliest rows, whose history can be another's."""

    def choose(self) -> GreedyRow:
        """The next row; the session keeps what it has cached."""
        ...

    def append(self, row: NDArray[np.int32]) -> NDArray[np.float32]:
        """Go on after `row`, whatever was chosen: its hidden vector."""
        ...


class LanguageModel(Protocol):
    """The model under test."""

    spec: StateSpec
    backend: Backend
    max_positions: int
    codebook_counts: tuple[int, ...]  # how many codebooks can be drawn: all, then fewer

    def session(self, prefill_mode: PrefillMode = "batched") -> RowSession:
        """A session with nothing cached."""
        ...

    def transformer(self, backend: Backend) -> RowTransformer:
        """What the sessions run, with the same weights, on another backend."""
        ...

    def random_prompt(self, count: int, seed: int) -> NDArray[np.int32]:
        """Rows [count, 1 + n_vq] of every kind, after which codes are drawn at once."""
        ...

    def changed(self, rows: NDArray[np.int32], at: int) -> Sequence[tuple[str, NDArray[np.int32]]]:
        """The rows with one id of row `at` changed, in each way there is."""
        ...

    def sentence_prompt(self, sentence: str) -> NDArray[np.int32] | None:
        """The prompt of a sentence; None without a tokeniser."""
        ...

    def rows_for(self, frames: int) -> int:
        """Rows in which so many frames become whole, counted from a prompt."""
        ...

    def start(self, session: RowSession, prompt: NDArray[np.int32], drawing: Drawing) -> Run:
        """A run after a prompt that the session holds."""
        ...

    def start_greedy(self, session: RowSession, prompt: NDArray[np.int32]) -> GreedyRun:
        """The same of likeliest rows."""
        ...

    def matrices(self) -> list[StoredTensor]:
        """Those that a storage type rounds."""
        ...
