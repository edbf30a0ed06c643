"""A recording in memory."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mosstalk.audio.write import open_writer
from mosstalk.errors import AudioError


@dataclass(frozen=True)
class AudioClip:
    """A recording.

    Attributes:
        samples: float32 [channels, n], nominally in [-1, 1].
        sample_rate: samples per second and channel.

    Raises:
        AudioError: the samples are of another form, or the rate is not positive.
    """

    samples: NDArray[np.float32]
    sample_rate: int

    def __post_init__(self) -> None:
        if self.samples.ndim != 2 or self.samples.dtype != np.float32:
            raise AudioError(
                f"a clip takes float32 samples [channels, n], not {self.samples.dtype} "
                f"{list(self.samples.shape)}; convert them"
            )
        if self.sample_rate <= 0:
            raise AudioError(f"a clip's sample rate cannot be {self.sample_rate}; give it in Hz")

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
