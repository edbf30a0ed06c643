"""From written to spoken: numbers, dates, money, signs and the like become words.

`normalise` reads a text as a person would read it aloud. A text that is all words stays as it is.
"""

import re
import unicodedata
from dataclasses import dataclass

from mosstalk.text.normalise.abbreviations import read_abbreviations, read_acronyms
from mosstalk.text.normalise.addresses import read_addresses, read_phones
from mosstalk.text.normalise.dates import read_dates
from mosstalk.text.normalise.dictionary import Dictionary
from mosstalk.text.normalise.language import language_code
from mosstalk.text.normalise.markup import read_markup
from mosstalk.text.normalise.quantities import read_quantities
from mosstalk.text.normalise.reading import Reading
from mosstalk.text.normalise.rewriting import Edit, Rewriting, Span
from mosstalk.text.normalise.signs import (
    names_of,
    read_arithmetic,
    read_marks,
    read_signs,
    unspoken_warning,
)

_MAX_ROUNDS = 8
_WIDE = re.compile("[\uff10-\uff19\uff21-\uff3a\uff41-\uff5a\uff05\uff0b\uff0f\uff1d\uff20]+")
_OTHER_DIGITS = re.compile("[\u0660-\u0669\u06f0-\u06f9\u0966-\u096f\u0e50-\u0e59\u066b\u066c]+")
_MARKS = {"\u066b": ".", "\u066c": ","}  # of Arabic decimals and thousands


@dataclass(frozen=True, slots=True)
class Normalised:
    """A text as it is spoken.

    Attributes:
        text: the words.
        spans: where they come from, in order; together they cover `text` and the source.
        warnings: what was left out, and why.
    """

    text: str
    spans: tuple[Span, ...]
    warnings: tuple[str, ...]


def normalise(
    text: str, language: str | None = None, dictionary: Dictionary | None = None
) -> Normalised:
    """Read `text` aloud, in words.

    Args:
        text: as written; special tokens of a model must be gone already.
        language: code or English name of the language that it is mostly in. Parts in another
            script are read in their own; without it the language is found out.
        dictionary: comes before all rules.

    Raises:
        UsageError: an unknown language.
    """
    code = None if language is None else language_code(language)
    rewriting = Rewriting.of(text)
    if language is not None and code is None:
        warning = f"numbers and signs stay as they are written: there are no rules for {language}"
        return Normalised(text, rewriting.spans, (warning,))
    unspoken: list[str] = []
    warnings: list[str] = []
    for _ in range(_MAX_ROUNDS):  # what one rule leaves may be for another
        reading = Reading(rewriting.text, code)
        if dictionary is not None:
            dictionary.read(reading)
        _read(reading)
        unspoken += reading.unspoken
        warnings += reading.warnings
        if reading.text == rewriting.text:
            break
        rewriting = rewriting.then(reading.rewriting)
    if unspoken and not any(map(str.isalnum, rewriting.text)):  # a face alone is named
        names = names_of(unspoken)
        rewriting = Rewriting.of(text).edited([Edit(0, len(text), names)])
        warnings.append(f"the text holds signs alone; they are read by name: {names}")
    elif unspoken:
        warnings.append(unspoken_warning(unspoken))
    return Normalised(rewriting.text, rewriting.spans, tuple(warnings))


def _read(reading: Reading) -> None:
    reading.rewrite(_WIDE, lambda match, table: unicodedata.normalize("NFKC", match.group()))
    reading.rewrite(_OTHER_DIGITS, lambda match, table: _ascii_digits(match.group()))
    read_markup(reading)
    read_addresses(reading)
    reading.is_counting = True
    read_dates(reading)
    read_phones(reading)
    read_arithmetic(reading)
    read_quantities(reading)
    reading.is_counting = False
    read_abbreviations(reading)
    read_marks(reading)
    read_acronyms(reading)
    read_signs(reading)


def _ascii_digits(written: str) -> str:
    return "".join(_MARKS.get(char) or str(unicodedata.decimal(char)) for char in written)
