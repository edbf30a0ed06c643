"""What the engine needs of a codec."""

from collections.abc import Callable
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

# Codes [frames, codebooks] to the samples [channels, frames * frame_len] that come next.
DecodeNext = Callable[[NDArray[np.int32]], NDArray[np.float32]]


class Codec(Protocol):
    sample_rate: int
    num_channels: int
    frame_len: int  # samples of a channel in a frame
    num_codebooks: int

    def encode(self, samples: NDArray[np.float32]) -> NDArray[np.int32]:
        """Codes [frames, codebooks] of samples [channels, n].

        Raises UsageError for a codec that was opened to decode only.
        """
        ...

    def start(self, max_frames: int) -> DecodeNext:
        """A decoding stream of at most `max_frames` frames."""
        ...
