"""Options out of their range, unknown names, and options that exclude each other."""

import os
from pathlib import Path

import pytest
from cli_runs import Command


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--seed -1", "the seed is -1"),
        ("--seed 9223372036854775808", "the seed is 9223372036854775808"),
        ("--seed seven", "invalid int value: 'seven'"),
        ("--seed 1.5", "invalid int value: '1.5'"),
        ("--temperature nan", "temperature is nan"),
        ("--temperature -1", "temperature is -1.0"),
        ("--temperature inf", "temperature is inf"),
        ("--temperature warm", "invalid float value: 'warm'"),
        ("--top-k -3", "top-k is -3"),
        ("--top-p 0", "top-p is 0.0"),
        ("--top-p nan", "top-p is nan"),
        ("--repetition-penalty 0", "repetition penalty is 0.0"),
        ("--max-frames 0", "max-frames is 0"),
        ("--max-frames -1", "max-frames is -1"),
        ("--max-frames 1000000000000", "the model's 1024 positions"),
        ("--codebooks 5", "codebooks is 5, but this model has 4"),
        ("--codebooks 0", "codebooks is 0"),
        ("--threads -1", "the number of threads is -1"),
        ("--threads 1000000", "the number of threads is 1000000"),
        ("--weight-type q4_k", "unknown weight type 'q4_k'"),
        ("--device tpu", "unknown device 'tpu'"),
        ("--mode sing", "unknown mode 'sing'"),
        ("--mode continuation", "continuation needs a voice with a transcript"),
        ("--voice-transcript Words", "--voice-transcript belongs to a voice"),
        ("--voice-ref x.wav", "not allowed with argument --voice"),
        ("--max-tokens many", "invalid int value: 'many'"),
        ("--out x.mp3", "ends in .wav or .flac"),
        ("--out x", "ends in .wav or .flac"),
        ("--out - --json", "both want standard output"),
    ],
)
def test_refused(say: Command, options: str, words: str) -> None:
    result = say("Hello.", *options.split())
    if "--json" in options:
        assert result.status == 2
        assert words in result.err
    else:
        result.refuses(words)


@pytest.mark.parametrize(
    "options",
    [
        "--seed 9223372036854775807",
        "--seed 0",
        "--temperature 0",
        "--temperature 1e-30",
        "--temperature 1e30",
        "--top-k 0 --top-p 1 --repetition-penalty 1",
        "--top-k 1000000000000000000000000000000",
        "--top-p 1e-30",
        "--repetition-penalty 1e30",
        "--max-tokens 0",
        "--max-tokens 1",
        "--max-tokens -7",
        "--codebooks 1",
        "--threads 7",
    ],
)
def test_extremes_that_are_spoken(say: Command, options: str) -> None:
    say("Hello there.", *options.split()).speaks()


@pytest.mark.parametrize("name", ["nobody", "你好", "x" * 64])
def test_unknown_voice(say: Command, name: str) -> None:
    say("Hello.", "--voice", name).refuses("unknown voice")


@pytest.mark.parametrize("name", ["../voice", "a/b", "", "a b", "x" * 65, ".hidden"])
def test_impossible_voice(say: Command, name: str) -> None:
    say("Hello.", "--voice", name).refuses("cannot be a voice's name")


def test_cloning_model_without_a_voice(command: Command, talker: Path) -> None:
    command("say", "Hello.", "--model", talker).refuses("--voice none")


@pytest.mark.parametrize(
    ("model", "words", "status"),
    [
        ("sprot", "unknown model 'sprot'", 2),
        ("", "has no config.json", 1),
        ("no/such/folder", "no/such/folder does not exist", 1),
        ("model.gguf", "model.gguf does not exist", 1),
    ],
)
def test_unknown_model(say: Command, model: str, words: str, status: int) -> None:
    say("Hello.", "--model", model).refuses(words, status)


def test_model_that_was_not_pulled(
    say: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    say("Hello.", "--model", "nano").refuses("run `mosstalk pull nano`", status=1)


def test_names_with_any_bytes(say: Command) -> None:
    name = os.fsdecode(b"\xff\n.wav")
    result = say("Hello.", "--out", name)
    assert result.status == 0
    assert Path(name).read_bytes().startswith(b"RIFF")
    Path(name).unlink()
    say("Hello.", "--model", name).refuses("unknown model")
