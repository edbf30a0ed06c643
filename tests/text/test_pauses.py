"""Pauses in a text, and the elements of SSML that are understood."""

import pytest

from mosstalk.errors import UsageError
from mosstalk.text.pauses import Stretch, split_at_pauses


@pytest.mark.parametrize(
    ("pause", "seconds"),
    [
        ("[pause 3.2s]", 3.2),
        ("[pause 500ms]", 0.5),
        ('<break time="1s"/>', 1.0),
        ("<break time='250ms' />", 0.25),
        ('<break time="0.5s"></break>', 0.5),
        ("<break/>", 0.4),
        ('<break strength="strong"/>', 0.7),
    ],
)
def test_pauses_have_their_length(pause: str, seconds: float) -> None:
    assert split_at_pauses(f"One {pause} two") == [Stretch("One ", seconds), Stretch(" two", 0.0)]


def test_pauses_side_by_side_and_at_the_end() -> None:
    text = "One [pause 1s] [pause 500ms] two [pause 2s]"
    assert split_at_pauses(text) == [Stretch("One ", 1.5), Stretch(" two ", 2.0)]


def test_text_without_pauses_is_one_stretch() -> None:
    assert split_at_pauses("a < b, [S1] [pauses]") == [Stretch("a < b, [S1] [pauses]", 0.0)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[pause 3.2s]", "comes before any words"),
        ("One [pause] two", "has no length"),
        ("One [pause long] two", "has no length"),
        ("One <break time='soon'/> two", "has no length"),
        ("One [pause 61s] two", "longer than 60 s"),
        ("<prosody rate='slow'>One</prosody>", "holds <prosody>"),
        ("One <phoneme ph='x'>two</phoneme>", "holds <phoneme>"),
        ('<say-as interpret-as="mood">One</say-as>', "interpret-as='mood'"),
    ],
)
def test_what_is_not_understood_is_refused_by_name(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        split_at_pauses(text)


def test_ssml_elements() -> None:
    text = (
        '<speak version="1.1"><sub alias="World Wide Web">WWW</sub> '
        '<say-as interpret-as="characters">AB1</say-as> '
        '<say-as interpret-as="cardinal">12</say-as></speak>'
    )
    assert split_at_pauses(text) == [Stretch("World Wide Web A B 1 12", 0.0)]
