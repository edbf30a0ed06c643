"""`mosstalk parity codec`: all checks on one codec."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from mosstalk.errors import UsageError
from mosstalk.parity.codec import encode, noise, past, stream, written
from mosstalk.parity.codec.layout import read_layout
from mosstalk.parity.codec.subject import Subject, random_codes
from mosstalk.parity.codec.written_out import WrittenOut
from mosstalk.parity.comparison import CheckResult, Comparison, Expectation
from mosstalk.parity.figure import Figure, Table
from mosstalk.parity.opening import Opened, Setting
from mosstalk.parity.report import Report

# Of the largest sample, between computations that sum in another order or more precisely.
ROUNDING_TOLERANCE = 1e-4
_IN_HOST_MEMORY = ("cpu", "reference")  # backends whose State arrays can be written


@dataclass(frozen=True, slots=True)
class Options:
    """What the user can choose. `tolerance` None: AUTO_TOLERANCE of the device.

    Raises UsageError for a value outside its range.
    """

    tolerance: float | None = None
    frames: tuple[int, ...] = (43, 94, 171, 375, 1000)
    seed: int = 0

    def __post_init__(self) -> None:
        if not self.frames:
            raise UsageError("frames names no length to compare at")
        for count in self.frames:
            if count < 1:
                raise UsageError(f"frames is {count}, but must be at least 1")
        if not 0 <= self.seed < 2**63:
            raise UsageError(f"the seed is {self.seed}, but must be from 0 to 2^63 - 1")
        if self.tolerance is not None and not 0 <= self.tolerance < np.inf:
            raise UsageError(f"tolerance is {self.tolerance}, but must be 0 or more")


@dataclass(frozen=True, slots=True)
class _Check:
    name: str
    compare: Callable[[Subject, Comparison], None]
    expects: Expectation = "equal"
    backends: tuple[str, ...] | None = None  # None: all
    encodes: bool = False
    tolerance: float | None = None  # None: the report's


_CHECKS = (
    _Check("decoder as written out", written.check_written, tolerance=ROUNDING_TOLERANCE),
    _Check("noise does not grow", noise.check_growth, tolerance=ROUNDING_TOLERANCE),
    _Check(
        "decoder on reference",
        written.check_reference,
        backends=("cpu", "cuda", "vulkan"),
        tolerance=ROUNDING_TOLERANCE,
    ),
    _Check("reset, A-B-A", stream.check_reset),
    _Check("state does not grow", stream.check_state_size),
    _Check("threads", stream.check_threads, backends=("cpu",)),
    _Check("windows", past.check_windows, backends=_IN_HOST_MEMORY),
    _Check("silence after sound", past.check_silence),
    _Check("causality", past.check_causality),
    _Check("encode, prefixes", encode.check_prefixes, encodes=True),
    _Check(
        "encoder as written out",
        encode.check_written,
        encodes=True,
        tolerance=ROUNDING_TOLERANCE,
    ),
    _Check("window's end must be heard", past.check_oldest, "differ", _IN_HOST_MEMORY),
    _Check("frame change must differ", past.check_change, "differ"),
    _Check("other order must differ", stream.check_order, "differ"),
    _Check("dropped state must differ", stream.check_dropped_state, "differ"),
    _Check("other sound must differ", encode.check_change, "differ", encodes=True),
)


def run_codec(opened: Opened, options: Options) -> Report:
    """Run every check that applies to the codec and its device.

    Raises UsageError where there is no codec.
    """
    codec = opened.codec()
    checkpoint = opened.checkpoint
    assert checkpoint.codec_config is not None and checkpoint.codec_tensors is not None
    layout = read_layout(checkpoint.codec_config)
    frames = tuple(sorted(set(options.frames)))
    subject = Subject(
        codec=codec,
        layout=layout,
        written=WrittenOut(layout, checkpoint.codec_tensors),
        frames=frames,
        codes=random_codes(layout, frames[-1], (options.seed,)),
        seed=options.seed,
        tolerance=opened.tolerance(options.tolerance),
    )
    settings: dict[str, Setting] = {
        **opened.settings,
        "frames": ",".join(map(str, frames)),
        "seed": options.seed,
        "tolerance": subject.tolerance,
    }
    results = tuple(_results(subject))
    tables, figures = _noise(subject)
    return Report("codec", settings, results, tables, figures)


def _results(subject: Subject) -> Iterator[CheckResult]:
    """In the order of the table: a row for each length, then the others."""
    lengths = [
        _Check(f"stream vs whole, {frames} frames", stream.stream_check(frames))
        for frames in subject.frames
    ]
    for check in (*lengths, *_CHECKS):
        if check.backends and subject.codec.backend.name not in check.backends:
            continue
        if check.encodes and not subject.can_encode:
            continue
        tolerance = subject.tolerance if check.tolerance is None else check.tolerance
        comparison = Comparison(check.name, tolerance, check.expects)
        try:
            check.compare(subject, comparison)
        except Exception as error:  # a codec that breaks down under a check has failed it
            comparison.fail(f"{type(error).__name__}: {' '.join(str(error).split())}")
        yield comparison.result()


def _noise(subject: Subject) -> tuple[tuple[Table, ...], tuple[Figure, ...]]:
    """What is told beside the checks; nothing of a codec that breaks down, which has failed."""
    try:
        table, figure = noise.draw(noise.all_noise(subject))
    except Exception:
        return (), ()
    return (table,), (figure,)
