"""One frame of the likeliest codes, with the logits they were taken from."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mosstalk.compute.sampling import SamplingParams
from mosstalk.models.moss_tts_nano.frame_decoder import FrameSampling
from mosstalk.models.moss_tts_nano.model import NanoModel
from mosstalk.models.moss_tts_nano.session import NanoSession

_GREEDY = SamplingParams(temperature=0.0)
GREEDY_FRAMES = FrameSampling(_GREEDY, _GREEDY, seed=0)


@dataclass(frozen=True, slots=True)
class GreedyFrame:
    codes: NDArray[np.int32]  # [n_vq]
    hidden: NDArray[np.float32]  # [slots, hidden], of the local transformer
    logits: tuple[NDArray[np.float32], ...]  # of each active codebook


def decode_greedy(model: NanoModel, session: NanoSession) -> GreedyFrame:
    """The frame that comes next, whether or not the model would stop; the session stays as it is.

    Its state must have room for one row.
    """
    assert session.hidden is not None, "prefill comes before the first frame"
    decoder = model.frame_decoder(session.num_codebooks)
    _, codes, _ = decoder.run(session.state, session.hidden, 0, GREEDY_FRAMES)
    logits = tuple(
        decoder.program.array(decoder.outputs[f"logits.{q}"])[0].copy()
        for q in range(session.num_codebooks)
    )
    return GreedyFrame(codes, np.stack(decoder.local_hidden()), logits)


def top_gap(logits: NDArray[np.float32]) -> float:
    """How far the largest logit is above the next."""
    second, first = np.partition(logits, -2)[-2:] if logits.size > 1 else (logits[0], logits[0])
    return float(first - second)
