"""What the original's chunked decoder sees of the past (spec voicegen.md 6.5).

Its caches are rings of one window each, and a chunk's keys overwrite the oldest before any of its
queries looks. So with a window of W, the queries of a chunk of T positions from s on all see from
s + T - W on, and the first of them sees W - T + 1 positions where an exact window has W.
"""

import numpy as np
from numpy.typing import NDArray

from mosstalk.codec.moss_audio_tokenizer.config import Module, Stage
from mosstalk.compute.state import State


def drop_as_rings(state: State, modules: tuple[Module, ...], num_frames: int) -> list[int]:
    """Drop from a stream's caches what a chunk of `num_frames` frames would overwrite.

    What is left moves to the caches' start, where the window of every query of the chunk ends.
    Returns for each stage the number of positions dropped since the stream began. The chunk must
    not be longer than the stages' windows.
    """
    held = state.lengths[0]
    dropped = []
    cache = 0
    for stage in modules:
        if not isinstance(stage, Stage):
            continue
        before = max(0, held * stage.multiple - stage.window)
        after = max(0, (held + num_frames) * stage.multiple - stage.window)
        for index in range(cache, cache + stage.num_layers):
            _forget_oldest(state.keys[index], state.values[index], after - before)
        cache += stage.num_layers
        dropped.append(after)
    return dropped


def _forget_oldest(keys: NDArray[np.float32], values: NDArray[np.float32], count: int) -> None:
    """Position p becomes p - count; for the layout see State."""
    values[:] = np.roll(values, -count, axis=2)
    blocks = keys.swapaxes(3, 4)  # [streams, heads, blocks, KEY_BLOCK, head_dim]
    positions = blocks.reshape(values.shape)
    blocks[:] = np.roll(positions, -count, axis=2).reshape(blocks.shape)
