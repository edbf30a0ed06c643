"""Pauses that a text asks for, and the few elements of SSML that are understood.

`[pause 1.5s]` and `<break time="500ms"/>` are exact silence. Of SSML `speak`, `p`, `s`, `sub` and
`say-as` are read too; any other element is refused by its name, as leaving it out would change what
is heard without a word (W3C, Speech Synthesis Markup Language 1.1).
"""

import re
from dataclasses import dataclass

from mosstalk.errors import UsageError

_MAX_SECONDS = 60.0
_PAUSE = re.compile(r"\[pause\b(?P<tag>[^\]\n]*)\]|<break\b(?P<element>[^<>]*?)/?>(?:\s*</break>)?")
_LENGTH = re.compile(
    r"\s*(?:time\s*=\s*)?(?P<quote>[\"']?)(?P<number>\d+(?:\.\d+)?)(?P<unit>ms|s)(?P=quote)\s*"
)
_STRENGTHS = {
    "none": 0.0,
    "x-weak": 0.1,
    "weak": 0.2,
    "medium": 0.4,
    "strong": 0.7,
    "x-strong": 1.2,
}
_STRENGTH = re.compile(r"\s*(?:strength\s*=\s*[\"'](?P<name>[a-z-]+)[\"'])?\s*")
_SUB = re.compile(
    r"<sub\b[^<>]*?\balias\s*=\s*(?P<quote>[\"'])(?P<alias>[^<>]*?)(?P=quote)[^<>]*>[^<]*</sub>"
)
_SAY_AS = re.compile(
    r"<say-as\b[^<>]*?\binterpret-as\s*=\s*(?P<quote>[\"'])(?P<kind>[\w-]+)(?P=quote)[^<>]*>"
    r"(?P<text>[^<]*)</say-as>"
)
_SPELT = ("characters", "spell-out", "digits")
_PLAIN = ("cardinal", "number", "date", "time", "telephone", "currency", "ordinal")
_WRAPPER = re.compile(r"</?speak\b[^<>]*>")
_REFUSED = re.compile(
    r"</?(?P<name>audio|desc|emphasis|lang|lexicon|lookup|mark|metadata|phoneme|prosody|say-as|"
    r"token|voice|w)\b[^<>]*>"
)


@dataclass(frozen=True, slots=True)
class Stretch:
    """A part of a text without pauses, and the silence to leave after it."""

    text: str
    pause_seconds: float


def split_at_pauses(text: str) -> list[Stretch]:
    """The stretches between the pauses of `text`, with its SSML elements read.

    Raises:
        UsageError: a pause before any words or of no known length, or an element of SSML that is
            not understood.
    """
    text = _SAY_AS.sub(_say_as, _SUB.sub(lambda match: match["alias"], _WRAPPER.sub("", text)))
    refused = _REFUSED.search(text)
    if refused is not None:
        raise UsageError(
            f"the text holds <{refused['name']}>, which is not understood; of SSML use break, p, "
            "s, sub and say-as"
        )
    stretches: list[Stretch] = []
    start = 0
    for match in _PAUSE.finditer(text):
        seconds = _seconds(match)
        before = text[start : match.start()]
        start = match.end()
        if before.strip():
            stretches.append(Stretch(before, seconds))
        elif stretches:
            longer = stretches[-1].pause_seconds + seconds
            stretches[-1] = Stretch(stretches[-1].text, longer)
        else:
            raise UsageError(f"{match.group()} comes before any words; put it after some")
    if text[start:].strip() or not stretches:
        stretches.append(Stretch(text[start:], 0.0))
    return stretches


def _seconds(match: re.Match[str]) -> float:
    written = match["tag"] if match["tag"] is not None else match["element"]
    length = _LENGTH.fullmatch(written)
    if length is not None:
        seconds = float(length["number"]) / (1000 if length["unit"] == "ms" else 1)
    else:
        strength = _STRENGTH.fullmatch(written) if match["tag"] is None else None
        name = None if strength is None else strength["name"] or "medium"
        if name not in _STRENGTHS:
            raise UsageError(
                f"{match.group()} has no length that is understood; write [pause 1.5s] or "
                '<break time="500ms"/>'
            )
        seconds = _STRENGTHS[name]
    if seconds > _MAX_SECONDS:
        raise UsageError(f"{match.group()} is longer than {_MAX_SECONDS:g} s, the most allowed")
    return seconds


def _say_as(match: re.Match[str]) -> str:
    kind, text = match["kind"], match["text"]
    if kind in _SPELT:
        return " ".join(text.replace(" ", ""))
    if kind in _PLAIN:
        return text
    choices = ", ".join((*_SPELT, *_PLAIN))
    raise UsageError(f"say-as does not know interpret-as={kind!r}; choose one of {choices}")
