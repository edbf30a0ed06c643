"""`mosstalk voices`: add, list, show, remove, play."""

import json
from pathlib import Path

import pytest
import soundfile
from cli_runs import Command
from tiny_model import CHANNELS, FRAME_LEN, SAMPLE_RATE


@pytest.fixture
def ada(command: Command, talker: Path, clip: Path) -> str:
    """A saved voice."""
    options = ["--transcript", "Her words.", "--model", talker]
    assert command("voices", "add", "ada", clip, *options).status == 0
    return "ada"


def test_add(command: Command, talker: Path, clip: Path, tmp_path: Path) -> None:
    result = command("voices", "add", "bea", clip, "--model", talker, "--json")
    assert (result.status, result.err) == (0, "")
    about = json.loads(result.out)
    path = tmp_path / "voices" / "bea.voice.safetensors"
    assert path.is_file()
    assert about == {
        "name": "bea",
        "frames": SAMPLE_RATE // FRAME_LEN,
        "codebooks": 4,
        "sample_rate": SAMPLE_RATE,
        "codec_identity": about["codec_identity"],
        "source_hash": about["source_hash"],
        "transcript": None,
        "origin": None,
        "path": str(path),
        "warnings": [],
    }
    text = command("voices", "add", "cleo", clip, "--model", talker).out
    assert text.startswith("cleo: 12 frames of ")
    assert text.count("\n") == 1


def test_add_tells_what_is_odd_about_the_recording(
    command: Command, talker: Path, clip: Path
) -> None:
    samples, rate = soundfile.read(clip)
    soundfile.write("short.wav", samples[: rate // 2], rate)
    result = command("voices", "add", "ada", "short.wav", "--model", talker, "--json")
    assert result.status == 0
    assert result.err.startswith("mosstalk: warning: the reference is only 0.50 s long")
    assert len(json.loads(result.out)["warnings"]) == 1


def test_taken_name(command: Command, talker: Path, clip: Path, ada: str) -> None:
    result = command("voices", "add", ada, clip, "--model", talker)
    result.refuses("there is a voice 'ada' already")
    assert command("voices", "add", ada, clip, "--model", talker, "--replace").status == 0
    assert json.loads(command("voices", "show", ada, "--json").out)["transcript"] is None


@pytest.mark.parametrize("name", ["../x", "a/b", "", "none", "a b", "x" * 65])
def test_impossible_names(command: Command, talker: Path, clip: Path, name: str) -> None:
    words = "cannot be a voice's name"
    command("voices", "add", name, clip, "--model", talker).refuses(words)
    command("voices", "show", name).refuses(words)
    command("voices", "remove", name).refuses(words)
    command("voices", "play", name, "--model", talker).refuses(words)


def test_list(command: Command, ada: str, tmp_path: Path) -> None:
    result = command("voices", "list")
    assert (result.status, result.err) == (0, "")
    assert "ada    12 frames  Her words.\n" in result.out
    listed = json.loads(command("voices", "list", "--json").out)
    assert listed["folder"] == str(tmp_path / "voices")
    assert "ada" in [voice["name"] for voice in listed["voices"]]


def test_list_goes_on_after_a_damaged_file(command: Command, ada: str, tmp_path: Path) -> None:
    (tmp_path / "voices" / "bad.voice.safetensors").write_bytes(b"no voice")
    result = command("voices", "list")
    assert result.status == 0
    assert "ada" in result.out
    assert result.err.startswith("mosstalk: warning: ")
    assert "bad.voice.safetensors is not a readable voice file" in result.err
    command("voices", "show", "bad").refuses("not a readable voice file", status=1)
    assert command("voices", "remove", "bad").status == 0


def test_show(command: Command, ada: str) -> None:
    about = json.loads(command("voices", "show", ada, "--json").out)
    assert (about["name"], about["frames"], about["transcript"]) == ("ada", 12, "Her words.")
    lines = command("voices", "show", ada).out.splitlines()
    assert [line.split()[0] for line in lines] == list(about)


def test_remove(command: Command, ada: str) -> None:
    assert json.loads(command("voices", "remove", ada, "--json").out) == {"removed": "ada"}
    command("voices", "remove", ada).refuses("unknown voice 'ada'")
    command("voices", "show", ada).refuses("unknown voice 'ada'")


def test_play(
    command: Command, talker: Path, ada: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert command("voices", "play", ada, "--model", talker, "--out", "ada.wav").status == 0
    samples, rate = soundfile.read("ada.wav", dtype="int16")
    assert (samples.shape, rate) == ((12 * FRAME_LEN, CHANNELS), SAMPLE_RATE)
    player = tmp_path / "bin" / "aplay"
    player.parent.mkdir()
    player.write_text(f'#!/bin/sh\n/bin/cat > "{tmp_path}/played"\n')
    player.chmod(0o755)
    monkeypatch.setenv("PATH", str(player.parent))
    assert command("voices", "play", ada, "--model", talker).status == 0
    assert (tmp_path / "played").read_bytes() == samples.tobytes()


def test_play_as_json(command: Command, talker: Path, ada: str) -> None:
    done = command("voices", "play", ada, "--model", talker, "--out", "ada.wav", "--json")
    about = json.loads(done.out)
    assert about["name"] == ada
    assert about["out"] == "ada.wav"
    assert about["seconds"] > 0
    both = command("voices", "play", ada, "--model", talker, "--out", "-", "--json")
    assert both.status == 2
    assert json.loads(both.out)["kind"] == "UsageError"
    assert "both want standard output" in both.err


def test_play_unknown_voice(command: Command, talker: Path) -> None:
    command("voices", "play", "nobody", "--model", talker).refuses("unknown voice 'nobody'")


def test_folder_that_cannot_be_written(
    command: Command, talker: Path, clip: Path, tmp_path: Path
) -> None:
    (tmp_path / "voices").write_text("a file where the folder should be")
    result = command("voices", "add", "ada", clip, "--model", talker)
    result.refuses("cannot write ", status=1)
