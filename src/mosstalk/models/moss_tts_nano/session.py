"""One utterance in flight: what is cached, and the next frame."""

from collections.abc import Sequence
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from mosstalk.compute.state import State, StateSpec
from mosstalk.errors import UsageError
from mosstalk.models.moss_tts_nano.config import NanoConfig
from mosstalk.models.moss_tts_nano.frame_decoder import FrameDecoder, FrameSampling
from mosstalk.models.moss_tts_nano.global_transformer import MAX_ROWS, GlobalTransformer

PrefillMode = Literal["batched", "single_row"]


class NanoPrograms(Protocol):
    """What a session runs: the compiled parts of a model."""

    config: NanoConfig
    spec: StateSpec
    global_transformer: GlobalTransformer

    def frame_decoder(self, num_codebooks: int) -> FrameDecoder: ...


class NanoSession:
    """Runs a model over one state.

    `prefill_mode` says how prompt rows are computed: many in a call, or one by one. On the cpu
    backend the results are the same bits.
    """

    def __init__(
        self,
        programs: NanoPrograms,
        prefill_mode: PrefillMode = "batched",
        num_codebooks: int | None = None,
    ) -> None:
        self._programs = programs
        self.prefill_mode: PrefillMode = prefill_mode
        self.num_codebooks = programs.config.n_vq if num_codebooks is None else num_codebooks
        self.state = State(programs.spec, 0)
        self.hidden: NDArray[np.float32] | None = None  # of the last row: where a frame starts
        self._frames = 0

    @property
    def cached_positions(self) -> int:
        """Rows whose K/V are cached."""
        return self.state.lengths[0]

    def begin_generation(self, budget: int) -> None:
        """Start afresh with room for `budget` rows, prompt and frames together.

        Raises UsageError where the model does not reach that far.
        """
        longest = self._programs.config.max_position_embeddings
        if budget > longest:
            raise UsageError(f"{budget} rows are more than the model's {longest}; shorten the text")
        if budget > self.state.capacity:
            self.state = State(self._programs.spec, budget)
        self.reset_cache()

    def reset_cache(self) -> None:
        """Forget all rows; the memory stays."""
        self.state.reset()
        self.hidden = None
        self._frames = 0

    def prefill(self, rows: NDArray[np.int32], reuse_rows: int = 0) -> NDArray[np.float32]:
        """Make the cache hold `rows` [n, 1 + n_vq], keeping the first `reuse_rows` as cached.

        Returns the hidden vectors of the rows that were computed, [n - reuse_rows, hidden].
        """
        if not 0 <= reuse_rows < len(rows) or reuse_rows > self.cached_positions:
            raise ValueError(
                f"cannot reuse {reuse_rows} of {len(rows)} rows with {self.cached_positions} cached"
            )
        self.state.truncate(reuse_rows)
        self.state.forget_seen()
        self._frames = 0
        calls_of = MAX_ROWS if self.prefill_mode == "batched" else 1
        hidden = self._programs.global_transformer.run(self.state, rows[reuse_rows:], calls_of)
        self.hidden = hidden[-1]
        return hidden

    def step(self, text_id: int, codes: Sequence[int]) -> NDArray[np.float32]:
        """Append one row; its hidden vector."""
        row = np.array([[text_id, *codes]], np.int32)
        self.hidden = self._programs.global_transformer.run(self.state, row)[0]
        return self.hidden

    def next_frame(self, sampling: FrameSampling) -> NDArray[np.int32] | None:
        """Draw one frame of codes [n_vq] and append it as a row; None when the model stops."""
        assert self.hidden is not None, "prefill comes before the first frame"
        decoder = self._programs.frame_decoder(self.num_codebooks)
        goes_on, codes, hidden = decoder.run(self.state, self.hidden, self._frames, sampling)
        if not goes_on:
            return None
        self.state.lengths[0] += 1
        self._frames += 1
        self.hidden = hidden
        return codes

    def truncate(self, length: int) -> None:
        """Keep the first `length` rows; a prefill or step must come before the next frame."""
        self.state.truncate(length)
        self.hidden = None

    def fork(self, budget: int | None = None) -> "NanoSession":
        """An independent copy that goes on from here, with room for `budget` rows."""
        copy = NanoSession(self._programs, self.prefill_mode, self.num_codebooks)
        copy.state = self.state.fork(budget)
        copy.hidden = None if self.hidden is None else self.hidden.copy()
        copy._frames = self._frames
        return copy

    def save(self) -> dict[str, NDArray[Any]]:
        """The session as named arrays; `load` goes on from them."""
        arrays = self.state.save()
        arrays["frames"] = np.array(self._frames)
        if self.hidden is not None:
            arrays["hidden"] = self.hidden.copy()
        return arrays

    def load(self, arrays: dict[str, NDArray[Any]]) -> None:
        self.state = State.load(self._programs.spec, arrays)
        self._frames = int(arrays["frames"])
        self.hidden = arrays.get("hidden")
