"""`mosstalk parity storage`: each storage type against f32."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mosstalk.checkpoint.storage import StorageType, StoredTensor
from mosstalk.checkpoint.weights import storage_for
from mosstalk.errors import UsageError
from mosstalk.models.moss_tts_nano.config import NanoConfig
from mosstalk.models.moss_tts_nano.model import NanoModel
from mosstalk.models.moss_tts_nano.prompt import PromptBuilder
from mosstalk.parity.comparison import CheckResult, Comparison
from mosstalk.parity.figure import Figure, Line, Table
from mosstalk.parity.kv_cache.subject import random_rows
from mosstalk.parity.opening import Opened, Setting
from mosstalk.parity.report import Report
from mosstalk.parity.storage.codec import compare_codec
from mosstalk.parity.storage.language import Trace, drift, trace
from mosstalk.parity.storage.rounding import DRIFT_TOLERANCE, ROUNDING, TYPES
from mosstalk.text.tokenizer import Tokenizer

_SENTENCE = "The quick brown fox jumps over the lazy dog."
_LANGUAGE_HEADER = (
    "weight type",
    "MB",
    "hidden, largest",
    "hidden, rms",
    "logits, largest",
    "frames in step",
    "codes equal",
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
    model = opened.nano(StorageType.F32)
    rows = _prompt(opened, model.config, options)
    _check_length(model.config, len(rows) + options.frames)
    whole = trace(model, rows, options.frames)
    peak = np.abs(whole.hidden).max()
    positions = range(len(whole.hidden))
    results, lines = [], []
    cells = [_row("f32", model, whole, whole)]
    for storage in TYPES:
        other = opened.nano(storage)
        results.append(_weights(model, other, storage))
        found = trace(other, rows, options.frames, whole)
        comparison = Comparison(f"hidden, {storage}", DRIFT_TOLERANCE[storage])
        comparison.add("hidden", whole.hidden, found.hidden)
        results.append(comparison.result())
        cells.append(_row(str(storage), other, whole, found))
        differences = np.abs(found.hidden - whole.hidden).max(axis=1) / peak
        lines.append(Line(str(storage), tuple(positions), tuple(differences.tolist())))
    figure = Figure(
        "Hidden vectors: drift from f32", "position", "relative", tuple(lines), is_log=True
    )
    title = f"Language model, {options.frames} frames with the history of f32"
    return results, Table(title, _LANGUAGE_HEADER, tuple(cells)), figure


def _prompt(opened: Opened, config: NanoConfig, options: Options) -> NDArray[np.int32]:
    """The prompt of a sentence, or random rows for a model without a tokeniser."""
    if opened.checkpoint.tokenizer_model is None:
        return random_rows(config, options.rows, options.seed)
    return PromptBuilder(config, Tokenizer(opened.checkpoint.tokenizer_model)).plain(_SENTENCE).rows


def _check_length(config: NanoConfig, positions: int) -> None:
    if positions > config.max_position_embeddings:
        raise UsageError(
            f"{positions} rows and frames are more than the model's "
            f"{config.max_position_embeddings} positions; lower --rows or --frames"
        )


def _weights(model: NanoModel, other: NanoModel, storage: StorageType) -> CheckResult:
    """Every matrix is stored as asked, or as f16 where q8_0 has no whole blocks, and rounded."""
    comparison = Comparison(f"weights, {storage}", ROUNDING[storage])
    for exact, rounded in zip(_matrices(model), _matrices(other), strict=True):
        wanted = storage_for(exact, storage)
        comparison.require(
            rounded.storage is wanted, f"{exact.name} is stored as {rounded.storage}, not {wanted}"
        )
        comparison.add(exact.name, exact.to_float32(), rounded.to_float32())
    return comparison.result()


def _matrices(model: NanoModel) -> list[StoredTensor]:
    weights = model.weights
    blocks = (*weights.global_stack.blocks, *weights.local_stack.blocks)
    inner = [m for b in blocks for m in (b.c_attn[0], b.c_proj[0], b.fc_in[0], b.fc_out[0])]
    return [weights.wte, *weights.audio_embeddings, *inner]


def _row(name: str, model: NanoModel, whole: Trace, found: Trace) -> tuple[str, ...]:
    drifted = drift(whole.frames, found.frames)
    difference = found.hidden.astype(np.float64) - whole.hidden
    peak = float(np.abs(whole.hidden).max())
    return (
        name,
        f"{sum(t.num_bytes for t in _matrices(model)) / 1e6:.1f}",
        f"{np.abs(difference).max() / peak:.2e}",
        f"{np.sqrt(np.square(difference).mean()) / peak:.2e}",
        f"{drifted.logits:.2e}",
        f"{drifted.frames_in_step} of {len(whole.frames)}",
        f"{100 * drifted.codes_equal:.1f} %",
        str(drifted.first or "none"),
    )
