"""Numbers with what they count: money, measures, percentages, ranges, and numbers alone."""

import re
from collections.abc import Iterable
from functools import cache

from mosstalk.text.normalise.language import Language
from mosstalk.text.normalise.language import language as table_of
from mosstalk.text.normalise.numbers import (
    NUMBER,
    SPACES,
    Number,
    cardinal,
    counted,
    digits,
    ordinal,
    parse_number,
    spoken_number,
    year,
)
from mosstalk.text.normalise.plurals import form
from mosstalk.text.normalise.reading import Reading

# Signs of money that mean the same everywhere; a language may add to them and change them.
_MONEY = {
    "$": "USD",
    "US$": "USD",
    "€": "EUR",
    "£": "GBP",
    "¥": "JPY",
    "￥": "JPY",
    "₩": "KRW",
    "₽": "RUB",
    "₹": "INR",
    "₺": "TRY",
    "₪": "ILS",
    "zł": "PLN",
    "Kč": "CZK",
    "R$": "BRL",
    "＄": "USD",
    "￡": "GBP",
}
_NO_LETTER = "(?![A-Za-z\u00c0-\u024f\u0370-\u05ff\u0620-\u06ff])"
_SIGNS = {"-": "minus", "−": "minus", "+": "plus", "±": "plus_minus", "~": "about", "≈": "about"}
_YEARS = range(1100, 2100)
_MILLION = 10**6
_FRACTIONS = {"½": (1, 2), "⅓": (1, 3), "⅔": (2, 3), "¼": (1, 4), "¾": (3, 4)}
_CHINESE_COUNTERS = "个只本张位条件杯次辆家座名块台间种天年月小岁斤公"
_KOREAN_COUNTERS = "개|명|살|마리|번|잔|병|권|장|대|시간|가지|달|사람|그루|송이|채|켤레|벌"


def read_quantities(reading: Reading) -> None:
    """Put words in the place of all numbers; dates, times and phone numbers are gone already."""
    reading.rewrite(_CHINESE_PAIR, _chinese_pair)
    reading.rewrite(_KOREAN_COUNT, _korean_count)
    reading.rewrite(_DECADE, _decade)
    reading.rewrite(_RATIO, _ratio)
    reading.rewrite(_ORDINAL, _ordinal)
    reading.rewrite(_GERMAN_ORDINAL, _german_ordinal)
    reading.rewrite(_HUNGARIAN_ORDINAL, _hungarian_ordinal)
    reading.rewrite(_VERSION, _version)
    reading.rewrite(_FRACTION, _fraction)
    reading.rewrite(_quantity_pattern, _quantity)
    reading.rewrite(re.compile(NUMBER), _lone_number)
    reading.rewrite(_REST, lambda match, table: digits(table, match.group()))


_REST = re.compile(r"(?<!\[S)(?<!\d)\d+")


def _any_of(choices: Iterable[str]) -> str:
    """Longest first; after one that ends with a letter no other letter may follow."""
    ordered = sorted(set(choices), key=len, reverse=True)
    return "|".join(re.escape(c) + (_NO_LETTER if c[-1].isalpha() else "") for c in ordered)


def _codes_of_money(table: Language) -> dict[str, str]:
    return {code: code for code in table.currencies} | _MONEY | dict(table.money)


@cache
def _compiled(code: str) -> re.Pattern[str]:
    table = table_of(code)
    money = _any_of(_codes_of_money(table))
    units = _any_of([*_codes_of_money(table), *table.units])
    scales = _any_of(table.scales) or "(?!)"
    space = f"[{SPACES}]?"
    return re.compile(
        rf"(?P<sign>(?<![^\W\u3040-\u9fff])(?<![)\]])[-−+]{space}|±{space}|[~≈]{space})?"
        rf"(?:(?P<before>(?<![A-Za-z])(?:{money})){space})?(?P<first>{NUMBER})"
        rf"(?:(?:-|{space}[–—~～]{space})(?:{money})?(?P<second>{NUMBER}))?"
        rf"(?:{space}(?P<scale>{scales}))?(?:{space}(?P<after>{units}))?"
    )


def _quantity_pattern(table: Language) -> re.Pattern[str]:
    return _compiled(table.code)


def _quantity(match: re.Match[str], table: Language) -> str | None:
    first = parse_number(match["first"], table)
    second = parse_number(match["second"], table) if match["second"] else None
    if first is None or (match["second"] and second is None):
        return None
    money = _codes_of_money(table)
    unit = match["after"]
    code = money.get(match["before"] or "") or money.get(unit or "")
    if match["before"] and unit and unit not in money:
        return None
    if code is None and len(match["scale"] or "") == 1:
        return None  # 4K, 12B: of money only
    is_bare = not (unit or code or match["scale"])
    numbers = [number for number in (first, second) if number is not None]
    if is_bare and all(_is_year(written, table) for written in match.group("first", "second")):
        spoken = [year(table, number.value) for number in numbers]
    else:
        use = "range" if second is not None and not any(n.decimals for n in numbers) else None
        last = _measured(table, numbers[-1], code, match["scale"], unit, use)
        spoken = [_first_of_range(table, number, code, unit) for number in numbers[:-1]]
        spoken.append(last)
    words = spoken[0] if len(spoken) == 1 else _range(table, spoken, match)
    words += _final_stop(match, unit or match["scale"] or "")
    if match["sign"]:
        sign = table.words[_SIGNS[match["sign"][0]]]
        words = f"{sign}{table.space}{words}"
    return words


def _is_year(written: str | None, table: Language) -> bool:
    if written is None:
        return True
    is_four = len(written) == 4 and written.isdigit()
    return "year" in table.rules and is_four and int(written) in _YEARS


def _measured(
    table: Language,
    number: Number,
    code: str | None,
    scale: str | None,
    unit: str | None,
    use: str | None = None,
) -> str:
    """A number with its unit; `use` for one at the end of a range, where that has rules."""
    if not _has_range_forms(table):
        use = None
    if code is not None and code in table.currencies:
        return _money(table, number, code, scale)
    words = spoken_number(table, number, use or "number")
    if scale:
        words = counted(table, number, table.scales[scale])
    if code is not None:
        return f"{words} {' '.join(code)}"
    if unit is None:
        return words
    if scale:
        what = form(table.units[unit], table.plural, _MILLION)
        return what.replace("{}", words) if "{}" in what else f"{words} {what}"
    return counted(table, number, table.units[unit], use)


def _has_range_forms(table: Language) -> bool:
    return "range" in table.rules or any(fix.use == "range" for fix in table.fixes)


def _first_of_range(table: Language, number: Number, code: str | None, unit: str | None) -> str:
    """In the gender of what is counted, or in the case of the range."""
    noun = (
        table.currencies[code].unit
        if code and code in table.currencies
        else table.units.get(unit or "")
    )
    gender = noun.gender if noun is not None and not number.decimals else ""
    return spoken_number(table, number, "range" if _has_range_forms(table) else gender or "number")


def _range(table: Language, spoken: list[str], match: re.Match[str]) -> str:
    """With the words of a range, the first of which may stand there already."""
    words = table.words["range"].format(first=spoken[0], second=spoken[1])
    lead = words.split(" ")[0]
    before = match.string[: match.start()][-len(lead) - 2 :].split()
    return words[len(lead) + 1 :] if before[-1:] == [lead] else words


def _final_stop(match: re.Match[str], suffix: str) -> str:
    """The full stop of a sentence that an abbreviation at its end has taken."""
    rest = match.string[match.end() : match.end() + 1]
    return "." if suffix.endswith(".") and rest in ("", "\n") else ""


def _money(table: Language, number: Number, code: str, scale: str | None) -> str:
    currency = table.currencies[code]
    round_millions = number.value and not number.value % _MILLION and not number.decimals
    if scale or (round_millions and table.words["of"]):
        many = form(currency.unit, table.plural, _MILLION)
        words = counted(table, number, table.scales[scale]) if scale else ""
        words = words or spoken_number(table, number)
        of = table.words["of"]
        if of == "d'":
            of = "d'" if many[0] in "aeiouhé" else "de"
        joint = of if of.endswith("'") else f"{of} " if of else ""
        if "{}" in many:
            return many.replace("{}", words)
        return f"{words}{table.space}{joint}{many}"
    if currency.cent is None or len(number.decimals) != 2:
        return counted(table, number, currency.unit)
    whole, cents = Number(number.whole), Number(str(int(number.decimals)))
    if not cents.value:
        return counted(table, whole, currency.unit)
    spoken = counted(table, cents, currency.cent)
    if not whole.value:
        return spoken
    return f"{counted(table, whole, currency.unit)}{table.words['and_cents']}{spoken}"


def _lone_number(match: re.Match[str], table: Language) -> str | None:
    number = parse_number(match.group(), table)
    return None if number is None else spoken_number(table, number)


# 2.3.1, 192.168.0.1: numbers with a mark between them.
_VERSION = re.compile(r"(?<![\d.,])\d+(?:\.\d+){2,}(?![\d,])")


def _version(match: re.Match[str], table: Language) -> str | None:
    if parse_number(match.group(), table) is not None:
        return None
    parts = [spoken_number(table, Number(part)) for part in match.group().split(".")]
    return f"{table.space}{table.words['dot']}{table.space}".join(parts)


_FRACTION = re.compile(
    r"(?<![\d.,/])(?:(?P<whole>\d{1,3})\s?)?(?P<sign>[½⅓⅔¼¾])"
    r"|(?<![\d.,/])(?P<top>\d{1,3})[/⁄](?P<bottom>\d{1,3})(?![\d/])"
)


def _fraction(match: re.Match[str], table: Language) -> str | None:
    sign = match["sign"]
    top, bottom = _FRACTIONS[sign] if sign else (int(match["top"]), int(match["bottom"]))
    words = _fraction_words(table, top, bottom)
    if match["whole"]:
        gap = table.space
        words = f"{cardinal(table, int(match['whole']))}{gap}{table.words['and']}{gap}{words}"
    return words


def _fraction_words(table: Language, top: int, bottom: int) -> str:
    named = table.words.get(f"{top}/{bottom}")
    if named:
        return named
    parts = {"top": cardinal(table, top), "bottom": cardinal(table, bottom)}
    return table.words["over"].format(**parts)


_DECADE = re.compile(r"(?<![\d.,])(?:(?P<century>1[1-9]|20)|['’])(?P<tens>[1-9]0)['’]?s(?!\w)")
_RATIO = re.compile(r"(?<![\d.,:])(\d{1,3})[:：](\d{1,3})(?![\d:：]|[.,]\d)")
_RATIO_WORDS = {"en": " to ", "zh": "比", "ja": "対", "ko": " 대 ", "de": " zu ", "fr": " à "}


def _decade(match: re.Match[str], table: Language) -> str | None:
    """`1990s`, `'80s`."""
    if table.code != "en":
        return None
    tens = cardinal(table, int(match["tens"]))
    plural = f"{tens[:-1]}ies" if tens.endswith("y") else f"{tens}s"
    return f"{cardinal(table, int(match['century']))} {plural}" if match["century"] else plural


def _ratio(match: re.Match[str], table: Language) -> str | None:
    """Of what is no time of day."""
    to = _RATIO_WORDS.get(table.code)
    return to and f"{cardinal(table, int(match[1]))}{to}{cardinal(table, int(match[2]))}"


_CHINESE_PAIR = re.compile(f"(?<![\\d.,第])2(?=[{_CHINESE_COUNTERS}])(?!年|月)")


def _chinese_pair(match: re.Match[str], table: Language) -> str | None:
    return "两" if table.code == "zh" else None


_KOREAN_COUNT = re.compile(rf"(?<![\d.,])(?<![~～–-])(\d{{1,2}})(?=\s?(?:{_KOREAN_COUNTERS}))")


def _korean_count(match: re.Match[str], table: Language) -> str | None:
    return cardinal(table, int(match[1]), "native") if table.code == "ko" else None


_ORDINAL = re.compile(
    r"(?<![\d.,])(?P<number>\d{1,4})(?P<mark>st|nd|rd|th|er|re|ère|ème|e|\.?[ºª°]|[-‑](?:й|я|е|го|му|м)"
    r"|:[ae]|-a|-o)(?![\w°])"
)
# The ending that is written after the digits, in each language, and the rule that it calls for.
_ORDINAL_MARKS = {
    "en": dict.fromkeys(("st", "nd", "rd", "th"), "ordinal"),
    "fr": dict.fromkeys(("er", "e", "ème"), "ordinal") | dict.fromkeys(("re", "ère"), "ordinal_f"),
    "es": {"º": "ordinal", "ª": "ordinal_f"},
    "it": {"º": "ordinal", "ª": "ordinal_f", "°": "ordinal"},
    "pt": {"º": "ordinal", "ª": "ordinal_f"},
    "ru": {"й": "ordinal", "я": "ordinal_f", "е": "ordinal_n", "го": "day"},
    "sv": {"a": "ordinal", "e": "ordinal"},
}


def _ordinal(match: re.Match[str], table: Language) -> str | None:
    mark = match["mark"].lstrip(".-‑:")
    use = _ORDINAL_MARKS.get(table.code, {}).get(mark)
    return None if use is None else ordinal(table, int(match["number"]), use)


_GERMAN_ORDINAL = re.compile(
    r"(?i:\b(?P<article>am|dem|den|vom|zum|im|beim|des|der|die|das|jede[rs]?))\s"
    r"(?P<number>\d{1,2})\.(?=\s[A-ZÄÖÜ])"
)


def _german_ordinal(match: re.Match[str], table: Language) -> str | None:
    if table.code != "de":
        return None
    plain = match["article"].casefold() in ("der", "die", "das", "jede")
    use = "ordinal" if plain else "day"
    return f"{match['article']} {ordinal(table, int(match['number']), use)}"


_HUNGARIAN_ORDINAL = re.compile(r"(?<![\d.,])(\d{1,3})\.(?=\s[a-záéíóöőúüű])")


def _hungarian_ordinal(match: re.Match[str], table: Language) -> str | None:
    return ordinal(table, int(match[1])) if table.code == "hu" else None
