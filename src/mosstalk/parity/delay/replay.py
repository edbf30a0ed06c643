"""Rows that the original drew, taken through our state machine."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from mosstalk.models.moss_tts_delay.config import DelayConfig
from mosstalk.models.moss_tts_delay.delay_state import Decision, DelayState, Limits
from mosstalk.parity.comparison import Comparison

# The original has none.
NO_LIMITS = Limits(max_frames=10**9, max_text_rows=10**9)


def replay(
    config: DelayConfig,
    prompt: NDArray[np.int32],
    rows: NDArray[np.int32],
    comparison: Comparison,
) -> Iterator[tuple[DelayState, NDArray[np.int32]]]:
    """Each row [1 + n_vq], and the state before it.

    It ends where a row could not have been drawn, which is a failure of the comparison.
    """
    state = DelayState.start(config, prompt[:, 0], NO_LIMITS)
    for index, row in enumerate(rows):
        if state.stop is not None:
            comparison.fail(f"row {index} comes after the end")
            return
        decision = state.decide()
        if problem := _problem(config, decision, row):
            comparison.fail(f"row {index}: {problem}")
            return
        yield state, row
        codebooks = decision.codebooks
        state, _ = state.advance(int(row[0]), row[1 + codebooks.start : 1 + codebooks.stop])


def is_allowed(decision: Decision, text_id: int) -> bool:
    """Whether a text id may be drawn."""
    if decision.allowed is not None:
        return text_id in decision.allowed
    return text_id not in decision.banned


def _problem(config: DelayConfig, decision: Decision, row: NDArray[np.int32]) -> str:
    """Why a row could not have been drawn; "" if it could."""
    if not is_allowed(decision, int(row[0])):
        return f"text id {row[0]} cannot be drawn"
    drawn = np.flatnonzero(row[1:] != config.audio_pad_code).tolist()
    if drawn != list(decision.codebooks):
        return f"codes of codebooks {drawn}, not {list(decision.codebooks)}"
    return ""
