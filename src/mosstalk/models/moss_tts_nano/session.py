"""One utterance in flight: what is cached, and the next frame."""

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from mosstalk.compute.state import StateSpec
from mosstalk.models.moss_tts_nano.config import NanoConfig
from mosstalk.models.moss_tts_nano.frame_decoder import (
    DrawnFrame,
    FrameDecoder,
    FrameRow,
    FrameSampling,
)
from mosstalk.models.moss_tts_nano.global_transformer import GlobalTransformer
from mosstalk.models.row_session import PrefillMode, RowSession


class NanoPrograms(Protocol):
    """What a session runs: the compiled parts of a model."""

    config: NanoConfig
    spec: StateSpec
    global_transformer: GlobalTransformer

    def frame_decoder(self, num_codebooks: int, max_rows: int = 1) -> FrameDecoder: ...


class NanoSession(RowSession):
    """Runs a model over one state: rows of the prompt, then frames."""

    def __init__(
        self,
        programs: NanoPrograms,
        prefill_mode: PrefillMode = "batched",
        num_codebooks: int | None = None,
    ) -> None:
        config = programs.config
        super().__init__(
            programs.global_transformer, programs.spec, config.max_position_embeddings, prefill_mode
        )
        self._programs = programs
        self.num_codebooks = config.n_vq if num_codebooks is None else num_codebooks
        self._frames = 0

    def reset_cache(self) -> None:
        """Forget all rows; the memory stays."""
        super().reset_cache()
        self._frames = 0

    def prefill(self, rows: NDArray[np.int32], reuse_rows: int = 0) -> NDArray[np.float32]:
        """As RowSession.prefill; the next frame is the first."""
        hidden = super().prefill(rows, reuse_rows)
        self._frames = 0
        return hidden

    def step(self, text_id: int, codes: Sequence[int]) -> NDArray[np.float32]:
        """Append one row; its hidden vector."""
        return self.append(np.array([text_id, *codes], np.int32))

    def next_frame(self, sampling: FrameSampling) -> NDArray[np.int32] | None:
        """Draw one frame of codes [n_vq] and append it as a row; None when the model stops."""
        row = self._row(sampling)
        drawn = self.decoder().run(self.state, row.hidden, row.frame, sampling, row.stream)
        return self._take(drawn)

    def decoder(self) -> FrameDecoder:
        """That of this many codebooks, for all streams of the state."""
        return self._programs.frame_decoder(self.num_codebooks, self.state.num_streams)

    def _row(self, sampling: FrameSampling) -> FrameRow:
        assert self.hidden is not None, "prefill comes before the first frame"
        return FrameRow(self.stream, self.hidden, self._frames, sampling)

    def _take(self, drawn: DrawnFrame) -> NDArray[np.int32] | None:
        """Count the row of a frame that was drawn; its codes, or None for a stop."""
        goes_on, codes, hidden = drawn
        if not goes_on:
            return None
        self.state.lengths[self.stream] += 1
        self._frames += 1
        self.hidden = hidden
        return codes

    def save(self) -> dict[str, NDArray[Any]]:
        """The session as named arrays; `load` goes on from them."""
        return {**super().save(), "frames": np.array(self._frames)}

    def load(self, arrays: dict[str, NDArray[Any]]) -> None:
        super().load(arrays)
        self._frames = int(arrays["frames"])


def next_frames(
    sessions: Sequence[NanoSession], samplings: Sequence[FrameSampling]
) -> list[NDArray[np.int32] | None]:
    """`next_frame` of each session, with one pass over the weights for all.

    They hold different streams of one state and make the same number of codebooks.
    """
    rows = [each._row(how) for each, how in zip(sessions, samplings, strict=True)]
    drawn = sessions[0].decoder().run_rows(sessions[0].state, rows)
    return [each._take(frame) for each, frame in zip(sessions, drawn, strict=True)]
