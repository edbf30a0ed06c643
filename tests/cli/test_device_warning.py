"""What a user is told where the device computes wrong."""

import json
from pathlib import Path

import pytest
from broken_backend import BrokenBackend
from cli_runs import Command
from tiny_delay import write_tiny_delay

from mosstalk import engine
from mosstalk.compute import ops
from mosstalk.compute.backend import Backend

_WARNING = "mosstalk: warning: vulkan fails its self-test: Linear of f32 weights is off by "


@pytest.fixture(autouse=True)
def broken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever device is asked for, it is one of which one op is broken."""

    def opened(name: str, threads: int = 0) -> Backend:
        return BrokenBackend(ops.Linear, name="vulkan")

    monkeypatch.setattr(engine, "open_backend", opened)


def test_say_warns_once_and_speaks(say: Command) -> None:
    result = say("Hi.", "--max-frames", "1")
    result.speaks()
    assert result.err.startswith(_WARNING)
    assert result.err.count("self-test") == 1


def test_say_warns_in_json_too(say: Command) -> None:
    result = say("Hi.", "--max-frames", "1", "--json")
    about = json.loads(result.out)
    assert about["device"] == "cpu"
    assert result.err == "".join(f"mosstalk: warning: {line}\n" for line in about["warnings"])
    assert about["warnings"][0].startswith(_WARNING.removeprefix("mosstalk: warning: "))


def test_say_warns_before_it_fails(say: Command) -> None:
    result = say("Hi.", "--voice", "nobody")
    assert result.status == 2
    assert result.err.startswith(_WARNING)


def test_say_strict(say: Command) -> None:
    say("Hi.", "--strict").refuses("vulkan fails its self-test: Linear", status=1)
    assert json.loads(say("Hi.", "--strict", "--json").out)["kind"] == "DeviceError"


def test_voices(command: Command, talker: Path, clip: Path) -> None:
    for arguments in (("add", "bea", clip), ("play", "bea", "--out", "bea.wav")):
        strict = command("voices", *arguments, "--model", talker, "--strict")
        strict.refuses("vulkan fails its self-test: Linear", status=1)
        done = command("voices", *arguments, "--model", talker, "--json")
        assert done.status == 0
        assert done.err.startswith(_WARNING)
        assert json.loads(done.out)["warnings"][0].startswith("vulkan fails its self-test")


def test_design(command: Command, tmp_path: Path) -> None:
    model = write_tiny_delay(tmp_path / "voicegen")
    ask = ("design", "a boy", "--text", "Hi.", "--count", "1", "--seed", "7", "--model", model)
    short = ("--max-frames", "2", "--force-audio-start", "--out", "d")
    command(*ask, *short, "--strict").refuses("vulkan fails its self-test: Linear", status=1)
    done = command(*ask, *short, "--json")
    assert done.status == 0, done.err
    assert done.err.startswith(_WARNING)
    assert json.loads(done.out)["warnings"][0].startswith("vulkan fails its self-test")
