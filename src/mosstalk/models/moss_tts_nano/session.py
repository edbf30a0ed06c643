"""One utterance in flight: what is cached, and the next frame."""

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from mosstalk.compute.state import StateSpec
from mosstalk.models.moss_tts_nano.config import NanoConfig
from mosstalk.models.moss_tts_nano.frame_decoder import FrameDecoder, FrameSampling
from mosstalk.models.moss_tts_nano.global_transformer import GlobalTransformer
from mosstalk.models.row_session import PrefillMode, RowSession


class NanoPrograms(Protocol):
    """What a session runs: the compiled parts of a model."""

    config: NanoConfig
    spec: StateSpec
    global_transformer: GlobalTransformer

    def frame_decoder(self, num_codebooks: int) -> FrameDecoder: ...


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
        assert self.hidden is not None, "prefill comes before the first frame"
        decoder = self._programs.frame_decoder(self.num_codebooks)
        goes_on, codes, hidden = decoder.run(self.state, self.hidden, self._frames, sampling)
        if not goes_on:
            return None
        self.state.lengths[0] += 1
        self._frames += 1
        self.hidden = hidden
        return codes

    def save(self) -> dict[str, NDArray[Any]]:
        """The session as named arrays; `load` goes on from them."""
        return {**super().save(), "frames": np.array(self._frames)}

    def load(self, arrays: dict[str, NDArray[Any]]) -> None:
        super().load(arrays)
        self._frames = int(arrays["frames"])
