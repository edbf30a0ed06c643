"""Servers of tiny models and of the built-in one."""

import io
from collections.abc import Iterator
from importlib import resources
from pathlib import Path

import numpy as np
import pytest
import soundfile
from live_server import LiveServer, live
from tiny_delay import write_tiny_delay
from tiny_model import CHANNELS, SAMPLE_RATE, write_tiny_model

import mosstalk
from mosstalk import Speaker
from mosstalk.voices import VoiceStore


@pytest.fixture(scope="session")
def talker_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that speaks until its cap and needs no voice."""
    folder = tmp_path_factory.mktemp("models")
    return write_tiny_model(folder / "talker", needs_voice=False)


@pytest.fixture(scope="session")
def cloner_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that speaks until its cap and needs a voice."""
    return write_tiny_model(tmp_path_factory.mktemp("models") / "cloner")


@pytest.fixture(scope="session")
def mute_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that stops before its first frame."""
    folder = tmp_path_factory.mktemp("models")
    return write_tiny_model(folder / "mute", talks=False, needs_voice=False)


@pytest.fixture(scope="session")
def designer_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that makes voices from descriptions."""
    return write_tiny_delay(tmp_path_factory.mktemp("models") / "designer", start_logit=20.0)


@pytest.fixture(scope="session")
def recording() -> bytes:
    """A WAV file's content: one second."""
    noise = np.random.default_rng(5).standard_normal((SAMPLE_RATE, CHANNELS)) * 0.1
    content = io.BytesIO()
    soundfile.write(content, noise.astype(np.float32), SAMPLE_RATE, "FLOAT", format="WAV")
    return content.getvalue()


def loaded(path: Path | str, voices: Path) -> Speaker:
    speaker = mosstalk.load(path, threads=1)
    speaker.voices = VoiceStore(voices)
    return speaker


@pytest.fixture
def talker(talker_path: Path, tmp_path: Path) -> Speaker:
    return loaded(talker_path, tmp_path / "voices")


@pytest.fixture
def cloner(cloner_path: Path, tmp_path: Path) -> Speaker:
    return loaded(cloner_path, tmp_path / "voices")


@pytest.fixture
def designer(designer_path: Path, tmp_path: Path) -> Speaker:
    return loaded(designer_path, tmp_path / "voices")


@pytest.fixture(scope="module")
def shared(talker_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    """A server whose state a module's tests leave as it is."""
    with live(loaded(talker_path, tmp_path_factory.mktemp("voices"))) as server:
        yield server


@pytest.fixture(scope="module")
def built_in(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    """A server of the built-in model."""
    if not resources.files("mosstalk").joinpath("data", "sprout.gguf").is_file():
        pytest.skip("the built-in model is not part of this checkout")
    speaker = loaded("sprout", tmp_path_factory.mktemp("voices"))
    with live(speaker, model="sprout") as server:
        yield server
