"""`mosstalk convert`, `inspect` and `pull`: what they print, and what they refuse."""

import argparse
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from checkpoint_files import View, torch_pickle, write_model, write_torch_zip

from mosstalk.checkpoint.checkpoint import open_checkpoint
from mosstalk.checkpoint.storage import StorageType
from mosstalk.cli import convert, inspect, pull
from mosstalk.errors import CheckpointError, UsageError

RNG = np.random.default_rng(6)


def call(command: ModuleType, *arguments: object) -> int:
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    status: int = command.run(parser.parse_args([str(argument) for argument in arguments]))
    return status


def json_of(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """The only thing on stdout, as JSON."""
    report: dict[str, Any] = json.loads(capsys.readouterr().out)
    return report


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A directory of the Nano family with a tied copy of its embedding, and a codec beside it."""
    wte = RNG.standard_normal((8, 32), np.float32)
    arrays = {"transformer.wte.weight": wte, "text_lm_head.weight": wte, "ln.bias": wte[0]}
    codec = {"quantizer.codebook.weight": wte}
    write_model(tmp_path / "codec", codec, "moss-audio-tokenizer", sample_rate=48000)
    return write_model(tmp_path / "lm", arrays, n_vq=4, hidden_size=32)


def test_convert_to_gguf_drops_tied_copies(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, codec = tmp_path / "m.gguf", tmp_path / "codec"
    assert call(convert, model, "--out", out, "--weight-type", "q8_0", "--codec", codec) == 0
    printed = capsys.readouterr().out
    assert f"{out}: 2 model and 1 codec tensors as q8_0, 1,424 bytes (from 3,200)" in printed
    assert "left out, not used by the model: text_lm_head.weight" in printed
    written = open_checkpoint(out)
    assert written.tensors["transformer.wte.weight"].storage is StorageType.Q8_0
    assert written.codec_config is not None


def test_convert_to_a_directory_with_json(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(convert, model, "--out", tmp_path / "v1.0", "--weight-type", "bf16", "--json") == 0
    assert json_of(capsys) == {
        "out": str(tmp_path / "v1.0"),
        "format": "directory",
        "weight_type": "bf16",
        "tensors": 2,
        "codec_tensors": 0,
        "dropped": ["text_lm_head.weight"],
        "source_bytes": 2176,
        "bytes": 640,
    }


def test_convert_says_when_there_is_no_codec(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    call(convert, model, "--out", tmp_path / "m.gguf")
    assert "no codec inside; convert again with --codec" in capsys.readouterr().out


def test_convert_refuses(model: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="unknown weight type 'q4'"):
        call(convert, model, "--out", tmp_path / "m.gguf", "--weight-type", "q4")
    with pytest.raises(UsageError, match="--out is a .gguf file or a directory"):
        call(convert, model, "--out", tmp_path / "m.safetensors")
    with pytest.raises(UsageError, match="safetensors cannot hold q8_0"):
        call(convert, model, "--out", tmp_path / "out", "--weight-type", "q8_0")
    with pytest.raises(CheckpointError, match="bert"):
        call(convert, write_model(tmp_path / "b", {}, "bert"), "--out", tmp_path / "m.gguf")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["b", "codec", "lm"]


def test_inspect_directory(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(inspect, model) == 0
    printed = capsys.readouterr().out
    assert "format     directory" in printed
    assert "family     MOSS-TTS-Nano" in printed
    assert "model_type moss_tts_nano, hidden_size 32, n_vq 4" in printed
    assert "transformer.wte.weight" in printed
    assert "8x32  f32           1,024" in printed
    assert "total f32: 3 tensors, 2,176 bytes" in printed


def test_inspect_gguf_as_json(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, codec = tmp_path / "m.gguf", tmp_path / "codec"
    call(convert, model, "--out", out, "--codec", codec, "--weight-type", "q8_0")
    capsys.readouterr()
    assert call(inspect, out, "--json") == 0
    report = json_of(capsys)
    assert report["format"] == "gguf"
    assert report["family"] == "MOSS-TTS-Nano"
    assert report["codec_config"] == {"model_type": "moss-audio-tokenizer", "sample_rate": 48000}
    assert report["codec_identity"] == open_checkpoint(codec).identity
    assert report["totals"] == {
        "q8_0": {"tensors": 1, "bytes": 272},
        "f32": {"tensors": 2, "bytes": 1152},
    }
    rows = {row["name"]: row for row in report["tensors"]}
    assert rows["transformer.wte.weight"] == {
        "part": "model",
        "name": "transformer.wte.weight",
        "shape": [8, 32],
        "storage": "q8_0",
        "bytes": 272,
    }


def test_inspect_codec_alone(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(inspect, tmp_path / "codec") == 0
    printed = capsys.readouterr().out
    assert "family     none: a codec alone" in printed
    assert "codec      model_type moss-audio-tokenizer, sample_rate 48000, identity " in printed


def test_inspect_weights_files(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(inspect, model / "model.safetensors", "--json") == 0
    report = json_of(capsys)
    assert (report["format"], report["family"]) == ("safetensors", None)
    assert len(report["tensors"]) == 3
    storage = np.zeros(4, np.float16)
    description = torch_pickle({"w": View(0, (2, 2), (2, 1))}, [storage])
    write_torch_zip(tmp_path / "pytorch_model.bin", description, [storage])
    assert call(inspect, tmp_path / "pytorch_model.bin", "--json") == 0
    report = json_of(capsys)
    assert report["format"] == "PyTorch zip"
    assert report["totals"] == {"f16": {"tensors": 1, "bytes": 8}}


def test_inspect_of_an_unknown_family_still_lists(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = write_model(tmp_path / "b", {"w": np.zeros(3, np.float32)}, "bert")
    assert call(inspect, directory, "--json") == 0
    report = json_of(capsys)
    assert report["family"] is None
    assert "bert" in report["family_problem"]
    assert len(report["tensors"]) == 1


@pytest.mark.parametrize("as_json", [False, True])
def test_pull_prints_where_the_model_lies(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], as_json: bool
) -> None:
    monkeypatch.setattr("mosstalk.cli.pull.pull", lambda name: (Path("a"), Path("b")))
    assert call(pull, "nano", *(["--json"] if as_json else [])) == 0
    if as_json:
        assert json_of(capsys) == {"name": "nano", "model": "a", "codec": "b"}
    else:
        assert capsys.readouterr().out == "nano is ready\n  model  a\n  codec  b\n"
