"""The commands `parity dump` and `parity reference`: output, exit statuses, usage."""

import json
import subprocess
import sys
import tomllib
from pathlib import Path
from types import SimpleNamespace

import pytest
from reference_dumps import (
    RECORDED,
    RECORDED_CODEC,
    RECORDED_MODEL,
    checkpoint_folder,
)

from mosstalk.cli import main
from mosstalk.errors import CheckpointError, UsageError
from mosstalk.parity.reference import original
from mosstalk.parity.reference.dump_file import read_dump_file, write_dump_file
from mosstalk.parity.reference.request import DumpOptions
from mosstalk.parity.reference.write import write_dump

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def command(golden_dir: Path) -> list[str]:
    model = checkpoint_folder(golden_dir, RECORDED_MODEL)
    codec = checkpoint_folder(golden_dir, RECORDED_CODEC)
    return ["parity", "reference", "--model", str(model), "--codec", str(codec)]


@pytest.fixture
def published(golden_dir: Path, tmp_path: Path) -> Path:
    """A reference directory whose code does nothing."""
    folder = tmp_path / "published"
    folder.mkdir()
    for name in ("config.json", "model.safetensors"):
        file = checkpoint_folder(golden_dir, RECORDED_MODEL) / name
        (folder / name).write_bytes(file.read_bytes())
    (folder / "modeling_moss_tts_nano.py").write_text("")
    return folder


def test_a_pass_is_status_0(command: list[str], capsys: Capture) -> None:
    assert main([*command, "--dump", str(RECORDED), "--tolerance", "auto"]) == 0
    out = capsys.readouterr().out.splitlines()
    assert out[0].startswith("reference: model ")
    assert out[-1] == "PASS: 4 checks"


def test_json_is_one_object(command: list[str], capsys: Capture) -> None:
    arguments = ["--dump", str(RECORDED), "--threads", "2", "--weight-type", "f32", "--json"]
    assert main([*command, *arguments]) == 0
    values = json.loads(capsys.readouterr().out)
    assert values["check"] == "reference"
    assert values["passed"] is True
    assert (values["threads"], values["weight_type"], values["torch"][:4]) == (2, "f32", "2.13")
    keys = {"max_abs", "mean_abs", "max_rel", "non_finite", "tolerance"}
    assert all(keys <= set(check) for check in values["checks"])
    assert {row["first disagreement"] for row in values["tables"]["Choices"]} == {"none"}


def test_a_failure_is_status_1_and_says_where(
    command: list[str], capsys: Capture, tmp_path: Path
) -> None:
    dump = read_dump_file(RECORDED)
    codes = dump.arrays["prompt.0.codes"].copy()
    right = int(codes[2, 5])
    codes[2, 5] = (right + 1) % 64
    path = tmp_path / "other.json"
    write_dump_file(path, type(dump)(dump.meta, {**dump.arrays, "prompt.0.codes": codes}))
    assert main([*command, "--dump", str(path)]) == 1
    out = capsys.readouterr().out
    gap = dump.arrays["prompt.0.code_gaps"][2, 5]
    where = f"frame 2, codebook 5: code {right}, not {codes[2, 5]}"
    assert f"FAIL  {where} ({gap:.3g} apart)" in out
    assert out.splitlines()[-1].startswith("FAIL: ")


def test_rounded_weights_tell_their_first_disagreement_and_its_gap(
    command: list[str], capsys: Capture
) -> None:
    assert main([*command, "--dump", str(RECORDED), "--weight-type", "q8_0", "--json"]) == 0
    first = json.loads(capsys.readouterr().out)["tables"]["Choices"][0]
    frame, codebook = (int(word.strip(",:")) for word in first["first disagreement"].split()[1:4:2])
    gaps = read_dump_file(RECORDED).arrays["prompt.0.code_gaps"]
    assert float(first["gap"]) == pytest.approx(gaps[frame, codebook], rel=1e-2)
    assert float(first["gap"]) < float(first["allowed"])
    assert int(first["equal"]) > 100


@pytest.mark.parametrize("tolerance", ["1e-9", "0"])
def test_a_tolerance_of_ones_own(command: list[str], capsys: Capture, tolerance: str) -> None:
    assert main([*command, "--dump", str(RECORDED), "--tolerance", tolerance]) == 1
    assert "FAIL  hidden: differs by" in capsys.readouterr().out


def test_usage_is_status_2_and_damage_status_1(
    command: list[str], capsys: Capture, tmp_path: Path
) -> None:
    damaged = tmp_path / "damaged.npz"
    damaged.write_bytes(RECORDED.read_bytes()[:2000])
    assert main([*command, "--dump", str(damaged)]) == 1
    assert main([*command, "--dump", str(tmp_path / "none.npz")]) == 1
    assert main([*command, "--dump", "dump.txt"]) == 2
    assert main([*command, "--dump", str(RECORDED), "--tolerance", "-1"]) == 2
    assert main(command) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert all(line.startswith("mosstalk: error: ") for line in captured.err.splitlines())
    assert len(captured.err.splitlines()) == 5


@pytest.mark.parametrize("missing", ["torch", "transformers"])
def test_without_the_extra_one_line_says_how_to_get_it(
    published: Path,
    tmp_path: Path,
    capsys: Capture,
    monkeypatch: pytest.MonkeyPatch,
    missing: str,
) -> None:
    for name in ("torch", "transformers"):
        present = SimpleNamespace(__version__=original.NANO_LIBRARIES.transformers)
        monkeypatch.setitem(sys.modules, name, None if name == missing else present)
    out = tmp_path / "dump.npz"
    assert main(["parity", "dump", "--reference", str(published), "--out", str(out)]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert lines == [
        f"mosstalk: error: {missing} is not installed, which runs the original: "
        "pip install 'mosstalk[reference]'"
    ]
    assert not out.exists()


def test_another_transformers_is_refused(
    published: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(__version__="2.13.0"))
    monkeypatch.setitem(sys.modules, "transformers", SimpleNamespace(__version__="5.0.0"))
    with pytest.raises(UsageError, match=r"transformers is 5\.0\.0, but .* 4\.57\.6: pip install"):
        write_dump(published, tmp_path / "dump.npz", None, DumpOptions())


def test_the_extra_pins_what_the_code_asks_for() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text("utf-8"))
    extra = project["project"]["optional-dependencies"]["reference"]
    assert f"transformers=={original.NANO_LIBRARIES.transformers}" in extra


def test_the_commands_load_no_torch() -> None:
    code = (
        "import sys, mosstalk.cli.parity.dump, mosstalk.cli.parity.reference; "
        "print(*{'torch', 'transformers'} & set(sys.modules))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.split() == []


def test_a_directory_without_code_is_refused(golden_dir: Path, tmp_path: Path) -> None:
    folder = checkpoint_folder(golden_dir, RECORDED_MODEL)
    with pytest.raises(CheckpointError, match=r"nano_b has no modeling_\*\.py"):
        write_dump(folder, tmp_path / "dump.npz", None, DumpOptions())


def test_a_codec_without_code_is_refused(golden_dir: Path, published: Path, tmp_path: Path) -> None:
    codec = checkpoint_folder(golden_dir, RECORDED_CODEC)
    with pytest.raises(CheckpointError, match=r"codec_nano_narrow has no modeling_\*\.py"):
        write_dump(published, tmp_path / "dump.npz", codec, DumpOptions())


def test_unusable_arguments_of_dump(golden_dir: Path, published: Path, tmp_path: Path) -> None:
    out = tmp_path / "dump.npz"
    codec = checkpoint_folder(golden_dir, RECORDED_CODEC)
    with pytest.raises(UsageError, match=r"ends in \.npz or \.json"):
        write_dump(published, tmp_path / "dump.bin", None, DumpOptions())
    with pytest.raises(UsageError, match="is no directory"):
        write_dump(tmp_path / "none", out, None, DumpOptions())
    with pytest.raises(UsageError, match="codec alone"):
        write_dump(codec, out, None, DumpOptions())
    with pytest.raises(UsageError, match=r"no tokenizer\.model; leave the texts out"):
        write_dump(published, out, None, DumpOptions(texts=("Hello.",)))
    with pytest.raises(UsageError, match="a text is empty"):
        DumpOptions(texts=("Hello.", " "))
    for seed in (-1, 2**63):
        with pytest.raises(UsageError, match="the seed is"):
            DumpOptions(seed=seed)
