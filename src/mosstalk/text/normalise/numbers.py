"""Numbers in words. Whole numbers are spelt by unicode-rbnf, from the rules of Unicode CLDR; what
people say otherwise is corrected by each language's `fixes`.
"""

import re
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import TYPE_CHECKING

from mosstalk.text.normalise.language import Language, Noun
from mosstalk.text.normalise.plurals import form

if TYPE_CHECKING:
    from unicode_rbnf import RbnfEngine

SPACES = " \u00a0\u202f\u2009"
# A number as it is written. Groups set apart by spaces are thousands.
NUMBER = (
    rf"(?<![\d.,])(?<!\[S)(?:\d{{1,3}}(?:[{SPACES}]\d{{3}})+(?!\d)|\d{{1,3}}(?:['’]\d{{3}})+(?!\d)|\d+)"
    r"(?:[.,]\d+)*"
)
_MAX_DIGITS = 15  # longer ones are read digit by digit
_MARKS = re.compile(r"[.,]")


@dataclass(frozen=True, slots=True)
class Number:
    """A written number.

    Attributes:
        whole: digits before the decimal mark.
        decimals: digits after it, "" if there are none.
        mark: the word for the mark that was written, as a key of Language.words.
    """

    whole: str
    decimals: str = ""
    mark: str = "point"

    @property
    def value(self) -> int:
        """The whole part; of one that is too long its end, which decides the plural."""
        return int(self.whole[-_MAX_DIGITS:])


def parse_number(written: str, language: Language) -> Number | None:
    """Read separators as the language writes them; None where they make no sense.

    A mark that comes twice parts thousands; of two different marks the last is the decimal one. A
    single mark parts thousands if the language uses it so and three digits follow.
    """
    text = re.sub(rf"[{SPACES}'’]", "", written)
    marks = _MARKS.findall(text)
    if not marks:
        return Number(text)
    parts = _MARKS.split(text)
    thousands = all(len(part) == 3 for part in parts[1:]) and 1 <= len(parts[0]) <= 3
    if len(marks) == 1:
        (mark,) = marks
        if mark in language.groups and thousands and parts[0] != "0":
            return Number("".join(parts))
        usual = mark == language.decimal
        return Number(parts[0], parts[1], "point" if usual else "other_point")
    if len(set(marks)) == 1:
        return Number("".join(parts)) if thousands and parts[0] != "0" else None
    whole = parts[:-1]
    fits = all(len(part) == 3 for part in whole[1:]) and 1 <= len(whole[0]) <= 3
    if len(set(marks[:-1])) == 1 and marks[-1] != marks[0] and fits:
        return Number("".join(whole), parts[-1])
    return None


@cache
def _engine(code: str) -> "RbnfEngine":
    from unicode_rbnf import RbnfEngine  # only where there are numbers: it takes a while

    return RbnfEngine.for_language(code)


@lru_cache(maxsize=4096)
def _spelt(language_code: str, rule: str, number: int) -> str:
    return _engine(language_code).format_number(number, ruleset_names=[rule]).text


def cardinal(language: Language, number: int, use: str = "number") -> str:
    """`number` in words; `use` is a key of the language's rules, such as a gender."""
    rule = language.rules.get(use) or language.rules["number"]
    words = _spelt(language.code, rule, number)
    for fix in language.fixes:
        if fix.use in ("", use):
            words = fix.old.sub(fix.new, words)
    return words


def ordinal(language: Language, number: int, use: str = "ordinal") -> str:
    """`number` as an ordinal, the forms of `rules` or `date`; a cardinal where there is none."""
    listed: list[str] = language.date["ordinals"]
    if use == "ordinal" and 0 < number <= len(listed):
        return listed[number - 1]
    return cardinal(language, number, use)


def digits(language: Language, written: str) -> str:
    """Digit by digit."""
    zero = language.words.get("digit_zero")
    spoken = (
        zero if zero and digit == "0" else cardinal(language, int(digit)) for digit in written
    )
    return language.space.join(spoken)


def year(language: Language, number: int) -> str:
    """The number of a year, as it is read without the word for it."""
    if language.code == "en" and 1 <= number % 100 <= 9 and 1100 <= number < 2000:
        return f"{cardinal(language, number // 100)} oh {cardinal(language, number % 100)}"
    if language.code == "en" and 2000 <= number < 2010 or number < 1000:
        return cardinal(language, number)
    return cardinal(language, number, "year")


def spoken_number(language: Language, number: Number, use: str = "number") -> str:
    """A number with its decimals in words."""
    leads_zero = number.whole[0] == "0" and len(number.whole) > 1
    if len(number.whole) > _MAX_DIGITS or (leads_zero and not number.decimals):
        written = number.whole + number.decimals
        return digits(language, written)
    whole = cardinal(language, number.value, use)
    if not number.decimals:
        return whole
    if language.fraction == "named" and number.mark == "point":
        named = _named_fraction(language, number)
        if named is not None:
            return named
    mark = language.words.get(number.mark) or language.words["point"]
    words = (cardinal(language, number.value), mark, _decimals(language, number.decimals))
    return language.space.join(words)


def _decimals(language: Language, written: str) -> str:
    if language.fraction == "digits" or len(written) > 2 or written[0] == "0":
        return digits(language, written)
    return cardinal(language, int(written))


def _named_fraction(language: Language, number: Number) -> str | None:
    """With the name of the decimals' place: `three wholes fourteen hundredths`."""
    places = language.words["places"].split()
    if len(number.decimals) > len(places) or not int(number.decimals):
        return None
    parts = [Noun.parse(language.words["wholes"]), Noun.parse(places[len(number.decimals) - 1])]
    values = (number.value, int(number.decimals))
    spoken = [
        f"{cardinal(language, value, noun.gender)} {form(noun, language.plural, value)}"
        for noun, value in zip(parts, values, strict=True)
    ]
    return " ".join(spoken)


def counted(language: Language, number: Number, noun: Noun, use: str | None = None) -> str:
    """A number and what it counts, in the right form; `use` as in `cardinal` instead of the
    noun's gender.
    """
    is_decimal = bool(number.decimals)
    what = form(noun, language.plural, number.value, is_decimal=is_decimal)
    if what.startswith("=") and use is None:
        return what[1:]
    if use is None:
        use = "number" if is_decimal else noun.gender or "counted"
    spoken = spoken_number(language, number, use)
    what = what.removeprefix("=")
    return what.replace("{}", spoken) if "{}" in what else f"{spoken}{language.space}{what}"
