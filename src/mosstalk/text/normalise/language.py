"""What is known of a language: how it writes numbers, and the words that it has for them.

Each language is a TOML file in `languages/`. A noun is written there as its gender, a colon, and
its plural forms in the order of `plurals.py`, such as `m:dollar|dollars`; `{}` in a form is the
place of the number, which else comes first. A form that starts with `=` needs no number.
"""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any

from mosstalk.errors import UsageError

_FOLDER = Path(__file__).parent / "languages"

LANGUAGE_NAMES: Mapping[str, str] = {
    "ar": "Arabic",
    "cs": "Czech",
    "da": "Danish",
    "de": "German",
    "el": "Greek",
    "en": "English",
    "es": "Spanish",
    "fa": "Persian",
    "fr": "French",
    "he": "Hebrew",
    "hu": "Hungarian",
    "it": "Italian",
    "ja": "Japanese",
    "ko": "Korean",
    "pl": "Polish",
    "pt": "Portuguese",
    "ru": "Russian",
    "sv": "Swedish",
    "tr": "Turkish",
    "zh": "Chinese",
}


@dataclass(frozen=True, slots=True)
class Noun:
    """A counted thing: its gender ("m", "f", "n" or ""), and its plural forms."""

    gender: str
    forms: tuple[str, ...]

    @classmethod
    def parse(cls, text: str) -> "Noun":
        """From `gender:form|form`."""
        gender, _, forms = text.partition(":")
        return cls(gender, tuple(forms.split("|")))


@dataclass(frozen=True, slots=True)
class Currency:
    """The main unit, and its hundredth where people say one."""

    unit: Noun
    cent: Noun | None


@dataclass(frozen=True, slots=True)
class Fix:
    """What is put in the place of words of the spelling library; `use` limits it to one use."""

    old: re.Pattern[str]
    new: str
    use: str

    @classmethod
    def of(cls, old: str, new: str, use: str = "") -> "Fix":
        """From an entry of a table."""
        return cls(re.compile(old), new, use)


@dataclass(frozen=True, slots=True)
class Language:
    """One language's table; see the module.

    Attributes:
        decimal, groups: written decimal mark, and the marks between thousands.
        spaced: words stand apart.
        plural: name of a rule of `plurals.py`.
        fraction: how decimals are read: "digits", "whole" (up to two as one number) or "named".
        rules: rule sets of the spelling library by use: number, m, f, n, year, ordinal, day.
        fixes: what the library's words are replaced with, in order; a third part names the only
            use of a number where it counts.
        words: of signs.
        date, time: templates and names.
        currencies: by ISO code; `money` are the written signs, by their code.
        scales: million and the like, as written.
        units, abbreviations: as written.
        letters: names of the Greek alphabet.
    """

    code: str
    decimal: str
    groups: str
    spaced: bool
    plural: str
    fraction: str
    rules: Mapping[str, str]
    fixes: tuple[Fix, ...]
    words: Mapping[str, str]
    date: Mapping[str, Any]
    time: Mapping[str, str]
    money: Mapping[str, str]
    currencies: Mapping[str, Currency]
    scales: Mapping[str, Noun]
    units: Mapping[str, Noun]
    abbreviations: Mapping[str, str]
    letters: tuple[str, ...]

    @property
    def space(self) -> str:
        """What stands between two words."""
        return " " if self.spaced else ""


@cache
def language(code: str) -> Language:
    """The table of one of LANGUAGE_NAMES."""
    table = tomllib.loads((_FOLDER / f"{code}.toml").read_text(encoding="utf-8"))
    expected = {field.name for field in fields(Language)} - {"code"}
    if set(table) != expected:
        raise ValueError(f"{code}.toml: keys {sorted(set(table) ^ expected)} are wrong")
    return Language(
        code=code,
        **table
        | {
            "fixes": tuple(Fix.of(*fix) for fix in table["fixes"]),
            "currencies": {k: _currency(v) for k, v in table["currencies"].items()},
            "scales": {k: Noun.parse(v) for k, v in table["scales"].items()},
            "units": {k: Noun.parse(v) for k, v in table["units"].items()},
            "letters": tuple(table["letters"].split()),
        },
    )


def language_code(asked: str) -> str | None:
    """The code of a language given by its code (also `en-GB`) or English name, in any case.

    None for a language that models may speak, but of which there is no table: it looks like a
    code. Raises UsageError for a name that is neither.
    """
    folded = asked.strip().casefold()
    primary = re.split(r"[-_]", folded)[0]
    for code, name in LANGUAGE_NAMES.items():
        if primary == code or folded.partition(" (")[0] == name.casefold():
            return code
    if primary == "yue" or folded == "cantonese":
        return "zh"
    if folded in _OTHERS or primary in _OTHERS.values():
        return None
    choices = ", ".join(f"{code} ({name})" for code, name in LANGUAGE_NAMES.items())
    raise UsageError(f"unknown language {asked!r}; choose one of {choices}")


# Spoken by some models, without a table here.
_OTHERS = {
    "dutch": "nl",
    "finnish": "fi",
    "hindi": "hi",
    "macedonian": "mk",
    "malay": "ms",
    "romanian": "ro",
    "swahili": "sw",
    "tagalog": "tl",
    "thai": "th",
    "vietnamese": "vi",
}


def _currency(text: str) -> Currency:
    unit, _, cent = text.partition(" / ")
    return Currency(Noun.parse(unit), Noun.parse(cent) if cent else None)
