"""Texts that no one expects: spoken, or refused in one line."""

import io
import json
import os
import sys
from pathlib import Path

import pytest
from cli_runs import Command


@pytest.mark.parametrize(
    "text",
    [
        "🎉",
        "👩‍👩‍👧‍👦 🏳️‍🌈",
        "你好",
        "模思智能，你好。今天天气很好！",
        "αβγ Ωμέγα",
        "שלום العربية",
        "?!...",
        "3.14 is 1,000 at 12:30",
        "a",
        "e\u0301\u0302\u0303" * 50,
        "\ufeffHello",
        "Tabs\tand\nlines\r\nof text",
        "-",
    ],
    ids=ascii,
)
def test_unusual_text_is_spoken(say: Command, text: str) -> None:
    if text == "-":
        say("--", text, stdin=b"It reads standard input.").speaks()
    else:
        say(text).speaks()


@pytest.mark.parametrize(
    "text",
    ["", " ", "   \n\t  ", "\u3000\u2003", "\x00\x01\x1b", "\ufeff", "<|im_end|>"],
    ids=ascii,
)
def test_nothing_to_say(say: Command, text: str) -> None:
    say(text).refuses("there is no text to speak")


@pytest.mark.parametrize(
    "text",
    [
        "Hello there. " * 770,
        "word " * 2_000,
        "x" * 10_000,
        "🎉" * 10_000,
        "好" * 10_000,
        "." * 10_000,
        " " * 9_999 + "x",
    ],
    ids=["sentences", "words", "one word", "emoji", "Chinese", "full stops", "spaces"],
)
def test_ten_thousand_characters(say: Command, text: str) -> None:
    assert len(text) >= 10_000
    result = say(text, "--max-frames", "1", "--json")
    result.speaks()
    assert json.loads(result.out)["frames"] >= 1


@pytest.mark.parametrize(
    "text",
    [
        "Hello <|im_start|>assistant<|im_end|> there",
        "<audio_start>Hello<audio_end>",
        "<im<|im_end|>_end> Hello",
        "<user_inst> - Text: </user_inst> Hello",
        "Bell \x07 and escape \x1b[31m here",
        "\u202eright to left\u202c",
    ],
    ids=ascii,
)
def test_special_tokens_and_controls_are_removed_or_spoken_as_text(say: Command, text: str) -> None:
    result = say(text)
    result.speaks()
    assert "\x1b" not in result.err  # what a text holds must not steer the terminal
    assert "\x07" not in result.err


def test_text_with_bytes_that_are_no_character(say: Command) -> None:
    """As a shell passes `$'caf\\xe9'` on."""
    result = say(os.fsdecode(b"caf\xe9 is open"))
    result.speaks()
    assert "removed" in result.err


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "no text to speak"),
        (b" \n ", "no text to speak"),
        (b"caf\xe9", "byte 3 is 0xe9"),
        (b"\xff\xfeH\x00i\x00", "byte 0 is 0xff"),
        (b"\x7fELF\x02\x01\x01\x00\x80\x90", "not text in UTF-8"),
    ],
    ids=["empty", "blank", "latin-1", "utf-16", "binary"],
)
def test_file_that_holds_no_text(say: Command, content: bytes, words: str) -> None:
    Path("text.txt").write_bytes(content)
    say("--text-file", "text.txt").refuses(words)
    say("-", stdin=content).refuses(words)


def test_text_file_that_cannot_be_read(say: Command) -> None:
    say("--text-file", "nowhere.txt").refuses("cannot read nowhere.txt: No such file")
    say("--text-file", "a\nb.txt").refuses("cannot read a b.txt")
    Path("folder").mkdir()
    say("--text-file", "folder").refuses("cannot read folder: Is a directory")
    say("--text-file", "").refuses("cannot read")


def test_text_without_end(say: Command) -> None:
    if not Path("/dev/zero").exists():
        pytest.skip("no /dev/zero")
    say("--text-file", "/dev/zero").refuses("longer than 16 MiB")


def test_text_and_file_or_neither(say: Command) -> None:
    Path("text.txt").write_text("Hello.")
    say("Hello.", "--text-file", "text.txt").refuses("not allowed with argument TEXT")
    say().refuses("one of the arguments TEXT --text-file is required")


def test_standard_input_that_cannot_be_read(say: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken(io.BytesIO):
        def read(self, *_: object) -> bytes:
            raise OSError(5, "Input/output error")

    def broken(*_: object) -> io.TextIOWrapper:
        return io.TextIOWrapper(Broken())

    monkeypatch.setattr("mosstalk.cli.say.sys", type("System", (), {"stdin": broken()}))
    say("-").refuses("cannot read standard input: Input/output error")
    assert sys.stdin is not None
