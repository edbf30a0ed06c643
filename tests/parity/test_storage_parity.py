"""What storage types cost is told truly, and a broken one does not pass."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from mosstalk.checkpoint import storage, weights
from mosstalk.checkpoint.storage import StorageType, StoredTensor
from mosstalk.errors import UsageError
from mosstalk.parity.family.language_model import Choice, GreedyRow
from mosstalk.parity.greedy_frame import top_gap
from mosstalk.parity.opening import ModelChoice
from mosstalk.parity.report import Report
from mosstalk.parity.storage.codec import signal_to_noise_db
from mosstalk.parity.storage.language import drift
from mosstalk.parity.storage.run import Options, run_storage

Patch = pytest.MonkeyPatch
_convert = storage.convert


def run(model: Path, frames: int = 6) -> Report:
    return run_storage(ModelChoice(str(model), threads=1).open(), Options(frames=frames))


def test_each_type_drifts_by_about_its_rounding(random_nano: Path) -> None:
    report = run(random_nano)
    assert report.passed, report.as_text()
    (table,) = report.tables
    rows = {row[0]: row for row in table.rows}
    assert float(rows["f32"][2]) == 0.0 and rows["f32"][5] == "6 of 6"
    f16, bf16, q8_0 = (float(rows[name][2]) for name in ("f16", "bf16", "q8_0"))
    assert 0 < f16 < bf16 < q8_0 < 0.1
    megabytes = [float(rows[name][1]) for name in ("f32", "f16", "q8_0")]
    assert megabytes[0] > megabytes[1] > megabytes[2]
    assert {line.label for line in report.figures[0].lines} == {"f16", "bf16", "q8_0"}


@pytest.mark.parametrize("name", ["codec_nano_narrow"])
def test_golden_codec_alone(golden_dir: Path, name: str) -> None:
    report = run(golden_dir / "checkpoints" / name)
    assert report.passed, report.as_text()
    decibels = {row[0]: float(row[1]) for row in report.tables[0].rows}
    assert decibels["f16"] > decibels["bf16"] > 20
    assert len(report.results) == 3


def test_too_many_frames_are_a_usage_error(random_nano: Path) -> None:
    with pytest.raises(UsageError, match="320 positions"):
        run(random_nano, frames=400)
    with pytest.raises(UsageError, match="frames is 0"):
        Options(frames=0)


def test_first_disagreement_and_its_gap_are_told() -> None:
    """Formula: the id that differs first, the gap between the two largest logits there."""

    def row(ids: list[int], logits: list[list[float]], is_chain: bool = True) -> GreedyRow:
        choices = tuple(
            Choice(f"codebook {q}", np.array(values, np.float32), ids[q])
            for q, values in enumerate(logits)
        )
        return GreedyRow(np.array([9, *ids], np.int32), choices, is_chain)

    same = row([1, 0], [[0, 3], [4, 1]])
    wanted = row([1, 0], [[0, 2], [1.0, 0.75]])
    got = row([1, 1], [[0, 2], [0.5, 0.75]])
    drifted = drift([same, wanted], [same, got])
    assert drifted.rows_in_step == 1
    assert drifted.ids_equal == 3 / 4
    assert drifted.first is not None
    assert (drifted.first.row, drifted.first.channel) == (1, "codebook 1")
    assert (drifted.first.gap, drifted.first.logit_difference) == (0.25, 0.5)
    assert drifted.logits == 0.5 / 4
    assert drift([same], [same]).first is None
    # After a disagreement the rest of a chain is not compared; choices apart from each other are.
    other = [[5, 0], [4.0, 1]]
    assert drift([same], [row([0, 0], other)]).ids_equal == 0
    apart = row([1, 0], [[0, 3], [4, 1]], is_chain=False)
    assert drift([apart], [row([0, 0], other, is_chain=False)]).ids_equal == 1 / 2
    forbidden = row([1], [[-np.inf, 2]])
    assert drift([forbidden], [forbidden]).logits == 0
    assert top_gap(np.array([1.0, 5.0, 4.5], np.float32)) == 0.5


def test_signal_to_noise_by_its_formula() -> None:
    signal = np.full((1, 10), 2.0, np.float32)
    assert signal_to_noise_db(signal, signal + np.float32(0.02)) == pytest.approx(40, abs=1e-4)
    assert signal_to_noise_db(signal, signal) == 200.0


def not_stored(tensor: StoredTensor, wanted: StorageType) -> StoredTensor:
    return _convert(tensor, StorageType.F32)


def cut_off_not_rounded(tensor: StoredTensor, wanted: StorageType) -> StoredTensor:
    if wanted is not StorageType.BF16:
        return _convert(tensor, wanted)
    upper = (tensor.to_float32().view(np.uint32) >> 16).astype(np.uint16)
    return StoredTensor(tensor.name, tensor.shape, wanted, upper)


def scale_one_block_late(tensor: StoredTensor, wanted: StorageType) -> StoredTensor:
    packed = _convert(tensor, wanted)
    if packed.storage is not StorageType.Q8_0:
        return packed
    blocks = packed.data.reshape(-1, 34).copy()
    blocks[:, :2] = np.roll(blocks[:, :2], 1, axis=0)
    return StoredTensor(packed.name, packed.shape, wanted, blocks.reshape(packed.data.shape))


def one_weight_is_nan(tensor: StoredTensor, wanted: StorageType) -> StoredTensor:
    packed = _convert(tensor, wanted)
    if packed.storage is not StorageType.F16:
        return packed
    values: NDArray[np.generic] = packed.data.copy()
    values.reshape(-1)[0] = np.float16(np.nan)
    return StoredTensor(packed.name, packed.shape, wanted, values)


@pytest.mark.parametrize(
    ("fault", "caught_by"),
    [
        (not_stored, {"weights, f16", "weights, bf16", "weights, q8_0"}),
        (cut_off_not_rounded, {"weights, bf16"}),
        (scale_one_block_late, {"weights, q8_0"}),
        (one_weight_is_nan, {"weights, f16", "hidden, f16"}),
    ],
)
def test_storage_faults_are_caught(
    random_nano: Path,
    monkeypatch: Patch,
    fault: Callable[[StoredTensor, StorageType], StoredTensor],
    caught_by: set[str],
) -> None:
    monkeypatch.setattr(weights, "convert", fault)
    report = run(random_nano)
    failed = {result.name for result in report.results if not result.passed}
    assert caught_by <= failed, report.as_text()
