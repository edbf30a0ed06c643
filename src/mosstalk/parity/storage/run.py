"""`mosstalk parity storage`: each storage type against f32."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mosstalk.checkpoint.storage import StorageType
from mosstalk.checkpoint.weights import storage_for
from mosstalk.errors import UsageError
from mosstalk.parity.comparison import CheckResult, Comparison
from mosstalk.parity.family.language_model import LanguageModel
from mosstalk.parity.figure import Figure, Line, Table
from mosstalk.parity.opening import Opened, Setting
from mosstalk.parity.report import Report
from mosstalk.parity.storage.codec import compare_codec
from mosstalk.parity.storage.language import Trace, drift, trace
from mosstalk.parity.storage.rounding import DRIFT_TOLERANCE, ROUNDING, TYPES

_SENTENCE = "The quick brown fox jumps over the lazy dog."
_LANGUAGE_HEADER = (
    "weight type",
    "MB",
    "hidden, largest",
    "hidden, rms",
    "logits, largest",
    "rows in step",
    "ids equal",
    "first disagreement",
)


@dataclass(frozen=True, slots=True)
class Options:
    """How much is computed. Raises UsageError for a value outside its range."""

    rows: int = 24  # of a random prompt, where the model has no tokeniser
    frames: int = 16
    seed: int = 0

    def __post_init__(self) -> None:
        if self.rows < 1 or self.frames < 1:
            raise UsageError(
                f"rows is {self.rows} and frames is {self.frames}, but both must be at least 1"
            )


def run_storage(opened: Opened, options: Options) -> Report:
    """Compare what the checkpoint holds; raises UsageError for one that holds nothing to compare.

    Whatever weight type was chosen, all are run.
    """
    parts: list[tuple[list[CheckResult], Table, Figure]] = []
    if opened.has_language_model:
        parts.append(_language(opened, options))
    if opened.has_codec:
        parts.append(compare_codec(opened, options.frames, options.seed))
    settings: dict[str, Setting] = {
        **opened.settings,
        "weight_type": "all",
        "frames": options.frames,
        "seed": options.seed,
    }
    results = tuple(result for found, _, _ in parts for result in found)
    tables = tuple(table for _, table, _ in parts)
    return Report("storage", settings, results, tables, tuple(figure for _, _, figure in parts))


def _language(opened: Opened, options: Options) -> tuple[list[CheckResult], Table, Figure]:
    model = opened.language_model(StorageType.F32)
    rows = _prompt(model, options)
    count = model.rows_for(options.frames)
    _check_length(model, len(rows) + count)
    whole = trace(model, rows, count)
    peak = np.abs(whole.hidden).max()
    positions = range(len(whole.hidden))
    results, lines = [], []
    cells = [_row("f32", model, whole, whole)]
    for storage in TYPES:
        other = opened.language_model(storage)
        results.append(_weights(model, other, storage))
        found = trace(other, rows, count, whole)
        comparison = Comparison(f"hidden, {storage}", DRIFT_TOLERANCE[storage])
        comparison.add("hidden", whole.hidden, found.hidden)
        results.append(comparison.result())
        cells.append(_row(str(storage), other, whole, found))
        differences = np.abs(found.hidden - whole.hidden).max(axis=1) / peak
        lines.append(Line(str(storage), tuple(positions), tuple(differences.tolist())))
    figure = Figure(
        "Hidden vectors: drift from f32", "position", "relative", tuple(lines), is_log=True
    )
    title = f"Language model, {count} rows after the prompt with the history of f32"
    return results, Table(title, _LANGUAGE_HEADER, tuple(cells)), figure


def _prompt(model: LanguageModel, options: Options) -> NDArray[np.int32]:
    """The prompt of a sentence, or random rows for a model without a tokeniser."""
    rows = model.sentence_prompt(_SENTENCE)
    return model.random_prompt(options.rows, options.seed) if rows is None else rows


def _check_length(model: LanguageModel, positions: int) -> None:
    if positions > model.max_positions:
        raise UsageError(
            f"{positions} rows and frames are more than the model's {model.max_positions} "
            "positions; lower --rows or --frames"
        )


def _weights(model: LanguageModel, other: LanguageModel, storage: StorageType) -> CheckResult:
    """Every matrix is stored as asked, or as f16 where q8_0 has no whole blocks, and rounded."""
    comparison = Comparison(f"weights, {storage}", ROUNDING[storage])
    for exact, rounded in zip(model.matrices(), other.matrices(), strict=True):
        wanted = storage_for(exact, storage)
        comparison.require(
            rounded.storage is wanted, f"{exact.name} is stored as {rounded.storage}, not {wanted}"
        )
        comparison.add(exact.name, exact.to_float32(), rounded.to_float32())
    return comparison.result()


def _row(name: str, model: LanguageModel, whole: Trace, found: Trace) -> tuple[str, ...]:
    drifted = drift(whole.rows, found.rows)
    difference = found.hidden.astype(np.float64) - whole.hidden
    peak = float(np.abs(whole.hidden).max())
    return (
        name,
        f"{sum(t.num_bytes for t in model.matrices()) / 1e6:.1f}",
        f"{np.abs(difference).max() / peak:.2e}",
        f"{np.sqrt(np.square(difference).mean()) / peak:.2e}",
        f"{drifted.logits:.2e}",
        f"{drifted.rows_in_step} of {len(whole.rows)}",
        f"{100 * drifted.ids_equal:.1f} %",
        str(drifted.first or "none"),
    )
