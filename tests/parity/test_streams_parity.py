"""Healthy streams pass with no difference at all, on whatever a checkpoint holds."""

import argparse
import json
from pathlib import Path

import pytest
from random_codecs import small_config, write_codec
from tiny_model import write_tiny_model

from mosstalk.cli import main, parity
from mosstalk.errors import UsageError
from mosstalk.parity.opening import ModelChoice
from mosstalk.parity.report import Report
from mosstalk.parity.streams.run import Options, run_streams

CODEC = {"interleaved", "one starts late", "one cancelled", "requests must differ"}
MODEL = CODEC | {"session used again", "other seed must differ"}
SPEAKER = {
    "speaker, interleaved",
    "speaker, one starts late",
    "speaker, one closed",
    "speaker, other seed must differ",
}


@pytest.fixture(scope="module")
def talker(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_model(tmp_path_factory.mktemp("models") / "talker")


def assert_exact(report: Report, checks: set[str]) -> None:
    assert report.passed, report.as_text()
    assert {result.name for result in report.results} == checks
    assert all(result.compared for result in report.results)
    for result in report.results:
        if result.expects == "equal":
            assert result.max_abs == 0.0


@pytest.mark.parametrize("weight_type", ["native", "f16", "q8_0"])
@pytest.mark.parametrize("threads", [1, 2])
def test_no_difference_through_sessions_and_engine(
    talker: Path, weight_type: str, threads: int
) -> None:
    choice = ModelChoice(str(talker), threads=threads, weight_type=weight_type)
    assert_exact(run_streams(choice.open(), Options()), MODEL | SPEAKER)


@pytest.mark.parametrize("seed", range(1, 6))
def test_no_false_alarm_on_other_requests(talker: Path, seed: int) -> None:
    options = Options(streams=1 + seed, frames=2 * seed, seed=seed)
    assert_exact(run_streams(ModelChoice(str(talker)).open(), options), MODEL | SPEAKER)


def test_a_language_model_alone(random_nano: Path) -> None:
    opened = ModelChoice(str(random_nano)).open()
    assert_exact(run_streams(opened, Options()), MODEL)
    assert_exact(run_streams(opened, Options(streams=2, frames=1)), MODEL)


def test_a_codec_alone(tmp_path: Path) -> None:
    opened = ModelChoice(str(write_codec(tmp_path, small_config()))).open()
    assert_exact(run_streams(opened, Options()), CODEC)
    assert_exact(run_streams(opened, Options(streams=2, frames=1)), CODEC)


def test_a_model_that_says_nothing(tmp_path: Path) -> None:
    """It stops before the first frame: lengths and pauses are compared, and sessions go on."""
    mute = write_tiny_model(tmp_path / "mute", talks=False)
    report = run_streams(ModelChoice(str(mute)).open(), Options())
    assert report.passed, report.as_text()
    assert {row[3] for row in report.tables[1].rows} == {"0.00", "0.24"}  # a pause


@pytest.mark.parametrize("name", ["nano_a", "nano_b", "nano_c"])
def test_no_difference_on_golden_checkpoints(golden_dir: Path, name: str) -> None:
    folder = golden_dir / "checkpoints" / name
    if not (folder / "model.safetensors").is_file():
        pytest.skip(f"{name} is not here")
    assert_exact(run_streams(ModelChoice(str(folder)).open(), Options()), MODEL)


def test_no_difference_with_a_golden_codec(golden_dir: Path) -> None:
    folder = golden_dir / "checkpoints"
    if not (folder / "codec_nano_e2e" / "model.safetensors").is_file():
        pytest.skip("codec_nano_e2e is not here")
    choice = ModelChoice(str(folder / "nano_c"), codec=str(folder / "codec_nano_e2e"))
    assert_exact(run_streams(choice.open(), Options()), MODEL | SPEAKER)


def test_reference_backend(random_nano: Path) -> None:
    opened = ModelChoice(str(random_nano), backend="reference").open()
    report = run_streams(opened, Options(streams=3, frames=3))
    assert report.passed, report.as_text()
    assert report.settings["tolerance"] == 1e-5


def test_requests_are_told(talker: Path) -> None:
    sessions, engine = run_streams(ModelChoice(str(talker)).open(), Options()).tables
    assert len(sessions.rows) == len(engine.rows) == 6
    assert {row[4] for row in sessions.rows} == {"greedy", "sampled"}
    assert {row[2] for row in sessions.rows} == {"yes", "no"}
    assert {row[2] for row in engine.rows} == {"yes", "no"}
    assert {row[4] for row in engine.rows} == {"greedy", "sampled"}


# The command.


def run(*arguments: str) -> int:
    parser = argparse.ArgumentParser()
    parity.add_arguments(parser)
    return parity.run(parser.parse_args(["streams", *arguments]))


def test_json_is_one_object(random_nano: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = str(random_nano)
    arguments = ["--model", model, "--streams", "3", "--frames", "4", "--threads", "2"]
    assert run(*arguments, "--weight-type", "q8_0", "--json") == 0
    out = capsys.readouterr().out
    values = json.loads(out)
    assert {check["name"] for check in values.pop("checks")} == MODEL
    assert list(values.pop("tables")) == ["Requests on sessions and codec streams"]
    assert values == {
        "check": "streams",
        "model": model,
        "backend": "cpu",
        "threads": 2,
        "weight_type": "q8_0",
        "streams": 3,
        "frames": 4,
        "seed": 0,
        "tolerance": 0.0,
        "max_abs": 0.0,
        "passed": True,
    }
    assert out.count("\n") == 1


def test_failure_is_status_1_and_says_what(
    random_nano: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # With all differences allowed, the controls do not differ enough.
    assert run("--model", str(random_nano), "--frames", "2", "--tolerance", "1e6") == 1
    out = capsys.readouterr().out
    assert "FAIL  another seed: does not differ, but must" in out
    assert out.splitlines()[-1] == "FAIL: 2 of 6 checks"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--streams", "1"], "streams is 1"),
        (["--frames", "0"], "frames is 0"),
        (["--frames", "300"], "320 positions"),
        (["--tolerance", "nan"], "tolerance is nan"),
        (["--seed", "-1"], "seed is -1"),
        (["--weight-type", "f64"], "f64"),
    ],
)
def test_unusable_values_are_usage_errors(
    random_nano: Path, arguments: list[str], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        run("--model", str(random_nano), *arguments)


def test_more_frames_than_the_engine_has_positions_for_are_a_usage_error(
    talker: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mosstalk.parity.streams.run._SESSIONS", ())
    command = ["parity", "streams", "--model", str(talker), "--frames", "980"]
    assert main(command) == 2
    assert "positions; lower --" in capsys.readouterr().err
