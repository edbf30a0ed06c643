"""The language model in two storage types, under the same history of frames."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mosstalk.models.moss_tts_nano.model import NanoModel
from mosstalk.models.moss_tts_nano.session import NanoSession
from mosstalk.parity.greedy_frame import GreedyFrame, decode_greedy, top_gap


@dataclass(frozen=True, slots=True)
class Trace:
    """A prompt and the frames after it: `hidden` [rows + frames, hidden]."""

    hidden: NDArray[np.float32]
    frames: tuple[GreedyFrame, ...]


@dataclass(frozen=True, slots=True)
class Disagreement:
    """The first code that two storage types choose differently."""

    frame: int
    codebook: int
    gap: float  # between f32's two largest logits there
    logit_difference: float  # largest there

    def __str__(self) -> str:
        return (
            f"frame {self.frame} codebook {self.codebook}: gap {self.gap:.2g}, "
            f"logits differ by {self.logit_difference:.2g}"
        )


@dataclass(frozen=True, slots=True)
class Drift:
    """How far one trace is from the f32 one."""

    logits: float  # largest difference relative to f32's largest logit
    frames_in_step: int  # frames before the first disagreement
    codes_equal: float  # share, each frame judged by itself up to its first disagreement
    first: Disagreement | None


def trace(
    model: NanoModel, rows: NDArray[np.int32], num_frames: int, forced: Trace | None = None
) -> Trace:
    """Greedy frames after a prompt; the history is that of `forced` where given."""
    session = model.session()
    session.begin_generation(len(rows) + num_frames)
    hidden = [session.prefill(rows)]
    frames = []
    for index in range(num_frames):
        frame = decode_greedy(model, session)
        frames.append(frame)
        codes = frame.codes if forced is None else forced.frames[index].codes
        hidden.append(_append(model, session, codes)[None])
    return Trace(np.concatenate(hidden), tuple(frames))


def drift(expected: Sequence[GreedyFrame], found: Sequence[GreedyFrame]) -> Drift:
    """Compare frames that were decoded from the same histories.

    Within a frame a code depends on those before it, so the slots after a disagreement are not
    compared.
    """
    largest, peak, equal, total = 0.0, 0.0, 0, 0
    in_step: int | None = None
    first: Disagreement | None = None
    for index, (wanted, got) in enumerate(zip(expected, found, strict=True)):
        total += len(wanted.logits)
        for q, (a, b) in enumerate(zip(wanted.logits, got.logits, strict=True)):
            difference = float(np.abs(a - b).max())
            largest, peak = max(largest, difference), max(peak, float(np.abs(a).max()))
            if wanted.codes[q] != got.codes[q]:
                first = first or Disagreement(index, q, top_gap(a), difference)
                in_step = index if in_step is None else in_step
                break
            equal += 1
    frames_in_step = len(expected) if in_step is None else in_step
    return Drift(largest / peak if peak else 0.0, frames_in_step, equal / total, first)


def _append(
    model: NanoModel, session: NanoSession, codes: NDArray[np.int32]
) -> NDArray[np.float32]:
    return session.step(model.config.audio_assistant_slot_token_id, codes.tolist())
