"""The command's table, JSON object and exit statuses."""

import argparse
import json
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from mosstalk.cli import main, parity
from mosstalk.errors import UsageError


def run(*arguments: str) -> int:
    parser = argparse.ArgumentParser()
    parity.add_arguments(parser)
    return parity.run(parser.parse_args(["kv-cache", *arguments]))


def test_json_is_one_object(random_nano: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = str(random_nano)
    arguments = ["--model", model, "--threads", "2", "--weight-type", "q8_0", "--frames", "2"]
    assert run(*arguments, "--tolerance", "auto", "--json") == 0
    out = capsys.readouterr().out
    values = json.loads(out)
    checks = values.pop("checks")
    assert values == {
        "check": "kv-cache",
        "model": model,
        "backend": "cpu",
        "threads": 2,
        "weight_type": "q8_0",
        "rows": 24,
        "frames": 2,
        "seed": 0,
        "tolerance": 0.0,
        "max_abs": 0.0,
        "passed": True,
    }
    assert out.count("\n") == 1
    keys = {"name", "max_abs", "mean_abs", "max_rel", "non_finite", "tolerance", "passed"}
    assert all(keys <= set(check) for check in checks)


def test_table_names_each_check(random_nano: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--model", str(random_nano), "--frames", "1") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split() == [
        "check",
        "max_abs",
        "mean_abs",
        "max_rel",
        "non_finite",
        "tolerance",
    ]
    assert all(line.endswith("pass") for line in lines[2:-1])
    assert lines[-1] == f"PASS: {len(lines) - 3} checks"


def test_failure_is_status_1_and_says_what(
    random_nano: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # With all differences allowed, the controls do not differ enough.
    assert run("--model", str(random_nano), "--frames", "1", "--tolerance", "1e6") == 1
    out = capsys.readouterr().out
    assert "FAIL  wrong prefix: does not differ, but must" in out
    assert out.splitlines()[-1] == "FAIL: 3 of 19 checks"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--rows", "3"], "rows is 3"),
        (["--frames", "0"], "frames is 0"),
        (["--rows", "316"], "320 positions"),
        (["--tolerance", "-1"], "tolerance is -1"),
        (["--tolerance", "nan"], "tolerance is nan"),
        (["--seed", "-1"], "seed is -1"),
        (["--threads", "-1"], "threads is -1"),
        (["--backend", "abacus"], "abacus"),
        (["--weight-type", "f64"], "f64"),
    ],
)
def test_unusable_values_are_usage_errors(
    random_nano: Path, arguments: list[str], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        run("--model", str(random_nano), *arguments)


@pytest.mark.parametrize("arguments", [[], ["--model", "m", "--tolerance", "much"]])
def test_unknown_arguments_are_status_2(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as exit_info:
        run(*arguments)
    assert exit_info.value.code == 2


def test_a_codec_alone_is_a_usage_error(golden_dir: Path) -> None:
    with pytest.raises(UsageError, match="codec alone"):
        run("--model", str(golden_dir / "checkpoints" / "codec_nano_narrow"))


def test_exit_statuses_of_the_program(
    random_nano: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["parity", "kv-cache", "--model", str(random_nano), "--frames", "1"]
    assert main(command) == 0
    assert main([*command, "--tolerance", "1e6"]) == 1
    capsys.readouterr()
    assert main([*command, "--rows", "2"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.splitlines() == ["mosstalk: error: rows is 2, but must be at least 4"]


def test_kv_cache_has_a_command_of_its_own(
    random_nano: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (entry,) = entry_points(group="console_scripts", name="moss_tts_nano_kv_cache_parity")
    flags = "--threads 2 --weight-type bf16 --tolerance auto --rows 12 --frames 2 --backend cpu"
    monkeypatch.setattr(sys, "argv", [entry.name, "--model", str(random_nano), *flags.split()])
    assert entry.load()() == 0
    lines = capsys.readouterr().out.splitlines()
    wanted = (
        "prefill vs chunked",
        "decode step vs prefill",
        "single-row chain",
        "prefix reuse",
        "prompt change must differ",
        "mismatched prefix must differ",
        "local frame repeat",
    )
    assert all(any(line.startswith(name) for line in lines) for name in wanted)
    assert lines[-1].startswith("PASS")
