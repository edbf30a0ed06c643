"""A run of rows as a value: what was drawn decides what may be drawn next (spec 5.2, 5.6)."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mosstalk.models.moss_tts_delay.config import DelayConfig
from mosstalk.models.moss_tts_delay.delay_state import DelayState, Limits
from mosstalk.models.moss_tts_delay.sampling import (
    CodeHistory,
    DelaySampling,
    draw_codes,
    draw_text,
)
from mosstalk.models.moss_tts_delay.session import DelaySession


@dataclass(frozen=True, slots=True)
class DelayRun:
    """Where a run stands, and the codes that its repetition penalty counts. Never changed."""

    state: DelayState
    history: CodeHistory

    @classmethod
    def start(cls, config: DelayConfig, rows: NDArray[np.int32], limits: Limits) -> "DelayRun":
        """The run after a prompt with these rows [n, 1 + n_vq]."""
        return cls(DelayState.start(config, rows[:, 0], limits), CodeHistory.of(config, rows))

    def draw(
        self, session: DelaySession, sampling: DelaySampling
    ) -> tuple["DelayRun", NDArray[np.int32]]:
        """The run after its next row, and that row [1 + n_vq].

        `session` holds all rows so far; the new one is not appended to it.
        """
        decision = self.state.decide()
        step = self.state.step
        text_id = draw_text(_text_logits(session, decision.allowed), decision, sampling, step)
        codes = np.empty(0, np.int32)
        if decision.codebooks:
            codes = draw_codes(session.audio_logits(), self.history, decision, sampling, step)
        state, row = self.state.advance(text_id, codes)
        return DelayRun(state, self.history.after(row)), row


def _text_logits(session: DelaySession, allowed: tuple[int, ...] | None) -> NDArray[np.float32]:
    """No more of the text head than is needed: nothing, its slots, all."""
    if allowed is None:
        return session.text_logits()
    return np.empty(0, np.float32) if len(allowed) == 1 else session.slot_logits()
