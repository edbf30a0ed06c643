"""The delay family against its original: a recorded dump, golden arrays and what is told."""

import json
import sys
import tomllib
from importlib.metadata import EntryPoint
from pathlib import Path

import numpy as np
import pytest
from delay_dumps import (
    GOLDEN_RUNS,
    RECORDED,
    RECORDED_CODEC,
    RECORDED_MODEL,
    checkpoint_folder,
    edited,
    golden_dump,
    recorded_without_codec,
)
from random_delay import DelaySizes, write_random_delay

from mosstalk.checkpoint.checkpoint import Checkpoint, open_checkpoint
from mosstalk.checkpoint.storage import StorageType, from_float32
from mosstalk.checkpoint.write import write_safetensors
from mosstalk.cli import main
from mosstalk.compute.state import State
from mosstalk.errors import UsageError
from mosstalk.models.moss_tts_delay.backbone import Backbone
from mosstalk.parity.delay.backbone import run_backbone
from mosstalk.parity.delay.heads import run_heads
from mosstalk.parity.delay.reference import run_dump_folder
from mosstalk.parity.family.delay import DelayLanguageModel
from mosstalk.parity.opening import ModelChoice, Opened
from mosstalk.parity.report import Report

Capture = pytest.CaptureFixture[str]
MODEL_CHECKS = {
    "hidden, one prefill",
    "hidden, prefill and step",
    "text head",
    "likeliest rows: penalty 1",
    "likeliest rows: penalty 1.1",
    "drawable rows: penalty 1",
    "drawable rows: penalty 1.1",
}


@pytest.fixture
def model(golden_dir: Path) -> str:
    return str(checkpoint_folder(golden_dir, RECORDED_MODEL))


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    return recorded_without_codec(tmp_path / "dump")


def backbone(opened: Opened, folder: Path) -> Report:
    return run_backbone(opened, folder / "ref_prompt.json", folder / "ref_hidden.json")


@pytest.mark.parametrize("weight_type", ["native", "f32", "f16", "bf16", "q8_0"])
@pytest.mark.parametrize("backend", ["cpu", "reference"])
def test_delay_recorded_dump(model: str, dump: Path, weight_type: str, backend: str) -> None:
    choice = ModelChoice(model, weight_type=weight_type, backend=backend, threads=1)
    report = run_dump_folder(choice.open(), dump)
    assert report.passed, report.as_text()
    assert {result.name for result in report.results} == MODEL_CHECKS
    exact = weight_type in ("native", "f32")
    assert (report.settings["tolerance"] == 1e-5) == exact
    (likeliest,) = [table for table in report.tables if table.title == "Likeliest rows"]
    if weight_type != "q8_0":  # which meets a near-tie in row 24
        assert {row[1] for row in likeliest.rows} == {"44 of 44"}


def test_delay_recorded_dump_with_its_codec(golden_dir: Path, model: str) -> None:
    codec = str(checkpoint_folder(golden_dir, RECORDED_CODEC))
    report = run_dump_folder(ModelChoice(model, codec=codec).open(), RECORDED)
    assert report.passed, report.as_text()
    assert {result.name for result in report.results} == {*MODEL_CHECKS, "codec: codes to audio"}


@pytest.mark.parametrize("name", ["delay_small", "delay_vg"])
@pytest.mark.parametrize("threads", [1, 2])
def test_delay_golden_arrays(golden_dir: Path, tmp_path: Path, name: str, threads: int) -> None:
    """Files that others write have no origin and no logits."""
    opened = ModelChoice(str(checkpoint_folder(golden_dir, name)), threads=threads).open()
    folder = golden_dump(golden_dir, name, tmp_path / "golden")
    report = backbone(opened, folder)
    assert report.passed, report.as_text()
    report = run_heads(opened, [folder / f"{run}.json" for run in GOLDEN_RUNS])
    assert report.passed, report.as_text()
    assert {row[3] for row in report.tables[0].rows} == {"0"}  # no id differs


@pytest.mark.parametrize("case", ["text_only", "instr_en", "instr_zh"])
def test_delay_prompt_ids_of_the_original_processor(
    golden_dir: Path, tmp_path: Path, case: str
) -> None:
    source = checkpoint_folder(golden_dir, "delay_vg")
    tokenizer = golden_dir / "tokenizers" / "qwen" / "tokenizer.json"
    if not tokenizer.is_file():
        pytest.skip("the Qwen tokeniser is not here")
    folder = tmp_path / "model"
    folder.mkdir()
    for file in (source / "config.json", source / "model.safetensors", tokenizer):
        (folder / file.name).symlink_to(file)
    dumped = golden_dump(golden_dir, "delay_vg", tmp_path / "golden")
    content = json.loads((golden_dir / "reference" / "delay_prompts.json").read_text())[case]
    lines = content["content"].splitlines()
    with np.load(golden_dir / "reference" / "delay_vg.npz") as arrays:
        rows = arrays[f"proc_{case}_input_ids"].tolist()  # a batch of one
    instruction = lines[lines.index("- Instruction:") + 1]

    def give_text(values: dict[str, object]) -> None:
        values |= {
            "text": lines[lines.index("- Text:") + 1],
            "instruction": None if instruction == "None" else instruction,
            "language": "",
            "content": content["content"],
            "input_ids": rows,
        }

    edited(dumped / "ref_prompt.json", give_text)
    edited(dumped / "ref_hidden.json", lambda values: values.update(rows=len(rows[0])))
    report = backbone(ModelChoice(str(folder)).open(), dumped)
    (ids,) = [result for result in report.results if result.name == "prompt ids"]
    assert ids.passed and ids.compared == len(rows[0]) * 17
    # The vectors are another prompt's, and that is seen.
    failed = {result.name for result in report.results if not result.passed}
    assert {"hidden, one prefill", "hidden, prefill and step"} <= failed


def test_f16_weights_pass_where_activations_are_beyond_f16(tmp_path: Path) -> None:
    """Their products are float32; with f16 activations the last row would hold no numbers."""
    folder = write_random_delay(tmp_path / "random", DelaySizes())
    source = open_checkpoint(folder)
    tensors = dict(source.tensors)
    name = "language_model.layers.0.mlp.down_proj.weight"
    values = tensors[name].to_float32().copy()
    values[5] *= 60_000
    tensors[name] = from_float32(name, values, StorageType.F32)
    loud = Checkpoint(folder, "directory", source.config, tensors, None, None, None, "")
    model = tmp_path / "loud"
    write_safetensors(loud, model, StorageType.NATIVE)
    exact = ModelChoice(str(model), backend="reference").open().language_model()
    assert isinstance(exact, DelayLanguageModel)
    rows = exact.random_prompt(20, 0)
    tapped = Backbone(exact.model.config, exact.model.weights, exact.backend, taps=True)
    hidden = tapped.run(State(exact.spec, 20), rows)
    assert np.abs(tapped.program.array(tapped.outputs["hidden.1"])[:20]).max() > 65_504
    dump = tmp_path / "dump"
    dump.mkdir()
    (dump / "ref_prompt.json").write_text(json.dumps({"input_ids": rows.tolist()}))
    peak = float(np.abs(hidden[-1]).max())
    last = {"last_hidden": hidden[-1].tolist(), "last_hidden_abs_max": peak}
    (dump / "ref_hidden.json").write_text(json.dumps({"rows": 20, "hidden_size": 64, **last}))
    for weight_type in ("f32", "f16", "bf16", "q8_0"):
        report = backbone(ModelChoice(str(model), weight_type=weight_type).open(), dump)
        assert report.passed, report.as_text()


# What is told of a difference.


def test_delay_first_difference_and_its_gap(model: str, dump: Path) -> None:
    rows = json.loads((dump / "ref_rows.json").read_text())["generated_rows"]
    right = rows[2][1]

    def change(values: dict[str, list[list[int]]]) -> None:
        values["generated_rows"][2][1] = (right + 1) % 32

    path = edited(dump / "ref_rows.json", change)
    report = run_heads(ModelChoice(model).open(), [path])
    (result,) = report.results
    assert not result.passed
    assert f"row 2, codebook 0: {right}, not {(right + 1) % 32} (" in result.problem
    ((name, in_step, equal, different, *_),) = report.tables[0].rows
    assert (name, in_step, different) == ("penalty 1", "2 of 44", different)
    assert int(different) >= 1 and int(equal) > 40  # it goes on from the file's rows


def test_delay_a_near_tie_is_no_fault(model: str, dump: Path) -> None:
    """With a tolerance above the gap the difference is told, and passes."""

    def change(values: dict[str, list[list[int]]]) -> None:
        values["generated_rows"][43][0] = 20
        values["logits"][43][0] = 0

    path = edited(dump / "ref_rows.json", change)
    report = run_heads(ModelChoice(model).open(), [path], tolerance=10.0)
    assert report.passed, report.as_text()
    row = report.tables[0].rows[0]
    assert row[1] == "43 of 44" and row[3] == "1" and float(row[4]) > 0


def test_delay_rows_that_cannot_be_drawn(model: str, dump: Path) -> None:
    def change(values: dict[str, list[list[int]]]) -> None:
        values["generated_rows"][0][0] = 7  # audio end

    path = edited(dump / "ref_rows.json", change)
    report = run_heads(ModelChoice(model).open(), [path])
    assert report.results[0].problem == "row 0: text id 7 cannot be drawn"


# The commands.


def command(model: str, folder: Path, *more: str) -> list[str]:
    files = ["--prompt", str(folder / "ref_prompt.json"), "--hidden"]
    return ["--model", model, *files, str(folder / "ref_hidden.json"), *more]


def test_backbone_exit_statuses(model: str, dump: Path, capsys: Capture) -> None:
    assert main(["parity", "backbone", *command(model, dump)]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "PASS: 3 checks"
    edited(dump / "ref_hidden.json", lambda values: values["last_hidden"].reverse())
    assert main(["parity", "backbone", *command(model, dump)]) == 1
    out = capsys.readouterr().out.splitlines()
    assert out[-1].startswith("FAIL: ")
    assert any("FAIL  last hidden: differs by" in line for line in out)
    assert main(["parity", "backbone", *command(model, dump, "--tolerance", "-1")]) == 2
    assert main(["parity", "backbone", "--model", model]) == 2
    (dump / "ref_prompt.json").unlink()
    assert main(["parity", "backbone", *command(model, dump)]) == 1
    error = capsys.readouterr().err.splitlines()
    assert all(line.startswith("mosstalk: error: ") for line in error) and len(error) == 3


def test_backbone_json_is_one_object(model: str, dump: Path, capsys: Capture) -> None:
    more = ("--weight-type", "bf16", "--threads", "2", "--backend", "cpu", "--json")
    assert main(["parity", "backbone", *command(model, dump, *more)]) == 0
    out = capsys.readouterr().out
    values = json.loads(out)
    assert out.count("\n") == 1
    assert values["check"] == "backbone" and values["passed"] is True
    assert (values["rows"], values["hidden_size"], values["threads"]) == (48, 64, 2)
    keys = {"max_abs", "mean_abs", "max_rel", "non_finite", "tolerance"}
    assert all(keys <= set(check) for check in values["checks"])


def test_backbone_has_a_command_of_its_own(
    model: str, dump: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text("utf-8"))
    name = "moss_voicegen_backbone_parity"
    entry = EntryPoint(name, project["project"]["scripts"][name], "console_scripts")
    flags = ["--weight-type", "bf16", "--tolerance", "auto", "--threads", "1", "--backend", "cpu"]
    monkeypatch.setattr(sys, "argv", [name, *command(model, dump, *flags)])
    assert entry.load()() == 0
    lines = capsys.readouterr().out.splitlines()
    for check in ("hidden, one prefill", "hidden, prefill and step", "text head"):
        assert any(line.startswith(check) for line in lines)
    assert lines[-1].startswith("PASS")


def test_heads_delay_and_reference_commands(model: str, dump: Path, capsys: Capture) -> None:
    rows = [str(dump / "ref_rows.json"), str(dump / "ref_rows_penalty.json")]
    assert main(["parity", "heads", "--model", model, "--rows", *rows]) == 0
    assert "44 of 44" in capsys.readouterr().out
    assert main(["parity", "delay", "--model", model, "--rows", *rows]) == 0
    assert "drawable rows: penalty 1.1" in capsys.readouterr().out
    assert main(["parity", "delay", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["passed"] is True
    assert main(["parity", "reference", "--model", model, "--dump", str(dump)]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "PASS: 7 checks"
    assert main(["parity", "delay", "--rows", *rows]) == 2
    assert "is of a model; name it with --model" in capsys.readouterr().err


def test_a_prompt_is_needed_for_rows_without_one(model: str, dump: Path) -> None:
    opened = ModelChoice(model).open()
    path = edited(dump / "ref_rows.json", lambda values: values.pop("input_ids"))
    with pytest.raises(UsageError, match="holds no prompt; name its file with --prompt"):
        run_heads(opened, [path])
    # That of the file lacks audio start, so that other rows follow.
    report = run_heads(opened, [path], dump / "ref_prompt.json")
    assert "cannot be drawn" in report.results[0].problem


def test_delay_checks_refuse_another_family(random_nano: Path, dump: Path) -> None:
    opened = ModelChoice(str(random_nano)).open()
    with pytest.raises(UsageError, match="knows models of type moss_tts_delay only"):
        backbone(opened, dump)
    with pytest.raises(UsageError, match="knows models of type moss_tts_delay only"):
        run_heads(opened, [dump / "ref_rows.json"])
