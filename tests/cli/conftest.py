"""Runs of the command line: most in this process, some in one of their own."""

import io
import sys
from pathlib import Path

import numpy as np
import pytest
import soundfile
from cli_runs import SHORT, Command, Result
from tiny_model import CHANNELS, SAMPLE_RATE, write_tiny_model

from mosstalk.cli import main


@pytest.fixture(autouse=True)
def own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test works in an empty folder and has voices of its own."""
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    monkeypatch.setenv("MOSSTALK_VOICES", str(tmp_path / "voices"))


@pytest.fixture
def command(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    """Runs `mosstalk` with arguments in this process; `stdin` is what it can read."""

    def run(*arguments: str | Path, stdin: bytes = b"") -> Result:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        capfd.readouterr()
        status = main([str(argument) for argument in arguments])
        captured = capfd.readouterr()
        return Result(status, captured.out, captured.err)

    return run


@pytest.fixture
def say(command: Command, talker: Path) -> Command:
    """Runs `mosstalk say` with the talker, no voice and few frames; later options win."""
    return lambda *arguments, **more: command("say", *SHORT, "--model", talker, *arguments, **more)


@pytest.fixture(scope="session")
def talker(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that speaks until its cap."""
    return write_tiny_model(tmp_path_factory.mktemp("models") / "talker")


@pytest.fixture(scope="session")
def mute(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that stops before its first frame."""
    return write_tiny_model(tmp_path_factory.mktemp("models") / "mute", talks=False)


@pytest.fixture(scope="session")
def gguf(talker: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The talker in one file."""
    path = tmp_path_factory.mktemp("gguf") / "talker.gguf"
    assert main(["convert", str(talker), "--out", str(path)]) == 0
    return path


@pytest.fixture(scope="session")
def clip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recording of one second."""
    path = tmp_path_factory.mktemp("clips") / "clip.wav"
    noise = np.random.default_rng(5).standard_normal((SAMPLE_RATE, CHANNELS)) * 0.1
    soundfile.write(path, noise.astype(np.float32), SAMPLE_RATE, "FLOAT")
    return path
