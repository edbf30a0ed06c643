"""A healthy engine agrees with the original's numbers, in every form that users can choose."""

from pathlib import Path

import pytest
from reference_dumps import (
    CODEC_OF,
    RECORDED,
    RECORDED_CODEC,
    RECORDED_MODEL,
    checkpoint_folder,
    golden_dump,
)

from mosstalk.checkpoint.checkpoint import open_checkpoint
from mosstalk.checkpoint.storage import StorageType
from mosstalk.checkpoint.write import write_gguf
from mosstalk.parity.opening import ModelChoice
from mosstalk.parity.reference.dump_file import write_dump_file
from mosstalk.parity.reference.run import run_reference
from mosstalk.parity.report import Report


def compare(golden_dir: Path, name: str, dump: Path, *, codec: bool, **options: str) -> Report:
    model = checkpoint_folder(golden_dir, name)
    codec_folder = str(golden_dir / "checkpoints" / CODEC_OF[name]) if codec else None
    return run_reference(ModelChoice(str(model), codec_folder, **options).open(), dump)


def recorded(golden_dir: Path, **options: str) -> Report:
    checkpoint_folder(golden_dir, RECORDED_CODEC)
    return compare(golden_dir, RECORDED_MODEL, RECORDED, codec=True, **options)


@pytest.mark.parametrize("backend", ["cpu", "reference"])
@pytest.mark.parametrize("name", ["nano_a", "nano_b", "nano_c"])
def test_golden_arrays(golden_dir: Path, tmp_path: Path, name: str, backend: str) -> None:
    dump = golden_dump(golden_dir, name)
    path = tmp_path / "golden.npz"
    write_dump_file(path, dump.as_file())
    report = compare(golden_dir, name, path, codec=dump.codec is not None, backend=backend)
    assert report.passed, report.as_text()
    assert report.settings["tolerance"] == 1e-5
    assert len(report.results) == 2 * len(dump.prompts) + 2 * (dump.codec is not None) + (
        name == "nano_c"
    )
    assert all(result.compared for result in report.results)
    assert all(row["first disagreement"] == "none" for row in report.tables[0].as_records())


@pytest.mark.parametrize("backend", ["cpu", "reference"])
def test_a_dump_recorded_from_the_original(golden_dir: Path, backend: str) -> None:
    report = recorded(golden_dir, backend=backend)
    assert report.passed, report.as_text()
    assert [result.name for result in report.results] == [
        "hidden: random rows",
        "greedy: random rows",
        "codec: codes to audio",
        "codec: audio to codes",
    ]
    assert report.max_abs is not None and report.max_abs < 1e-4  # of samples up to 33
    choices = {row["choices"]: row for row in report.tables[0].as_records()}
    assert choices["audio to codes"]["equal"] == str(150 * 16)
    assert choices["greedy: random rows"]["different"] == "0"


@pytest.mark.parametrize("storage", ["f32", "f16", "bf16", "q8_0"])
def test_rounded_weights_pass_within_what_rounding_allows(golden_dir: Path, storage: str) -> None:
    report = recorded(golden_dir, weight_type=storage)
    assert report.passed, report.as_text()
    tolerances = {"f32": 1e-5, "f16": 2**-6, "bf16": 2**-3, "q8_0": 32 * (0.5 / 127 + 2**-11)}
    assert report.settings["tolerance"] == pytest.approx(tolerances[storage])
    assert report.settings["codec_tolerance"] == 1e-5  # its weights stay as they are


def test_a_converted_model_is_the_same_checkpoint(golden_dir: Path, tmp_path: Path) -> None:
    """And its tolerance is that of the rounded file, even where it is run as f32."""
    model = checkpoint_folder(golden_dir, RECORDED_MODEL)
    codec = checkpoint_folder(golden_dir, RECORDED_CODEC)
    path = tmp_path / "converted.gguf"
    write_gguf(open_checkpoint(model, codec), path, StorageType.Q8_0)
    report = run_reference(ModelChoice(str(path), weight_type="f32").open(), RECORDED)
    assert report.passed, report.as_text()
    assert report.settings["tolerance"] == report.settings["codec_tolerance"]
    assert report.settings["tolerance"] == pytest.approx(0.14, abs=0.01)
    first = report.tables[0].as_records()[0]
    assert first["first disagreement"].startswith("frame ")
    assert 0 < float(first["gap"]) < float(first["allowed"])


def test_a_dump_without_codec_judges_the_language_model_alone(
    golden_dir: Path, tmp_path: Path
) -> None:
    path = tmp_path / "model.json"
    write_dump_file(path, golden_dump(golden_dir, "nano_a", codec=False).as_file())
    report = compare(golden_dir, "nano_a", path, codec=False)
    assert report.passed, report.as_text()
    assert report.settings["codec"] == "no"
    assert not any(result.name.startswith("codec") for result in report.results)
