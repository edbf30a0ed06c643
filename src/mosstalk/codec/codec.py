"""What the engine needs of a codec."""

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from mosstalk.compute.seats import Seat, Seats

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

    def seats(self, num_streams: int) -> Seats:
        """For decoding streams of any length that share passes over the weights."""
        ...

    def decode_seats(
        self, parts: Sequence[tuple[Seat, NDArray[np.int32]]]
    ) -> list[NDArray[np.float32]]:
        """Next samples of seats of one state, each its own: (seat, codes) to samples of each."""
        ...
