"""What differs between a stream and a whole decode, as noise in each second of the signal."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosstalk.parity.codec.subject import CHUNKS, Subject
from mosstalk.parity.comparison import Comparison
from mosstalk.parity.figure import Figure, Line, Table

# Noise below this is float32 rounding, which is larger where more positions are summed.
ROUNDING = 1e-5
GROWTH = 3.0  # of the noise in the last quarter of the seconds to that in the first, at most


@dataclass(frozen=True, slots=True)
class Noise:
    """Root mean square of a difference by that of the signal, in seconds of the audio."""

    name: str
    by_second: dict[int, float]

    @property
    def ratios(self) -> tuple[float, ...]:
        return tuple(self.by_second.values())

    @property
    def first_quarter(self) -> float:
        """Mean over the seconds that come first."""
        return _mean(self.ratios[: self._quarter])

    @property
    def last_quarter(self) -> float:
        return _mean(self.ratios[-self._quarter :])

    @property
    def _quarter(self) -> int:
        return -(-len(self.ratios) // 4)


def check_growth(subject: Subject, comparison: Comparison) -> None:
    """A difference, where there is one, is no larger late in the audio than early."""
    for noise in all_noise(subject):
        allowed = max(ROUNDING, GROWTH * noise.first_quarter)
        comparison.require(
            noise.last_quarter <= allowed,
            f"{noise.name}: noise grows from {noise.first_quarter:.1e} to "
            f"{noise.last_quarter:.1e} of the signal",
        )
    whole = subject.whole(subject.longest)
    first, end = subject.written_spans()[-1]
    found = whole[:, subject.samples_of(first) : subject.samples_of(end)]
    comparison.add("the end, written out", subject.written_out(first, end), found)


def all_noise(subject: Subject) -> list[Noise]:
    """Of each chunking against the whole, and of the whole against the specification."""
    rate = subject.layout.sample_rate
    whole = subject.whole(subject.longest)
    found = [
        Noise(f"chunks of {size}", _by_second(subject, whole, subject.streamed(size)))
        for size in CHUNKS
    ]
    written: dict[int, float] = {}
    for first, end in subject.written_spans():
        start, stop = subject.samples_of(first), subject.samples_of(end)
        expected = subject.written_out(first, end)
        ratios = _by_second(subject, expected, whole[:, start:stop])
        written |= {start // rate + second: ratio for second, ratio in ratios.items()}
    return [*found, Noise("written out", written)]


def draw(found: list[Noise]) -> tuple[Table, Figure]:
    """As a table of decibels and as curves."""
    header = ("stream", "first second", "worst second", "last second")
    rows = tuple(
        (
            noise.name,
            *(_decibels(r) for r in (noise.ratios[0], max(noise.ratios), noise.ratios[-1])),
        )
        for noise in found
    )
    lines = tuple(Line(noise.name, tuple(noise.by_second), noise.ratios) for noise in found)
    title = "Noise by second: streams against the whole, the whole against the specification"
    figure = Figure(title, "second", "noise by signal, rms", lines, is_log=True)
    return Table("Signal to noise of the decoder", header, rows), figure


def _by_second(subject: Subject, signal: NDArray[Any], found: NDArray[Any]) -> dict[int, float]:
    pairs = zip(subject.seconds(signal), subject.seconds(found), strict=False)
    return {second: _ratio(expected, given) for second, (expected, given) in enumerate(pairs)}


def _ratio(signal: NDArray[Any], found: NDArray[Any]) -> float:
    """Infinite where values are missing, or are no numbers."""
    if signal.shape != found.shape:
        return math.inf
    wide = signal.astype(np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        power, noise = np.square(wide).sum(), np.square(wide - found).sum()
    if not np.isfinite(noise) or (noise and not power):
        return math.inf
    return float(np.sqrt(noise / power)) if noise else 0.0


def _mean(ratios: tuple[float, ...]) -> float:
    return sum(ratios) / len(ratios)


def _decibels(ratio: float) -> str:
    if ratio == 0:
        return "equal"
    return f"{-20 * math.log10(ratio):.1f} dB" if math.isfinite(ratio) else "no number"
