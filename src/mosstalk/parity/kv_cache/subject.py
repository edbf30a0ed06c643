"""The model under test, a random prompt for it, and what a whole computation of it gives."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mosstalk.models.row_session import PrefillMode, RowSession
from mosstalk.parity.comparison import Comparison
from mosstalk.parity.family.language_model import LanguageModel


@dataclass(frozen=True, slots=True)
class Cached:
    """A copy of what the layers that remember rows hold: keys, values [rows, heads, head_dim]."""

    keys: tuple[NDArray[np.float32], ...]
    values: tuple[NDArray[np.float32], ...]


@dataclass(frozen=True, slots=True)
class Subject:
    """What every check works on; `hidden` and `cached` are those of one whole prefill."""

    model: LanguageModel
    rows: NDArray[np.int32]  # [n, 1 + n_vq]
    frames: int
    seed: int
    tolerance: float
    hidden: NDArray[np.float32]  # [n, hidden]
    cached: Cached

    @property
    def budget(self) -> int:
        """Rows of the prompt and of all frames."""
        return len(self.rows) + self.generated

    @property
    def generated(self) -> int:
        """Rows in which all frames become whole."""
        return self.model.rows_for(self.frames)

    def session(self, budget: int = 0, prefill_mode: PrefillMode = "batched") -> RowSession:
        """A new session with room for `budget` rows (default: the prompt and all frames)."""
        made = self.model.session(prefill_mode)
        made.begin_generation(budget or self.budget)
        return made

    def prefilled(self, num_rows: int | None = None) -> RowSession:
        """A new session that holds the first `num_rows` rows of the prompt (default: all)."""
        made = self.session()
        made.prefill(self.rows[:num_rows])
        return made

    def compare(
        self,
        comparison: Comparison,
        what: str,
        session: RowSession,
        hidden: NDArray[np.float32],
    ) -> None:
        """The prompt's last len(hidden) hidden vectors and all its K/V, with the whole prefill's.

        `session` must hold the prompt and nothing else.
        """
        count = session.cached_positions
        if count != len(self.rows):
            comparison.fail(f"{what}: {count} rows are cached, not {len(self.rows)}")
            return
        positions = range(count - len(hidden), count)
        comparison.add(f"{what}, hidden", self.hidden[-len(hidden) :], hidden, positions=positions)
        compare_cached(comparison, what, self.cached, cached_rows(session))


def make_subject(
    model: LanguageModel, num_rows: int, frames: int, seed: int, tolerance: float
) -> Subject:
    """Draw the prompt and compute it whole."""
    rows = model.random_prompt(num_rows, seed)
    session = model.session()
    session.begin_generation(num_rows + model.rows_for(frames))
    hidden = session.prefill(rows)
    return Subject(model, rows, frames, seed, tolerance, hidden, cached_rows(session))


def cached_rows(session: RowSession) -> Cached:
    """What the layers that remember rows hold."""
    state = session.state
    kept = [i for i, spec in enumerate(state.spec.caches) if not spec.fixed_len]
    return Cached(
        tuple(state.cached_keys(i).copy() for i in kept),
        tuple(state.cached_values(i).copy() for i in kept),
    )


def compare_cached(comparison: Comparison, what: str, expected: Cached, found: Cached) -> None:
    """The keys and values of all layers."""
    for i, arrays in enumerate(zip(expected.keys, found.keys, strict=True)):
        comparison.add(f"{what}, keys of layer {i}", *arrays, layer=i)
    for i, arrays in enumerate(zip(expected.values, found.values, strict=True)):
        comparison.add(f"{what}, values of layer {i}", *arrays, layer=i)


def cut(cached: Cached, length: int) -> Cached:
    """The first `length` rows."""
    return Cached(
        tuple(keys[:length] for keys in cached.keys),
        tuple(values[:length] for values in cached.values),
    )
