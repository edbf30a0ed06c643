"""`mosstalk parity kv-cache`: all checks on one checkpoint."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from mosstalk.errors import UsageError
from mosstalk.parity.comparison import CheckResult, Comparison, Expectation
from mosstalk.parity.family.delay import DelayLanguageModel
from mosstalk.parity.family.language_model import LanguageModel
from mosstalk.parity.family.nano import NanoLanguageModel
from mosstalk.parity.kv_cache import frames, heads, local, prefill, reads, reuse
from mosstalk.parity.kv_cache.subject import Subject, make_subject
from mosstalk.parity.opening import Opened, Setting
from mosstalk.parity.report import Report

MIN_ROWS = 4


@dataclass(frozen=True, slots=True)
class Options:
    """What the user can choose. `tolerance` None: AUTO_TOLERANCE of the device.

    Raises UsageError for a value outside its range.
    """

    tolerance: float | None = None
    rows: int = 24
    frames: int = 8
    seed: int = 0

    def __post_init__(self) -> None:
        if self.rows < MIN_ROWS:
            raise UsageError(f"rows is {self.rows}, but must be at least {MIN_ROWS}")
        if self.frames < 1:
            raise UsageError(f"frames is {self.frames}, but must be at least 1")
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
    family: type[LanguageModel] | None = None  # None: all

    def applies(self, model: LanguageModel) -> bool:
        if self.backends is not None and model.backend.name not in self.backends:
            return False
        return self.family is None or isinstance(model, self.family)


_CHECKS = (
    _Check("prefill vs chunked", prefill.check_chunks),
    _Check("decode step vs prefill", prefill.check_steps),
    _Check("single-row chain", prefill.check_single_rows),
    _Check("cache capacity", prefill.check_capacity),
    _Check("threads", prefill.check_threads, backends=("cpu",)),
    _Check("prefix reuse", reuse.check_prefix),
    _Check("fork", reuse.check_fork),
    _Check("truncate", reuse.check_truncate),
    _Check("save and load", reuse.check_save),
    _Check("frames, greedy", frames.check_greedy),
    _Check("frames, sampled", frames.check_sampled),
    _Check("second generation", frames.check_second_generation),
    _Check("local frame repeat", local.check_repeat, family=NanoLanguageModel),
    _Check("local frame slots", local.check_slots, family=NanoLanguageModel),
    _Check("fewer codebooks", local.check_fewer_codebooks, family=NanoLanguageModel),
    _Check("heads repeat", heads.check_repeat, family=DelayLanguageModel),
    _Check("heads in parts", heads.check_slots, family=DelayLanguageModel),
    _Check("heads over the cache", heads.check_cached, family=DelayLanguageModel),
    _Check("reads leave the cache", reads.check_reads),
    _Check("prompt change must differ", reuse.check_changed_row, "differ"),
    _Check("other order must differ", reuse.check_order, "differ"),
    _Check("mismatched prefix must differ", reuse.check_wrong_prefix, "differ"),
)


def run_kv_cache(opened: Opened, options: Options) -> Report:
    """Run every check that applies to the model and its device.

    Raises UsageError for options that the model cannot follow.
    """
    model = opened.language_model()
    _check_length(model, options)
    tolerance = opened.tolerance(options.tolerance)
    settings: dict[str, Setting] = {
        **opened.settings,
        "rows": options.rows,
        "frames": options.frames,
        "seed": options.seed,
        "tolerance": tolerance,
    }
    results = check_model(model, options.rows, options.frames, options.seed, tolerance)
    return Report("kv-cache", settings, tuple(results))


def check_model(
    model: LanguageModel, rows: int, num_frames: int, seed: int, tolerance: float
) -> Iterator[CheckResult]:
    """Results in the order of the table."""
    subject = make_subject(model, rows, num_frames, seed, tolerance)
    for check in _CHECKS:
        if not check.applies(model):
            continue
        comparison = Comparison(check.name, tolerance, check.expects)
        try:
            check.compare(subject, comparison)
        except Exception as error:  # an engine that breaks down under a check has failed it
            comparison.fail(f"{type(error).__name__}: {error}")
        yield comparison.result()


def _check_length(model: LanguageModel, options: Options) -> None:
    if options.rows + model.rows_for(options.frames) > model.max_positions:
        raise UsageError(
            f"{options.rows} rows and {options.frames} frames are more than the model's "
            f"{model.max_positions} positions"
        )
