"""One utterance in flight: what is cached, and what may come next."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mosstalk.compute.state import StateSpec
from mosstalk.errors import CheckpointError
from mosstalk.models.moss_tts_delay.backbone import Backbone
from mosstalk.models.moss_tts_delay.heads import OutputHeads
from mosstalk.models.row_session import PrefillMode, RowSession


class DelaySession(RowSession):
    """Runs a model over one state. What is drawn from the logits is the caller's choice."""

    def __init__(
        self,
        backbone: Backbone,
        heads: OutputHeads,
        spec: StateSpec,
        max_positions: int,
        prefill_mode: PrefillMode = "batched",
    ) -> None:
        super().__init__(backbone, spec, max_positions, prefill_mode)
        self._backbone = backbone
        self._heads = heads

    def step(self, row: NDArray[np.int32]) -> NDArray[np.float32]:
        """Append one row [1 + n_vq]; its hidden vector [hidden]."""
        return self.append(row)

    def text_logits(self) -> NDArray[np.float32]:
        """Logits of the next row's text id [vocab_size]; reads the whole text head."""
        return self._heads.text(self._last_hidden())

    def slot_logits(self) -> NDArray[np.float32]:
        """Logits of the gen slot and of the delay slot alone [2], the only ids inside audio."""
        return self._heads.slots(self._last_hidden())

    def audio_logits(self) -> NDArray[np.float32]:
        """Logits of the next row's codes [n_vq, audio_vocab_size + 1]; the pad's are -inf."""
        return self._heads.audio(self._last_hidden())

    def _last_hidden(self) -> NDArray[np.float32]:
        assert self.hidden is not None, "prefill comes before logits"
        return self.hidden


def step_together(
    sessions: Sequence[DelaySession], rows: Sequence[NDArray[np.int32]]
) -> list[CheckpointError | None]:
    """`step` of each session, which hold different streams of one state, in one call.

    Gives for each what its step would raise; the others are not touched by it.
    """
    state, streams = sessions[0].state, [session.stream for session in sessions]
    found = sessions[0]._backbone.run_streams(state, np.stack(rows), streams)
    errors: list[CheckpointError | None] = []
    for session, hidden in zip(sessions, found, strict=True):
        if isinstance(hidden, CheckpointError):
            errors.append(hidden)
        else:
            errors.append(None)
            session.hidden = hidden
    return errors
