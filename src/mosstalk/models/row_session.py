"""One utterance in flight, whatever the family: the rows that are cached, and the last hidden."""

from copy import copy
from typing import Any, Literal, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from mosstalk.compute.seats import Seat
from mosstalk.compute.state import State, StateSpec
from mosstalk.errors import UsageError

PrefillMode = Literal["batched", "single_row"]


class RowTransformer(Protocol):
    """What turns rows of one text id and n_vq codes into hidden vectors."""

    def run(
        self, state: State, rows: NDArray[np.int32], calls_of: int, stream: int = 0
    ) -> NDArray[np.float32]:
        """Append `rows` [n, 1 + n_vq] to the stream, `calls_of` at a time: hidden [n, hidden]."""
        ...


class RowSession:
    """Runs a transformer over one stream of a state: its own, or a seat that it was forked into.

    `max_positions` is how many rows the model reaches. `prefill_mode` says how prompt rows are
    computed: many in a call, or one by one. On the cpu backend the results are the same bits.
    """

    def __init__(
        self,
        transformer: RowTransformer,
        spec: StateSpec,
        max_positions: int,
        prefill_mode: PrefillMode = "batched",
    ) -> None:
        self._transformer = transformer
        self._max_positions = max_positions
        self.prefill_mode: PrefillMode = prefill_mode
        self.state = State(spec, 0)
        self.stream = 0
        self.hidden: NDArray[np.float32] | None = None  # of the last row: what follows comes of it

    @property
    def cached_positions(self) -> int:
        """Rows whose K/V are cached."""
        return self.state.lengths[self.stream]

    def begin_generation(self, budget: int) -> None:
        """Start afresh with room for `budget` rows, those of the prompt and those to come.

        Raises UsageError where the model does not reach that far.
        """
        if budget > self._max_positions:
            raise UsageError(
                f"{budget} rows are more than the model's {self._max_positions}; shorten the text"
            )
        if budget > self.state.capacity:
            self.state = State(self.state.spec, budget)
        self.reset_cache()

    def reset_cache(self) -> None:
        """Forget all rows; the memory stays."""
        self.state.reset(self.stream)
        self.hidden = None

    def prefill(self, rows: NDArray[np.int32], reuse_rows: int = 0) -> NDArray[np.float32]:
        """Make the cache hold `rows` [n, 1 + n_vq], keeping the first `reuse_rows` as cached.

        Returns the hidden vectors of the rows that were computed, [n - reuse_rows, hidden].
        """
        if not 0 <= reuse_rows < len(rows) or reuse_rows > self.cached_positions:
            raise ValueError(
                f"cannot reuse {reuse_rows} of {len(rows)} rows with {self.cached_positions} cached"
            )
        self.state.truncate(reuse_rows, self.stream)
        self.state.forget_seen(self.stream)
        calls_of = self.state.spec.max_rows if self.prefill_mode == "batched" else 1
        hidden = self._transformer.run(self.state, rows[reuse_rows:], calls_of, self.stream)
        self.hidden = hidden[-1]
        return hidden

    def extend(self, rows: NDArray[np.int32], max_rows: int) -> int:
        """Go on with the prefill of `rows`, of which the first are cached: how many were computed.

        Never more than `max_rows`. `hidden` is that of the last row when all are cached.
        """
        cached = self.cached_positions
        part = rows[: cached + max_rows]
        if cached < len(part):
            self.prefill(part, reuse_rows=cached)
        return len(part) - cached

    def append(self, row: NDArray[np.int32]) -> NDArray[np.float32]:
        """Append one row [1 + n_vq]; its hidden vector."""
        self.hidden = self._transformer.run(self.state, row[None], 1, self.stream)[0]
        return self.hidden

    def truncate(self, length: int) -> None:
        """Keep the first `length` rows; a prefill or another row must come before what follows."""
        self.state.truncate(length, self.stream)
        self.hidden = None

    def fork(self, budget: int | None = None, seat: Seat | None = None) -> Self:
        """An independent copy that goes on from here: in `seat`, or with room for `budget` rows."""
        twin = copy(self)
        if seat is None:
            twin.state, twin.stream = self.state.fork(budget, self.stream), 0
        else:
            twin.state, twin.stream = seat.state, seat.stream
            twin.state.copy_stream(self.state, self.stream, seat.stream)
        twin.hidden = None if self.hidden is None else self.hidden.copy()
        return twin

    def save(self) -> dict[str, NDArray[Any]]:
        """The session as named arrays; `load` goes on from them."""
        arrays = self.state.save(self.stream)
        if self.hidden is not None:
            arrays["hidden"] = self.hidden.copy()
        return arrays

    def load(self, arrays: dict[str, NDArray[Any]]) -> None:
        self.state, self.stream = State.load(self.state.spec, arrays), 0
        self.hidden = arrays.get("hidden")
