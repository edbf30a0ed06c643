"""Faster or slower speech that keeps its pitch."""

import math
from collections.abc import Iterator

import av
import av.error
import av.filter
import numpy as np
from numpy.typing import NDArray

from mosstalk.server.frames import audio_frame, frame_samples

SLOWEST, FASTEST = 0.25, 4.0
# FFmpeg's atempo takes 0.5 and more, and drops samples instead of blending them above 2.
_SLOWEST_STEP, _FASTEST_STEP = 0.5, 2.0


class Tempo:
    """Stretches a stream of audio in time: FFmpeg's `atempo` (waveform similarity overlap-add)."""

    def __init__(self, speed: float, sample_rate: int, num_channels: int) -> None:
        """`speed`: from SLOWEST to FASTEST; 2 takes half the time."""
        self._sample_rate = sample_rate
        self._num_channels = num_channels
        graph = av.filter.Graph()
        layout = "mono" if num_channels == 1 else "stereo"
        nodes = [
            graph.add_abuffer(
                sample_rate=sample_rate,
                format="flt",
                layout=layout,
                time_base=audio_frame(
                    np.zeros((num_channels, 1), np.float32), sample_rate
                ).time_base,
            ),
            *(graph.add("atempo", f"{step:.9g}") for step in _steps(speed)),
            graph.add("abuffersink"),
        ]
        graph.link_nodes(*nodes).configure()
        self._graph = graph

    def push(self, samples: NDArray[np.float32]) -> NDArray[np.float32]:
        """What is ready [channels, m] after `samples` [channels, n]."""
        if samples.shape[1]:
            self._graph.push(audio_frame(samples, self._sample_rate))
        return self._collect()

    def finish(self) -> NDArray[np.float32]:
        """The rest."""
        self._graph.push(None)
        return self._collect()

    def _collect(self) -> NDArray[np.float32]:
        nothing = np.zeros((self._num_channels, 0), np.float32)
        return np.concatenate([nothing, *self._ready()], axis=1)

    def _ready(self) -> Iterator[NDArray[np.float32]]:
        while True:
            try:
                frame = self._graph.pull()
            except (av.error.BlockingIOError, av.error.EOFError):
                return
            assert isinstance(frame, av.AudioFrame)
            yield frame_samples(frame, self._num_channels)


def _steps(speed: float) -> list[float]:
    """Factors within atempo's range whose product is `speed`."""
    limit = _FASTEST_STEP if speed > 1 else _SLOWEST_STEP
    count = max(1, math.ceil(math.log(speed) / math.log(limit) - 1e-9))
    return [speed ** (1 / count)] * count
