"""`mosstalk say` when all is well: outputs, reports, texts from files and pipes."""

import io
import json
import sys
from pathlib import Path

import pytest
import soundfile
from cli_runs import SHORT, Command, run_process

JSON_KEYS = [
    "out",
    "seed",
    "frames",
    "seconds",
    "stop_reason",
    "rtf",
    "ttfa_ms",
    "device",
    "weight_type",
    "retries",
    "warnings",
]


class Terminal(io.StringIO):
    """A standard error that a person looks at."""

    def isatty(self) -> bool:
        return True


def test_file_is_named_and_written(say: Command) -> None:
    result = say("Hello.", "--seed", "5")
    result.speaks()
    assert result.out == ""
    warning, last = result.err.splitlines()
    assert warning.startswith("mosstalk: warning: part 1 ")
    assert last.startswith("mosstalk.wav: 0.16 s of audio, RTF ")
    assert last.endswith("seed 5")
    assert [path.name for path in Path.cwd().iterdir()] == ["mosstalk.wav"]


@pytest.mark.parametrize("name", ["a.wav", "B.WAV", "ünï côde.flac"])
def test_out(say: Command, name: str) -> None:
    say("Hello.", "--out", name).speaks(Path(name))


def test_one_json_object(say: Command) -> None:
    result = say("Hello.", "--seed", "5", "--out", "a.wav", "--json")
    about = json.loads(result.out)
    assert list(about) == JSON_KEYS
    assert about["warnings"] == [
        "part 1 of the text was cut at 2 frames; raise --max-frames, or try another seed"
    ]
    assert (about["out"], about["seed"], about["frames"]) == ("a.wav", 5, 2)
    assert about["seconds"] == pytest.approx(0.16)
    assert (about["device"], about["weight_type"]) == ("cpu", "native")
    assert result.err == f"mosstalk: warning: {about['warnings'][0]}\n"


def test_errors_are_json_too(say: Command) -> None:
    result = say("", "--json")
    assert json.loads(result.out) == {
        "error": "there is no text to speak; give some words",
        "kind": "UsageError",
    }
    assert result.err == "mosstalk: error: there is no text to speak; give some words\n"


def test_same_seed_same_file(say: Command) -> None:
    for name in ("a.wav", "b.wav"):
        say("Hello.", "--seed", "5", "--out", name).speaks(Path(name))
    say("Hello.", "--seed", "6", "--out", "c.wav").speaks(Path("c.wav"))
    first, second, third = (Path(f"{name}.wav").read_bytes() for name in "abc")
    assert first == second != third


@pytest.mark.parametrize("content", [b"Hello there.\n", b"\xef\xbb\xbfHello there.\r\n"])
def test_text_from_file_and_standard_input(say: Command, content: bytes) -> None:
    Path("text.txt").write_bytes(content)
    say("Hello there.\n", "--seed", "1").speaks()
    expected = Path("mosstalk.wav").read_bytes()
    for source in (["--text-file", "text.txt"], ["-"], ["--text-file", "-"]):
        say(*source, "--seed", "1", "--out", "a.wav", stdin=content).speaks(Path("a.wav"))
        assert Path("a.wav").read_bytes() == expected


def test_text_that_looks_like_an_option(say: Command) -> None:
    say("-5 degrees outside.").speaks()
    say("--", "--voice").speaks()


def test_voice_reference_and_continuation(
    say: Command, command: Command, talker: Path, clip: Path
) -> None:
    options = [*SHORT[2:], "--model", talker, "--seed", "1", "--json"]
    plain = command("say", "Hello.", "--voice-ref", clip, *options)
    plain.speaks()
    assert command("voices", "add", "ada", clip, "--model", talker).status == 0
    cloned = Path("mosstalk.wav").read_bytes()
    command("say", "Hello.", "--voice", "ada", *options).speaks()
    assert Path("mosstalk.wav").read_bytes() == cloned
    continued = ["--voice-transcript", "Words, ", "--mode", "continuation"]
    command("say", "Hello.", "--voice", "ada", *options, *continued).speaks()
    by_name = Path("mosstalk.wav").read_bytes()
    command("say", "Hello.", "--voice-ref", clip, *options, *continued).speaks()
    assert Path("mosstalk.wav").read_bytes() == by_name != cloned


def test_warnings_about_the_reference(command: Command, talker: Path, clip: Path) -> None:
    samples, rate = soundfile.read(clip)
    soundfile.write("short.wav", samples[: rate // 2], rate)
    result = command(
        "say", "Hi.", "--voice-ref", "short.wav", "--model", talker, "--max-frames", "1", "--json"
    )
    assert "only 0.50 s" in json.loads(result.out)["warnings"][0]


def test_play_and_file_at_once(
    say: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    player = tmp_path / "bin" / "aplay"
    player.parent.mkdir()
    player.write_text('#!/bin/sh\n/bin/cat > "$PLAYED"\n')
    player.chmod(0o755)
    monkeypatch.setenv("PATH", str(player.parent))
    monkeypatch.setenv("PLAYED", str(tmp_path / "played"))
    say("Hello.", "--play", "--out", "a.wav").speaks(Path("a.wav"))
    written, _ = soundfile.read("a.wav", dtype="int16")
    assert (tmp_path / "played").read_bytes() == written.tobytes()
    result = say("Hello.", "--play", "--json")
    assert json.loads(result.out)["out"] is None
    assert [path.name for path in Path.cwd().iterdir()] == ["a.wav"]


def test_progress_on_a_terminal(say: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mosstalk.cli.progress._SECONDS_BETWEEN", 0.0)
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    say("Hello there.", "--max-frames", "9").speaks()
    shown = terminal.getvalue()
    assert shown.startswith("\r1 frames, 0.08 s of audio, RTF ")
    assert "9 frames, 0.72 s of audio" in shown
    cleared, last = shown.rsplit("\r", 1)
    assert cleared.endswith(" ")  # the line is wiped before what stays is written
    assert last.splitlines()[0].startswith("mosstalk: warning")


def test_pipe(talker: Path) -> None:
    options = ["--model", talker, *SHORT, "--seed", "5"]
    run = run_process("say", "Hello.", *options, "--out", "-")
    assert run.returncode == 0
    assert run_process("say", "Hello.", *options).returncode == 0
    assert run.stdout[44:] == Path("mosstalk.wav").read_bytes()[44:]
    assert [line.split(b":")[0] for line in run.stderr.splitlines()] == [
        b"mosstalk",
        b"standard output",
    ]  # no progress: nobody looks
    assert b"\r" not in run.stderr


@pytest.mark.parametrize("weight_type", ["f32", "f16", "bf16", "q8_0", "Q8_0"])
def test_weight_types_and_one_file_models(say: Command, gguf: Path, weight_type: str) -> None:
    result = say("Hi.", "--model", gguf, "--weight-type", weight_type, "--json")
    result.speaks()
    assert json.loads(result.out)["weight_type"] == weight_type.lower()


def test_reference_device(say: Command) -> None:
    assert json.loads(say("Hi.", "--device", "reference", "--json").out)["device"] == "reference"
