"""`mosstalk design`: describe, listen, keep, speak."""

import json
from pathlib import Path

import numpy as np
import pytest
import soundfile
from cli_runs import Command
from tiny_delay import write_tiny_delay
from tiny_model import write_tiny_model

from mosstalk import Voice, VoiceOrigin
from mosstalk.cli import main
from mosstalk.voices import VoiceStore

WARM = "a warm, low, unhurried woman"
ASK = (WARM, "--text", "Hello there.", "--seed", "7", "--max-frames", "20")


@pytest.fixture(scope="session")
def designer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_delay(tmp_path_factory.mktemp("models") / "voicegen")


@pytest.fixture(scope="session")
def silent(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Never comes to speech."""
    folder = tmp_path_factory.mktemp("models") / "silent"
    return write_tiny_delay(folder, start_logit=-30.0)


@pytest.fixture(scope="session")
def cloner(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_model(tmp_path_factory.mktemp("models") / "cloner")


def test_design_listen_keep_speak(command: Command, designer: Path, cloner: Path) -> None:
    made = command("design", *ASK, "--model", designer, "--count", "3", "--out", "voices", "--json")
    assert made.status == 0, made.err
    about = json.loads(made.out)["candidates"]
    assert [candidate["seed"] for candidate in about] == [7, 8, 9]
    assert about[1]["out"] == str(Path("voices", "2.wav"))
    assert soundfile.info("voices/2.wav").samplerate == 24_000
    kept = command("voices", "add", "anna", "--from", "voices/2.wav", "--model", cloner)
    assert kept.status == 0, kept.err
    voice = VoiceStore().load("anna")
    assert voice.transcript == "Hello there."
    assert voice.origin is not None
    assert (voice.origin.instruction, voice.origin.seed) == (WARM, 8)
    assert len(voice.origin.model_identity) == len(voice.origin.codec_identity) == 16
    assert voice.origin.codec_identity != voice.codec_identity
    shown = json.loads(command("voices", "show", "anna", "--json").out)
    assert shown["origin"]["seed"] == 8
    spoken = command(
        "say", "Hi.", "--voice", "anna", "--model", cloner, "--max-frames", "2", "--seed", "1"
    )
    spoken.speaks()


def test_save_keeps_the_voice_at_once(command: Command, designer: Path, cloner: Path) -> None:
    saved = command(
        "design", *ASK, "--model", designer, "--save", "ben", "--voice-model", cloner, "--json"
    )
    assert saved.status == 0, saved.err
    assert json.loads(saved.out)["voice"] == "ben"
    assert not list(Path().glob("*.wav"))
    again = command("design", *ASK, "--model", designer, "--save", "ben", "--voice-model", cloner)
    again.refuses("there is a voice 'ben' already")


def test_seed_gives_the_same_voice_as_say(command: Command, designer: Path) -> None:
    command("design", *ASK, "--model", designer, "--count", "2", "--out", "d")
    command(
        *("say", "Hello there.", "--instruction", WARM, "--seed", "8", "--max-frames", "20"),
        *("--model", designer, "--out", "s.wav"),
    )
    assert np.array_equal(soundfile.read("d/2.wav")[0], soundfile.read("s.wav")[0])


def test_no_audio_is_told_with_its_retries(command: Command, silent: Path) -> None:
    result = command("design", *ASK, "--model", silent, "--count", "2")
    assert result.status == 1
    lines = result.err.splitlines()
    assert lines[0] == "mosstalk: warning: seed 7 gave no audio, begun again 4 times"
    assert lines[-1].startswith("mosstalk: error: no audio came of 2 seeds")
    said = command("say", "Hi.", "--model", silent, "--seed", "1", "--out", "x.wav")
    said.refuses("begun again 4 times", status=1)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--count", "0"], "count is 0"),
        (["--count", "2", "--save", "x"], "keeps one voice"),
        (["--save", "../x"], "cannot be a voice's name"),
        (["--seed", "-1"], "seed is -1"),
        (["--language", "tlh"], "unknown language 'tlh'"),
        (["--text", ""], "no text"),
    ],
)
def test_wrong_use(command: Command, designer: Path, arguments: list[str], words: str) -> None:
    command("design", *ASK, "--model", designer, *arguments).refuses(words)


def test_model_that_only_clones(command: Command, cloner: Path) -> None:
    command("design", *ASK, "--model", cloner).refuses("told no instruction")


@pytest.mark.parametrize("beside", [None, "{", '{"text": "x"}', "[]"])
def test_recording_without_its_story(command: Command, beside: str | None) -> None:
    soundfile.write("1.wav", np.full(24_000, 0.1), 24_000)
    if beside is not None:
        Path("1.json").write_text(beside)
    result = command("voices", "add", "a", "--from", "1.wav")
    assert result.status == 2
    assert "no designed voice" in result.err.splitlines()[-1]


def test_folder_that_cannot_be_made(command: Command, designer: Path) -> None:
    Path("file").write_text("")
    result = command("design", *ASK, "--model", designer, "--out", "file/voices")
    assert result.status == 1
    assert "cannot write file/voices" in result.err


def test_origin_is_kept_in_the_voice_file(tmp_path: Path) -> None:
    origin = VoiceOrigin("an old man, tired", 2**40, "0" * 16, "f" * 16)
    voice = Voice("x", np.ones((2, 3), np.int32), 24_000, "", "c", "words", origin)
    store = VoiceStore(tmp_path)
    store.save(voice)
    assert store.load("x").origin == origin


def test_the_command_is_known(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["design", "--help"]) == 0
    assert "--voice-model" in capsys.readouterr().out
