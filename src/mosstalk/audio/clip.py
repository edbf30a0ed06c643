"""A recording in memory."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mosstalk.audio.write import open_writer


@dataclass(frozen=True)
class AudioClip:
    """A recording.

    Attributes:
        samples: float32 [channels, n], nominally in [-1, 1].
        sample_rate: samples per second and channel.
    """

    samples: NDArray[np.float32]
    sample_rate: int

    @property
    def seconds(self) -> float:
        """The length of the recording."""
        return float(self.samples.shape[1] / self.sample_rate)

    def write(self, out: str | Path) -> None:
        """Write the recording to a `.wav` or `.flac` file, or with "-" to standard output.

        Raises:
            UsageError: the file's suffix is another.
            OutputError: the file cannot be written.
        """
        num_channels = self.samples.shape[0]
        with open_writer(out, self.sample_rate, num_channels) as writer:
            writer.write(self.samples)
