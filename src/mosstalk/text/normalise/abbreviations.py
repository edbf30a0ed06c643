"""Words that are not read as they are written: abbreviations, acronyms and Roman numerals."""

import re
from functools import cache

from mosstalk.text.normalise.language import Language
from mosstalk.text.normalise.language import language as table_of
from mosstalk.text.normalise.numbers import cardinal, ordinal
from mosstalk.text.normalise.reading import Reading

_ACRONYM = re.compile(
    r"(?<![A-Za-z'’.&-])([A-Z]{2,5})(s?)(?![A-Za-z'’&]|-[a-z])|(?<![A-Za-z'’.&-])([A-Z]{2,5})(?=[-'’][a-z])"
)
_DOTTED = re.compile(r"(?<![A-Za-z.])(?:[A-Z]\.){2,}(?![A-Za-z])")
_AMPERSAND = re.compile(r"\b([A-Z])&([A-Z])\b")
_VOWELS = frozenset("AEIOUY")
# Have a vowel, and are spelt out all the same.
_SPELT_WORDS = (
    "AC AI API ATM AV AWS BA CEO CFO CIA CIO COO CPU CTO DIY DNA DOI EEG EKG ER ERP EU FAQ "
    "FBI GPA GPU HIV HTML ID IMF IO IOS IP IPA IPO IQ IR ISBN IT ITV LA LED MIT MRI NGO OECD "
    "OS QA RIP RNA ROI RSI SEO SOS SUV TIA UAE UFO UI UK UN URI URL US USA USB USSR UX VAT "
    "VIP VPN XML UAV EUR USD AUD CAD EDI IOT IDE "
)
_SPELT = frozenset(_SPELT_WORDS.split())
_ROMAN = re.compile(
    r"(?<![\w.'’-])(?P<roman>X{0,3}(?:IX|IV|V?I{0,3}))(?P<mark>e|ème|\.)?(?![\w'’-])"
)
_VALUES = {"I": 1, "V": 5, "X": 10}
_ORDINAL_BEFORE = re.compile(
    r"(?:King|Queen|Pope|Emperor|Tsar|Prince|Louis|Henry|Charles|George|Edward|Elizabeth|James|"
    r"William|Richard|John Paul|Benedict|Philip|Frederick|Nicholas|Alexander|Peter|Catherine|"
    r"Francis|Ramesses|Napoleon|Ivan|Leo|Pius|Gregory)\s\Z"
)
_CENTURY = {
    "en": "century",
    "fr": "siècle",
    "it": "secolo",
    "pl": "wiek|wieku",
    "ru": "век|века|веке",
    "pt": "século",
    "cs": "století",
    "hu": "század",
}
_CARDINAL_AFTER = {"es": "siglo", "pt": "século"}


def read_abbreviations(reading: Reading) -> None:
    """Put words in the place of abbreviations."""
    reading.rewrite(_abbreviation_pattern, _abbreviation)


def read_acronyms(reading: Reading) -> None:
    """Set the letters of acronyms apart, and read Roman numerals."""
    text = reading.text
    reading.rewrite(_ROMAN, lambda match, table: _roman(match, table, text))
    reading.rewrite(_DOTTED, _dotted)
    reading.rewrite(_AMPERSAND, lambda m, table: f"{m[1]} {table.words['and']} {m[2]}")
    shouted = set(_shouted(reading.text))
    reading.rewrite(_ACRONYM, lambda match, table: _acronym(match, table, shouted))


@cache
def _compiled(code: str) -> re.Pattern[str]:
    written = sorted(table_of(code).abbreviations, key=len, reverse=True)
    if not written:
        return re.compile("(?!)")
    any_of = "|".join(re.escape(w) + (r"(?!\w)" if w[-1].isalnum() else "") for w in written)
    return re.compile(rf"(?<![\w.])({any_of})")


def _abbreviation_pattern(table: Language) -> re.Pattern[str]:
    return _compiled(table.code)


def _abbreviation(match: re.Match[str], table: Language) -> str:
    spoken = table.abbreviations[match[1]]
    rest = match.string[match.end() : match.end() + 3].lstrip(" ")
    ends = match[1].endswith(".") and (not rest or rest[0] == "\n")
    return f"{spoken}." if ends else spoken


def _roman(match: re.Match[str], table: Language, text: str) -> str | None:
    numeral = match["roman"]
    if not numeral:
        return None
    value = _value(numeral)
    before, after = (
        text[max(0, match.start() - 24) : match.start()],
        text[match.end() : match.end() + 12],
    )
    if match["mark"] not in (None, ".") and table.code != "fr":
        return None
    tail = "." if match["mark"] == "." else ""
    century = _CENTURY.get(table.code)
    if (
        century
        and re.match(rf"\s(?:{century})\b", after)
        or (table.code == "fr" and match["mark"] in ("e", "ème"))
    ):
        use = {"веке": "year_in", "века": "date_year"}.get(after.strip().split(" ")[0], "ordinal")
        return ordinal(table, value, use if use in table.rules else "ordinal")
    words = _CARDINAL_AFTER.get(table.code)
    if words and re.search(rf"(?i:\b(?:{words}))\s\Z", before):
        return cardinal(table, value) + tail
    if len(numeral) < 2 and not re.search(_PART_WORDS, before):
        return None
    if table.code == "en" and _ORDINAL_BEFORE.search(before):
        return f"the {ordinal(table, value)}{tail}"
    if table.code == "de" and tail and re.search(r"[A-ZÄÖÜ]\w+\s\Z", before):
        return f"der {ordinal(table, value).capitalize()}"
    if not re.search(r"[^\W\d_]\s\Z", before):
        return None
    return cardinal(table, value) + tail


_PART_WORDS = (
    r"(?i:\b(?:chapter|part|volume|book|act|scene|phase|type|level|world war|kapitel|teil|band|"
    r"chapitre|tome|partie|capítulo|tomo|parte|capitolo|część|rozdział|kapitola|глава|том|часть|"
    r"κεφάλαιο|bölüm))\s\Z"
)


def _value(numeral: str) -> int:
    values = [_VALUES[letter] for letter in numeral]
    pairs = zip(values, [*values[1:], 0], strict=True)
    return sum(-value if value < following else value for value, following in pairs)


def _dotted(match: re.Match[str], table: Language) -> str:
    letters = " ".join(match.group().replace(".", ""))
    rest = match.string[match.end() : match.end() + 2]
    ends = not rest.strip() or rest.startswith("\n")
    return f"{letters}." if ends else letters


def _shouted(text: str) -> list[int]:
    """Starts of the words in capitals that stand in a line of capitals."""
    starts: list[int] = []
    for line in re.finditer(r"[^\n.!?]+", text):
        words = list(re.finditer(r"[^\W\d_]{2,}", line.group()))
        capitals = [word for word in words if word.group().isupper()]
        if len(capitals) > 2 and len(capitals) * 4 >= len(words) * 3:
            starts += [line.start() + word.start() for word in capitals]
    return starts


def _acronym(match: re.Match[str], table: Language, shouted: set[int]) -> str | None:
    letters, plural = match[1] or match[3], match[2] or ""
    if match.start() in shouted or match.group() == "OK":
        return None
    if letters not in _SPELT and (_VOWELS & set(letters)):
        return None
    spelt = " ".join(letters)
    return f"{spelt}'s" if plural else spelt
