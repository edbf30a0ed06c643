"""`mosstalk say` and how it reads a text: what is shown, left, looked up and kept silent."""

import json
from pathlib import Path

import pytest
from cli_runs import Command
from tiny_model import SAMPLE_RATE


def test_show_normalized_prints_the_words_and_stops(say: Command) -> None:
    result = say("Dr. Smith paid $19.99. [pause 1.5s] Bye!", "--show-normalized")
    assert result.status == 0
    assert result.out.splitlines() == [
        "Doctor Smith paid nineteen dollars and ninety-nine cents. [pause 1.5s]",
        "Bye!",
    ]
    assert not list(Path.cwd().glob("*.wav"))


def test_language_of_the_text(say: Command) -> None:
    assert say("21", "--language", "French", "--show-normalized").out == "vingt-et-un\n"
    say("21", "--language", "klingon").refuses("unknown language 'klingon'")
    say("21", "--language", "de", "--json").speaks()


def test_no_normalize_leaves_the_text(say: Command) -> None:
    assert say("$5 😊", "--no-normalize", "--show-normalized").out == "$5 😊\n"
    say("$5", "--no-normalize").speaks()


def test_dictionary_of_a_user(say: Command) -> None:
    Path("words.toml").write_text('nginx = "engine x"\n', encoding="utf-8")
    result = say("Start nginx", "--dictionary", "words.toml", "--show-normalized")
    assert result.out == "Start engine x\n"
    say("nginx", "--dictionary", "none.toml").refuses("cannot read none.toml")
    say("nginx", "--dictionary", "words.toml", "--no-normalize").refuses("dictionary is of no use")


def test_what_is_not_spoken_is_in_the_report(say: Command) -> None:
    result = say("Great 😊 job", "--json")
    result.speaks()
    assert any("smiling face" in warning for warning in json.loads(result.out)["warnings"])


def test_a_pause_is_exact_silence(say: Command) -> None:
    plain = json.loads(say("One", "--seed", "3", "--json").out)["seconds"]
    paused = json.loads(say("One [pause 1.25s]", "--seed", "3", "--json").out)["seconds"]
    assert paused - plain == pytest.approx(round(1.25 * SAMPLE_RATE) / SAMPLE_RATE)


def test_markup_that_is_not_understood(say: Command) -> None:
    say("<prosody rate='slow'>One</prosody>").refuses("holds <prosody>")
    say("[pause 1s] One").refuses("comes before any words")
