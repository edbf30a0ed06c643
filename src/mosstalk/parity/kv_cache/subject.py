"""The model under test, a random prompt for it, and what a whole computation of it gives."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mosstalk.models.moss_tts_nano.config import NanoConfig
from mosstalk.models.moss_tts_nano.model import NanoModel
from mosstalk.models.moss_tts_nano.session import NanoSession
from mosstalk.models.row_session import PrefillMode
from mosstalk.parity.comparison import Comparison

_TEXT, _FULL, _PARTIAL = 0, 1, 2  # kinds of rows: no codes, all codes, some codes


@dataclass(frozen=True, slots=True)
class Cached:
    """A copy of what the global layers have cached: keys and values [rows, heads, head_dim]."""

    keys: tuple[NDArray[np.float32], ...]
    values: tuple[NDArray[np.float32], ...]


@dataclass(frozen=True, slots=True)
class Subject:
    """What every check works on; `hidden` and `cached` are those of one whole prefill."""

    model: NanoModel
    rows: NDArray[np.int32]  # [n, 1 + n_vq]
    frames: int
    seed: int
    tolerance: float
    hidden: NDArray[np.float32]  # [n, hidden]
    cached: Cached

    @property
    def budget(self) -> int:
        """Rows of the prompt and all frames."""
        return len(self.rows) + self.frames

    def session(self, budget: int = 0, prefill_mode: PrefillMode = "batched") -> NanoSession:
        """A new session with room for `budget` rows (default: the prompt and all frames)."""
        made = self.model.session(prefill_mode)
        made.begin_generation(budget or self.budget)
        return made

    def prefilled(self, num_rows: int | None = None) -> NanoSession:
        """A new session that holds the first `num_rows` rows of the prompt (default: all)."""
        made = self.session()
        made.prefill(self.rows[:num_rows])
        return made

    def compare(
        self,
        comparison: Comparison,
        what: str,
        session: NanoSession,
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
    model: NanoModel, num_rows: int, frames: int, seed: int, tolerance: float
) -> Subject:
    """Draw the prompt and compute it whole."""
    rows = random_rows(model.config, num_rows, seed)
    session = model.session()
    session.begin_generation(num_rows + frames)
    hidden = session.prefill(rows)
    return Subject(model, rows, frames, seed, tolerance, hidden, cached_rows(session))


def random_rows(config: NanoConfig, count: int, seed: int) -> NDArray[np.int32]:
    """Rows of text, of reference and generated codes, and of codes with pads between them."""
    generator = np.random.default_rng(seed)
    slots = (config.audio_user_slot_token_id, config.audio_assistant_slot_token_id)
    rows = np.full((count, 1 + config.n_vq), config.audio_pad_token_id, np.int32)
    kinds = generator.choice([_TEXT, _FULL, _PARTIAL], count, p=[0.5, 0.3, 0.2])
    for row, kind in zip(rows, kinds, strict=True):
        row[0] = generator.integers(config.vocab_size)
        if kind == _TEXT:
            continue
        row[0] = generator.choice(slots)
        codes = generator.integers(config.audio_codebook_sizes)
        is_given = generator.random(config.n_vq) < (1.0 if kind == _FULL else 0.5)
        row[1:][is_given] = codes[is_given]
    return rows


def cached_rows(session: NanoSession) -> Cached:
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
