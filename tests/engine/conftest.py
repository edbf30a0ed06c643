"""Tiny speakers, and a folder of voices for each test."""

from pathlib import Path

import numpy as np
import pytest
import soundfile
from tiny_model import CHANNELS, SAMPLE_RATE, write_tiny_model

import mosstalk
from mosstalk import Speaker, Voice


@pytest.fixture(autouse=True)
def voices_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "voices"
    monkeypatch.setenv("MOSSTALK_VOICES", str(folder))
    return folder


@pytest.fixture(scope="session")
def talker_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that speaks until its cap."""
    return write_tiny_model(tmp_path_factory.mktemp("models") / "talker")


@pytest.fixture(scope="session")
def mute_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that stops before its first frame."""
    return write_tiny_model(tmp_path_factory.mktemp("models") / "mute", talks=False)


@pytest.fixture(scope="session")
def clip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recording of one second."""
    path = tmp_path_factory.mktemp("clips") / "clip.wav"
    noise = np.random.default_rng(5).standard_normal((SAMPLE_RATE, CHANNELS)) * 0.1
    soundfile.write(path, noise.astype(np.float32), SAMPLE_RATE, "FLOAT")
    return path


@pytest.fixture
def speaker(talker_path: Path) -> Speaker:
    return mosstalk.load(talker_path, threads=1)


@pytest.fixture
def voice(speaker: Speaker, clip: Path) -> Voice:
    return speaker.make_voice("ada", clip)[0]
