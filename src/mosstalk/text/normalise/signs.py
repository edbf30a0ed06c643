"""Signs: quotation marks and dashes, Greek letters in formulas, and what is left and silent."""

import re
import unicodedata

from mosstalk.text.normalise.language import Language
from mosstalk.text.normalise.numbers import cardinal
from mosstalk.text.normalise.reading import Reading, neighbours

_GREEK = "αβγδεζηθικλμνξοπρστυφχψω"
_GREEK_LETTER = re.compile(
    "(?<![\u0370-\u03ff\u1f00-\u1fff])([Α-Ωα-ωϕϑϵ])(?![\u0370-\u03ff\u1f00-\u1fff])"
)
_GREEK_VARIANTS = {"ς": "σ", "ϕ": "φ", "ϑ": "θ", "ϵ": "ε", "µ": "μ"}
_QUOTES = re.compile("[«‹][\u00a0\u202f ]?|[\u00a0\u202f ]?[»›]|[“”„‟〝〞″]")
_APOSTROPHES = re.compile("[‘’‚‛ʼ`´]")
_DASH = re.compile(r"[ \u00a0]*(?:--+|[–—―‒─]+)[ \u00a0]*")
_ELLIPSIS = re.compile(r"(?<!…)…(?!…)")
_ARROW = re.compile(r"\s*(?:<?[-=]{1,2}>|<[-=]{1,2}(?=\s)|[←-⇿⟵-⟿➔➜➡])\s*")
# Signs that are read by name, and only between or before what they belong to.
_NAMED = {
    "%": "percent",
    "‰": "per_mille",
    "&": "and",
    "＆": "and",
    "@": "at",
    "+": "plus",
    "=": "equals",
    "×": "times",
    "✕": "times",
    "÷": "divided",
    "<": "less",
    ">": "greater",
    "≤": "less_equal",
    "≥": "greater_equal",
    "≠": "not_equal",
    "≈": "about",
    "±": "plus_minus",
    "−": "minus",
    "°": "degrees",
    "√": "root",
    "∞": "infinity",
    "§": "section",
    "#": "hash",
    "/": "slash",
    "€": "euro_sign",
    "$": "dollar_sign",
    "£": "pound_sign",
}
_NAMED_SIGN = re.compile(r"\s?(?P<sign>" + "|".join(map(re.escape, _NAMED)) + r")\s?")
_TIMES = re.compile(r"(?<=\d)\s?[x×*]\s?(?=\d)")
_MINUS = re.compile(r"(?<=[\w)])\s[-−]\s(?=\d)|(?<=\d)\s[-−]\s(?=[\w(])")
_SINGLE = {">=": "≥", "<=": "≤", "!=": "≠", "==": "=", "&&": "&"}
_DOUBLED = re.compile("|".join(_SINGLE))
_RAISED = re.compile("[²³¹⁰⁴-⁹]+|[₀-₉]+|[①-⑳]")
_UNDERSCORE = re.compile("_+")
_SILENT_CATEGORIES = ("So", "Sk", "Sm", "Sc", "Co", "Cn")
_MODIFIERS = "\u200d\ufe0e\ufe0f\u20e3"
_SILENT_ASCII = frozenset("|\\^~*{}<>=+#$")
_MAX_NAMED = 6


def read_arithmetic(reading: Reading) -> None:
    """The signs between two numbers, which would be taken for others once the numbers are gone."""
    reading.rewrite(_DOUBLED, lambda match, table: _SINGLE[match.group()])
    reading.rewrite(_TIMES, lambda match, table: _apart(table, table.words["times"]))
    reading.rewrite(_MINUS, lambda match, table: _apart(table, table.words["minus"]))


def read_marks(reading: Reading) -> None:
    """Quotation marks and apostrophes as ASCII has them, dashes and arrows as commas."""
    reading.rewrite(_QUOTES, lambda match, table: '"')
    reading.rewrite(_APOSTROPHES, lambda match, table: "'")
    reading.rewrite(_ARROW, _pause)
    reading.rewrite(_DASH, _pause)
    reading.rewrite(_ELLIPSIS, lambda match, table: "..." if table.spaced else None)


def read_signs(reading: Reading) -> None:
    """Greek letters and named signs in words; what is silent goes, and is remembered."""
    reading.rewrite(_GREEK_LETTER, _greek)
    reading.rewrite(_RAISED, _raised)
    _drop_silent(reading, frozenset(_NAMED))
    reading.rewrite(_NAMED_SIGN, _named)
    reading.rewrite(_UNDERSCORE, lambda match, table: " ")
    _drop_silent(reading, frozenset())


def _drop_silent(reading: Reading, kept: frozenset[str]) -> None:
    """Take signs without a name out, those in `kept` not yet."""
    silent = _silent_pattern(reading.text, kept)
    if silent is None:
        return

    def drop(match: re.Match[str], table: Language) -> str:
        reading.unspoken.append(match["sign"])
        spaces = bool(match["before"]) + bool(match["after"])
        between = all(map(str.isalnum, neighbours(match))) and all(neighbours(match))
        return " " if between or spaces == 2 else ""

    reading.rewrite(silent, drop)


def _raised(match: re.Match[str], table: Language) -> str:
    """Small digits above or below the line, and digits in a ring."""
    return cardinal(table, int(unicodedata.normalize("NFKC", match.group())))


def _apart(table: Language, word: str) -> str:
    return f"{table.space}{word}{table.space}"


def _greek(match: re.Match[str], table: Language) -> str | None:
    if table.code == "el":
        return None
    letter = match[1].lower()
    name = table.letters[_GREEK.index(_GREEK_VARIANTS.get(letter, letter))]
    return name.capitalize() if match[1].isupper() else name


def _pause(match: re.Match[str], table: Language) -> str:
    """A comma where words stand on both sides, at most a space elsewhere."""
    before, after = neighbours(match)
    if (before.isalnum() or (before and before in ")]\"'%")) and (
        after.isalnum() or (after and after in "([\"'$€")
    ):
        return ", " if table.spaced else "，"
    return " " if before and after and not (before.isspace() or after.isspace()) else ""


def _named(match: re.Match[str], table: Language) -> str | None:
    before, after = neighbours(match)
    word = table.words.get(_NAMED[match["sign"]])
    if not word or not (before.isalnum() or after.isalnum()):
        return None
    if not table.spaced:
        return word
    left = " " if before and before not in "(\"'\n" else ""
    right = " " if after.isalnum() or (after and match.group().endswith(" ")) else ""
    return f"{left}{word}{right}"


def _silent_pattern(text: str, kept: frozenset[str]) -> re.Pattern[str] | None:
    """What matches each run of signs of `text` that have no name; None if there are none."""
    signs = {char for char in text if _is_silent(char) and char not in kept}
    if not signs:
        return None
    chars = "".join(map(re.escape, sorted(signs)))
    return re.compile(rf"(?P<before> )?(?P<sign>[{chars}{_MODIFIERS}]+)(?P<after> )?")


def _is_silent(char: str) -> bool:
    if char in _SILENT_ASCII:
        return True
    return ord(char) > 127 and unicodedata.category(char) in _SILENT_CATEGORIES


def names_of(signs: list[str]) -> str:
    """The Unicode names of signs, in words; one that is repeated at once is said once."""
    names = [
        name
        for char in "".join(signs)
        if char not in _MODIFIERS and (name := unicodedata.name(char, "").lower())
        if "modifier" not in name
    ]
    return " ".join(
        name.replace("-", " ")
        for name, before in zip(names, ["", *names], strict=False)
        if name != before
    )


def unspoken_warning(signs: list[str]) -> str:
    """What to say about signs that nobody reads; each with its name."""
    distinct = list(dict.fromkeys("".join(signs)))
    shown = [char for char in distinct if char not in _MODIFIERS]
    names = [
        f"{char} ({unicodedata.name(char, f'U+{ord(char):04X}').lower()})"
        for char in shown[:_MAX_NAMED]
    ]
    more = len(shown) - _MAX_NAMED
    tail = f" and {more} more" if more > 0 else ""
    return f"not spoken, as there are no words for it: {', '.join(names)}{tail}"
