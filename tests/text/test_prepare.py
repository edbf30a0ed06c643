"""Texts on their way to a model: cleaned, divided at pauses, and read in words."""

import pytest

from mosstalk.errors import UsageError
from mosstalk.text.cleaning import clean, clean_controls
from mosstalk.text.normalise.dictionary import Dictionary
from mosstalk.text.pauses import Stretch
from mosstalk.text.prepare import prepare

_TOKEN = "<|im_end|>"


def _clean(text: str) -> tuple[str, tuple[str, ...]]:
    """As a tokeniser with one special token does."""
    removed = [_TOKEN] * text.count(_TOKEN)
    return clean(text, lambda kept: (kept.replace(_TOKEN, ""), removed))


def test_words_and_pauses() -> None:
    stretches, warnings = prepare("It is $5. [pause 1.5s] Bye at 9:30.", _clean, "en", None)
    assert stretches == [
        Stretch("It is five dollars. ", 1.5),
        Stretch(" Bye at nine thirty.", 0.0),
    ]
    assert warnings == ()


def test_special_tokens_go_with_a_warning_however_they_are_written() -> None:
    text = f"Hi {_TOKEN} there &lt;|im_end|&gt;"
    (stretch,), warnings = prepare(text, _clean, "en", None)
    assert "<" not in stretch.text
    assert "|" not in stretch.text
    assert any(_TOKEN in warning for warning in warnings)


def test_a_dictionary_comes_first() -> None:
    words = Dictionary({"$5": "a fiver"})
    assert prepare("It is $5.", _clean, "en", words)[0] == [Stretch("It is a fiver.", 0.0)]


def test_a_stretch_of_signs_alone_is_read_by_name() -> None:
    stretches, warnings = prepare("Hi. [pause 1s] ☂ [pause 1s] Bye.", _clean, "en", None)
    assert [stretch.text.strip() for stretch in stretches] == ["Hi.", "umbrella", "Bye."]
    assert len(warnings) == 1


@pytest.mark.parametrize("text", ["", "  ", "\n", _TOKEN, "***"])
def test_nothing_to_speak(text: str) -> None:
    with pytest.raises(UsageError, match="there is no text to speak"):
        prepare(text, _clean, None, None)


def test_text_for_no_model() -> None:
    assert clean_controls("a\x07b") == ("ab", ("removed control characters from the text: U+0007",))
