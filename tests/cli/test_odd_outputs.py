"""Places that cannot be written, and recordings that cannot be read."""

import os
import subprocess
from pathlib import Path

import numpy as np
import pytest
import soundfile
from cli_runs import PROGRAM, SHORT, Command, run_process
from small_disk import small_disk


@pytest.mark.parametrize("name", ["full.wav", "full.flac"])
def test_full_disk(say: Command, name: str) -> None:
    with small_disk(2000):
        done = say("Hello.", "--max-frames", "20", "--out", name)
    done.refuses(f"cannot write {name}: ", status=1)
    assert list(Path.cwd().iterdir()) == []


def test_full_disk_behind_a_pipe(talker: Path) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full")
    with Path("/dev/full").open("wb") as full:
        run = run_process("say", "Hi.", *SHORT, "--model", talker, "--out", "-", stdout=full)
    assert run.returncode == 1
    assert run.stderr.startswith(b"mosstalk: error: cannot write standard output: No space left")
    assert run.stderr.count(b"\n") == 1


def test_pipe_closed_by_its_reader(talker: Path) -> None:
    options = ["--voice", "none", "--model", str(talker), "--max-frames", "900", "--out", "-"]
    with subprocess.Popen(
        [*PROGRAM, "say", "Hello.", *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.read(4) == b"RIFF"
        process.stdout.close()
        complaint = process.stderr.read()
    assert process.returncode == 1
    assert complaint == (
        b"mosstalk: error: cannot write standard output: the reader closed the pipe\n"
    )


def test_folder_that_is_not_there_or_a_folder_itself(say: Command) -> None:
    say("Hello.", "--out", "no/such/x.wav").refuses("the folder no/such does not exist", status=1)
    Path("speech").mkdir()
    say("Hello.", "--out", "speech").refuses("ends in .wav or .flac")
    Path("folder.d").mkdir()
    (Path("folder.d") / "x.wav").mkdir()
    say("Hello.", "--out", "folder.d/x.wav").refuses("it is a folder", status=1)
    say("Hello.", "--out", "").refuses("ends in .wav or .flac")


def test_read_only_folder(say: Command) -> None:
    """Nobody may make files in /proc, not even root, whom a folder's mode does not stop."""
    if not Path("/proc/self").exists():
        pytest.skip("no /proc")
    say("Hello.", "--out", "/proc/x.wav").refuses("cannot write /proc/x.wav: ", status=1)


def test_device_as_output(say: Command) -> None:
    os.mkfifo("pipe.wav")
    result = say("Hello.", "--out", "pipe.wav")
    assert result.status == 1
    assert result.err == (
        "mosstalk: error: cannot write pipe.wav: it is not a regular file; use - to pipe\n"
    )


def test_file_that_was_there_survives_a_failure(say: Command, mute: Path) -> None:
    Path("old.wav").write_bytes(b"before")
    assert say("Hello.", "--model", mute, "--out", "old.wav").status == 1
    assert Path("old.wav").read_bytes() == b"before"
    say("Hello.", "--out", "old.wav").speaks(Path("old.wav"))


def test_no_player(say: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    say("Hello.", "--play").refuses("no audio player found", status=1)
    say("Hello.", "--play", "--out", "x.wav").refuses("no audio player found", status=1)


def test_player_that_fails(say: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    player = tmp_path / "aplay"
    player.write_text("#!/bin/sh\necho 'no sound card' >&2\nexit 1\n")
    player.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    say("Hello.", "--play").refuses("aplay stopped playing (no sound card)", status=1)


def _write(path: str, samples: np.ndarray, rate: int = 16_000) -> None:
    soundfile.write(path, samples, rate, "PCM_16", format="WAV")


def _make_clip(kind: str, clip: Path) -> str:
    """A recording that cannot serve, by its kind."""
    name = f"{kind}.clip"  # not .wav, which a refused command must not leave
    match kind:
        case "text":
            Path(name).write_text("These are words, not sound. " * 100)
        case "empty":
            Path(name).touch()
        case "no samples":
            _write(name, np.zeros((0, 1)))
        case "silent":
            _write(name, np.zeros((32_000, 2)))
        case "short":
            _write(name, np.full((500, 1), 0.5))
        case "cut":
            whole = clip.read_bytes()
            Path(name).write_bytes(whole[: len(whole) // 2])
        case "not numbers":
            soundfile.write(name, np.full((16_000, 1), np.nan), 16_000, "FLOAT", format="WAV")
        case "folder":
            Path(name).mkdir()
    return name


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("missing", "there is no file"),
        ("folder", "is a folder"),
        ("text", "not audio that can be read"),
        ("empty", "the file is empty"),
        ("no samples", "holds no samples"),
        ("silent", "the reference is silent"),
        ("short", "at least 0.080 s are needed"),
        ("cut", "the file is cut short"),
        ("not numbers", "not numbers"),
    ],
)
def test_recording_that_cannot_serve(
    command: Command, talker: Path, clip: Path, kind: str, words: str
) -> None:
    name = _make_clip(kind, clip)
    model = ["--model", talker, *SHORT[2:]]
    command("say", "Hello.", "--voice-ref", name, *model).refuses(words, status=1)
    command("voices", "add", "ada", name, "--model", talker).refuses(words, status=1)
    assert "ada" not in command("voices", "list").out
