"""`mosstalk parity kv-cache`: all checks on one checkpoint."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mosstalk.checkpoint.checkpoint import open_checkpoint
from mosstalk.checkpoint.hub import resolve_model
from mosstalk.checkpoint.storage import StorageType
from mosstalk.compute.backend import open_backend
from mosstalk.errors import UsageError
from mosstalk.models.moss_tts_nano.config import NanoConfig
from mosstalk.models.moss_tts_nano.model import NanoModel
from mosstalk.models.registry import family_for
from mosstalk.parity.comparison import CheckResult, Comparison, Expectation
from mosstalk.parity.kv_cache import frames, local, prefill, reads, reuse
from mosstalk.parity.kv_cache.subject import Subject, make_subject
from mosstalk.parity.report import Report

MIN_ROWS = 4
# Relative to the largest value. The cpu backend promises the same bits; NumPy's matrix product
# sums in another order for other numbers of rows.
AUTO_TOLERANCE = {"cpu": 0.0, "reference": 1e-5}


@dataclass(frozen=True, slots=True)
class Options:
    """What the user can choose. `tolerance` None: AUTO_TOLERANCE of the backend.

    Raises UsageError for a value outside its range.
    """

    model: str
    codec: str | None = None
    backend: str = "cpu"
    threads: int = 0
    weight_type: str = "native"
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
    backends: tuple[str, ...] = ("cpu", "reference")


_CHECKS = (
    _Check("prefill: chunks", prefill.check_chunks),
    _Check("prefill: steps", prefill.check_steps),
    _Check("prefill: single rows", prefill.check_single_rows),
    _Check("prefill: capacity", prefill.check_capacity),
    _Check("prefill: threads", prefill.check_threads, backends=("cpu",)),
    _Check("reuse: prefix", reuse.check_prefix),
    _Check("reuse: fork", reuse.check_fork),
    _Check("reuse: truncate", reuse.check_truncate),
    _Check("reuse: save and load", reuse.check_save),
    _Check("frames: greedy", frames.check_greedy),
    _Check("frames: sampled", frames.check_sampled),
    _Check("frames: second generation", frames.check_second_generation),
    _Check("local frame: repeat, range", local.check_repeat),
    _Check("local frame: slots", local.check_slots),
    _Check("local frame: fewer codebooks", local.check_fewer_codebooks),
    _Check("cache untouched by reads", reads.check_reads),
    _Check("control: changed row", reuse.check_changed_row, "differ"),
    _Check("control: other order", reuse.check_order, "differ"),
    _Check("control: wrong prefix", reuse.check_wrong_prefix, "differ"),
)


def run_kv_cache(options: Options) -> Report:
    """Open the model and run every check that applies to it.

    Raises UsageError for options that the model cannot follow, CheckpointError for a model that
    cannot be opened.
    """
    storage = StorageType.parse(options.weight_type)
    backend = open_backend(options.backend, options.threads)
    path, codec = resolve_model(options.model)
    checkpoint = open_checkpoint(path, Path(options.codec) if options.codec else codec)
    if not checkpoint.config:
        raise UsageError(f"{path} is a codec alone; give a language model")
    model = family_for(checkpoint.config).load_language_model(checkpoint, backend, storage)
    if not isinstance(model, NanoModel):
        raise UsageError(f"{path}: kv-cache knows models of type moss_tts_nano only")
    _check_length(model.config, options)
    tolerance = options.tolerance
    if tolerance is None:
        tolerance = AUTO_TOLERANCE[backend.name]
    settings: dict[str, str | int | float] = {
        "model": options.model,
        "backend": backend.name,
        "threads": backend.threads,
        "weight_type": str(storage),
        "rows": options.rows,
        "frames": options.frames,
        "seed": options.seed,
        "tolerance": tolerance,
    }
    results = check_model(model, options.rows, options.frames, options.seed, tolerance)
    return Report("kv-cache", settings, tuple(results))


def check_model(
    model: NanoModel, rows: int, num_frames: int, seed: int, tolerance: float
) -> Iterator[CheckResult]:
    """Results in the order of the table."""
    subject = make_subject(model, rows, num_frames, seed, tolerance)
    for check in _CHECKS:
        if model.backend.name not in check.backends:
            continue
        comparison = Comparison(check.name, tolerance, check.expects)
        try:
            check.compare(subject, comparison)
        except Exception as error:  # an engine that breaks down under a check has failed it
            comparison.fail(f"{type(error).__name__}: {error}")
        yield comparison.result()


def _check_length(config: NanoConfig, options: Options) -> None:
    longest = config.max_position_embeddings
    if options.rows + options.frames > longest:
        raise UsageError(
            f"{options.rows} rows and {options.frames} frames are more than the model's "
            f"{longest} positions"
        )
