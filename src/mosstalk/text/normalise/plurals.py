"""Which form of a noun goes with a number: the rules of Unicode CLDR, as one function for each.

A rule gives the index into a noun's forms for a whole number, or for a decimal.
"""

from collections.abc import Callable

from mosstalk.text.normalise.language import Noun

Rule = Callable[[int, bool], int]


def _none(number: int, is_decimal: bool) -> int:
    return 0


def _one_other(number: int, is_decimal: bool) -> int:
    return int(number != 1 or is_decimal)


def _below_two(number: int, is_decimal: bool) -> int:
    return int(number >= 2)


def _zero_plural(number: int, is_decimal: bool) -> int:
    return int(number != 1)


def _russian(number: int, is_decimal: bool) -> int:
    """One, few, many, decimal."""
    if is_decimal:
        return 3
    ones, tens = number % 10, number % 100
    if ones == 1 and tens != 11:
        return 0
    return 1 if 2 <= ones <= 4 and not 12 <= tens <= 14 else 2


def _polish(number: int, is_decimal: bool) -> int:
    """One, few, many, decimal."""
    if is_decimal or number == 1:
        return 3 if is_decimal else 0
    few = 2 <= number % 10 <= 4 and not 12 <= number % 100 <= 14
    return 1 if few else 2


def _czech(number: int, is_decimal: bool) -> int:
    """One, few, many, decimal."""
    if is_decimal:
        return 3
    return 0 if number == 1 else 1 if 2 <= number <= 4 else 2


def _hebrew(number: int, is_decimal: bool) -> int:
    """One, two, more."""
    return 2 if is_decimal or number not in (1, 2) else number - 1


def _arabic(number: int, is_decimal: bool) -> int:
    """One, two, three to ten, eleven and more, whole hundreds."""
    if is_decimal or number == 0:
        return 4
    if number in (1, 2):
        return number - 1
    rest = number % 100
    return 4 if rest < 3 else 2 if rest <= 10 else 3


_RULES: dict[str, Rule] = {
    "none": _none,
    "one-other": _one_other,
    "below-two": _below_two,
    "whole-one": _zero_plural,
    "russian": _russian,
    "polish": _polish,
    "czech": _czech,
    "hebrew": _hebrew,
    "arabic": _arabic,
}


def form(noun: Noun, rule: str, number: int, *, is_decimal: bool = False) -> str:
    """The noun's form for a number, of which `number` is the whole part."""
    return noun.forms[min(_RULES[rule](number, is_decimal), len(noun.forms) - 1)]
