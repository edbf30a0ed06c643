"""Dates and times of day."""

import re
from functools import cache

from mosstalk.text.normalise.language import Language
from mosstalk.text.normalise.language import language as table_of
from mosstalk.text.normalise.numbers import cardinal, digits, ordinal, year
from mosstalk.text.normalise.reading import Reading

_GAP = "[ \u00a0\u202f]"
_ISO = re.compile(
    r"(?<![\d./-])(?P<year>\d{4})(?P<mark>[-/.])"
    + _GAP
    + r"?(?P<month>\d{1,2})(?P=mark)"
    + _GAP
    + r"?(?P<day>\d{1,2})"
    r"(?:T(?=\d\d:)|(?P<stop>(?<=\.\d\d)\.|(?<=\. \d\d)\.)|(?![\d/-]|\.\d))"
)
_NUMERIC = re.compile(
    r"(?<![\d./-])(?P<first>\d{1,2})(?P<mark>[./-])"
    + _GAP
    + r"?(?P<second>\d{1,2})(?P=mark)"
    + _GAP
    + r"?(?P<year>\d{4}|(?<=[./])\d\d)(?![\d/-]|\.\d)"
)
_YEAR_WORD = re.compile(r"(?<!\d)(?P<year>\d{4})(?=年(?!间|前|后|後|間|以))")
_KOREAN_MONTH = re.compile(r"(?<!\d)(?P<month>6|10)월")
_RUSSIAN_YEAR = re.compile(
    rf"(?<![\d.,])(?P<year>\d{{4}}){_GAP}(?P<word>году|года|годом|год|г\.)(?!\w)"
)
_POLISH_YEAR = re.compile(rf"(?<![\d.,])(?P<year>\d{{4}}){_GAP}(?:roku|r\.)(?!\w)")
_POLISH_TENS = (
    "dwudziestego",
    "trzydziestego",
    "czterdziestego",
    "pięćdziesiątego",
    "sześćdziesiątego",
    "siedemdziesiątego",
    "osiemdziesiątego",
    "dziewięćdziesiątego",
)
_TIME = re.compile(
    r"(?<![\d.:])(?P<hour>[01]?\d|2[0-4]):(?P<minute>[0-5]\d)(?::(?P<second>[0-5]\d))?"
    rf"(?:{_GAP}?(?P<half>[aApP]\.?[mM]\b\.?))?(?P<word>{_GAP}?(?:Uhr|óra|h|год)\b)?(?![:\d])"
)
_HOUR_ONLY = re.compile(rf"(?<![\d.:,])(?P<hour>1[0-2]|[1-9]){_GAP}?(?P<half>[aApP]\.?[mM]\b\.?)")
_H_TIME = re.compile(
    rf"(?<![\d.:,])(?P<hour>[01]?\d|2[0-4]){_GAP}?[hH]{_GAP}?(?P<minute>[0-5]\d)\b"
)
_DOT_TIME = re.compile(
    rf"(?P<lead>\b(?:kl\.|kl|klokken|klockan|ore|godz\.|klo|um|gegen|ab|bis){_GAP})"
    r"(?P<hour>[01]?\d|2[0-4])\.(?P<minute>[0-5]\d)(?![\d.])(?P<word> Uhr)?"
    r"|(?<![\d.])(?P<hour2>[01]?\d|2[0-4])\.(?P<minute2>[0-5]\d)(?P<word2> Uhr)\b"
)
_KOREAN_HOUR = re.compile(r"(?<![\d.,])(?P<hour>1[0-2]|[1-9])(?=\s?시(?!간))")
_GERMAN_HOUR = re.compile(r"(?<![\d.,:])(?P<hour>[01]?\d|2[0-4])(?= Uhr\b)")
_NEVER = re.compile("(?!)")
_SHORT_MONTHS = {
    "en": "Jan Feb Mar Apr May Jun Jul Aug Sept|Sep Oct Nov Dec",
    "de": "Jan Feb Mär Apr Mai Jun Jul Aug Sept|Sep Okt Nov Dez",
    "fr": "janv févr mars avr mai juin juil août sept oct nov déc",
    "es": "ene feb mar abr may jun jul ago sept|sep oct nov dic",
}


_DAY_MONTH = re.compile(rf"(?<![\d.,])(?P<day>\d{{1,2}})\.{_GAP}?(?P<month>\d{{1,2}})\.(?!\d)")


def read_dates(reading: Reading) -> None:
    """Put words in the place of dates, and of times of day."""
    reading.rewrite(_ISO, _iso)
    reading.rewrite(_NUMERIC, _numeric)
    reading.rewrite(lambda table: _named_patterns(table.code)[1], _named)
    reading.rewrite(lambda table: _named_patterns(table.code)[0], _named)
    reading.rewrite(_DAY_MONTH, _day_month)
    reading.rewrite(_YEAR_WORD, _year_word)
    reading.rewrite(_RUSSIAN_YEAR, _russian_year)
    reading.rewrite(_POLISH_YEAR, _polish_year_word)
    reading.rewrite(_KOREAN_MONTH, _korean_month)
    reading.rewrite(_TIME, _time)
    reading.rewrite(_HOUR_ONLY, _hour_only)
    reading.rewrite(_H_TIME, _h_time)
    reading.rewrite(_DOT_TIME, _dot_time)
    reading.rewrite(_KOREAN_HOUR, _korean_hour)
    reading.rewrite(_GERMAN_HOUR, _german_hour)


def _iso(match: re.Match[str], table: Language) -> str | None:
    spoken = _date(table, int(match["day"]), int(match["month"]), match["year"], _before(match))
    return f"{spoken}, " if spoken and match.group()[-1] == "T" else spoken


def _numeric(match: re.Match[str], table: Language) -> str | None:
    first, second, written = int(match["first"]), int(match["second"]), match["year"]
    if len(written) == 2:
        written = f"{'19' if int(written) >= 70 else '20'}{written}"
    month_first = table.date["order"] == "mdy"
    day, month = (second, first) if month_first else (first, second)
    if month > 12:
        day, month = month, day
    return _date(table, day, month, written, _before(match))


def _date(table: Language, day: int, month: int, written_year: str, before: str) -> str | None:
    if not (1 <= day <= 31 and 1 <= month <= 12):
        return None
    parts = {
        "day": _day(table, day, before),
        "month": table.date["months"][month - 1],
        "year": _year(table, written_year),
    }
    return str(table.date["full"]).format(**parts)


def _before(match: re.Match[str]) -> str:
    """The word before a date, in lower case; "" at the start of a line or after a mark."""
    words = re.search(
        r"([^\W\d_]+)[ \u00a0]\Z", match.string[max(0, match.start() - 20) : match.start()]
    )
    return words[1].lower() if words else ""


def _day(table: Language, day: int, before: str) -> str:
    listed: list[str] = table.date["days"]
    if day <= len(listed):
        return listed[day - 1]
    use = "day"
    if table.code == "de":
        use = "ordinal" if before in ("der", "das", "die") else "day" if before else "day_r"
    elif before and before != "на" and "day_in" in table.rules:
        use = "day_in"
    return ordinal(table, day, use) if "day" in table.rules else cardinal(table, day)


def _day_month(match: re.Match[str], table: Language) -> str | None:
    """`24.12.`, where dates are written so."""
    day, month = int(match["day"]), int(match["month"])
    if table.code not in ("de", "cs", "da", "pl") or not (1 <= day <= 31 and 1 <= month <= 12):
        return None
    parts = {"day": _day(table, day, _before(match)), "month": table.date["months"][month - 1]}
    spoken = str(table.date["short"]).format(**parts)
    rest = match.string[match.end() : match.end() + 1]
    return f"{spoken}." if rest in ("", "\n") else spoken


def _year(table: Language, written: str) -> str:
    if table.code == "zh":
        return digits(table, written)
    if table.code == "pl":
        return polish_year(table, int(written))
    if "date_year" in table.rules:
        return cardinal(table, int(written), "date_year")
    return year(table, int(written))


@cache
def _months(code: str) -> dict[str, int]:
    """From a month's name as written, casefolded, to its number."""
    names: list[str] = table_of(code).date["months"]
    months = {name.lower(): i for i, name in enumerate(names, 1)}
    for i, short in enumerate(_SHORT_MONTHS.get(code, "").split(), 1):
        months |= dict.fromkeys(short.lower().split("|"), i)
    return months


@cache
def _named_patterns(code: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """With the day before the month's name, and after it."""
    table = table_of(code)
    if not table.spaced or code == "ko":
        return _NEVER, _NEVER
    whole = "|".join(map(re.escape, table.date["months"]))
    short = _SHORT_MONTHS.get(code, "(?!)").replace(" ", "|")
    month = rf"(?i:(?P<month>{whole})(?!\w)|(?P<short>{short})(?!\w)(?:\.(?=[ ,]))?)"
    of = table.date["of"]
    joint = rf"(?:{_GAP}(?:{of}))?{_GAP}" if of else _GAP
    year_after = rf"(?:,?{joint}(?P<year>\d{{4}})(?!\d)(?P<word>{_GAP}?(?:г\.|года|r\.|roku))?)?"
    day = r"(?P<day>\d{1,2})(?:st|nd|rd|th|er|\.|º|°|ª)?"
    day_first = rf"(?<![\d.,]){day}{joint}{month}{year_after}"
    late = r"(?P<day>\d{1,2})(?:st|nd|rd|th|\.|-[áé]n|-[aei]+)?(?![\d:]|[.,]\d)"
    before = rf"(?:(?P<year>\d{{4}})\.?{_GAP})?" if table.date["order"] == "ymd" else ""
    after = "" if before else year_after
    month_first = rf"(?<![\w.,]){before}{month}{_GAP}{late}{after}"
    takes_late = table.date["order"] in ("mdy", "ymd")
    return re.compile(day_first), re.compile(month_first) if takes_late else _NEVER


def _named(match: re.Match[str], table: Language) -> str | None:
    month = _months(table.code)[(match["month"] or match["short"]).lower()]
    day = int(match["day"])
    if not 1 <= day <= 31:
        return None
    if match["year"]:
        return _date(table, day, month, match["year"], _before(match))
    parts = {"day": _day(table, day, _before(match)), "month": table.date["months"][month - 1]}
    return str(table.date["short"]).format(**parts)


def _year_word(match: re.Match[str], table: Language) -> str | None:
    return digits(table, match["year"]) if table.code == "zh" else None


def polish_year(table: Language, number: int) -> str:
    """In the genitive: the last two figures are an ordinal."""
    hundreds, rest = number - number % 100, number % 100
    if number == 2000:
        return "dwutysięcznego"
    if not rest:
        return cardinal(table, number)
    listed: list[str] = table.date["days"]
    if rest <= 20:
        last = listed[rest - 1]
    else:
        tens = _POLISH_TENS[rest // 10 - 2]
        last = f"{tens} {listed[rest % 10 - 1]}" if rest % 10 else tens
    return f"{cardinal(table, hundreds)} {last}" if hundreds else last


def _polish_year_word(match: re.Match[str], table: Language) -> str | None:
    """`w 1984 roku` is in the locative, others are in the genitive."""
    if table.code != "pl":
        return None
    words = polish_year(table, int(match["year"]))
    if _before(match) in ("w", "o", "po"):
        words = re.sub("iego\\b", "im", words)
        words = re.sub("ego\\b", "ym", words)
    return f"{words} roku"


def _russian_year(match: re.Match[str], table: Language) -> str | None:
    if table.code != "ru":
        return None
    uses = {"году": "year_in", "года": "date_year", "г.": "date_year", "годом": "year_by"}
    word = match["word"].replace("г.", "года")
    return f"{cardinal(table, int(match['year']), uses.get(match['word'], 'ordinal_m'))} {word}"


def _korean_month(match: re.Match[str], table: Language) -> str | None:
    return {"6": "유월", "10": "시월"}[match["month"]] if table.code == "ko" else None


def _time(match: re.Match[str], table: Language) -> str | None:
    hour, minute = int(match["hour"]), int(match["minute"])
    second = None if match["second"] is None else int(match["second"])
    spoken = spoken_time(table, hour, minute, second, match["half"])
    word = (match["word"] or "").strip()
    return spoken if word in ("", "Uhr", "óra", "h") else None


def spoken_time(
    table: Language, hour: int, minute: int, second: int | None = None, half: str | None = None
) -> str:
    """A time of day; `half` is am or pm as written, or None."""
    parts = {"hour": _hour(table, hour), "minute": _minute(table, minute)}
    if second is not None:
        parts["second"] = _minute(table, second)
        spoken = table.time["second"].format(**parts)
    elif minute:
        spoken = table.time["minute"].format(**parts)
    elif half and "half_hour" in table.time:
        spoken = table.time["half_hour"].format(**parts)
    else:
        spoken = table.time["hour"].format(**parts)
    if half:
        which = table.time["am" if half[0] in "aA" else "pm"]
        spoken = which.format(spoken)
    return spoken


def _hour(table: Language, hour: int) -> str:
    listed = table.time.get("hours", "").split("|")
    if 0 < hour <= len(listed) and listed[0]:
        return listed[hour - 1]
    return cardinal(table, hour, table.time["gender"])


def _minute(table: Language, minute: int) -> str:
    zero = table.time["zero"]
    words = cardinal(table, minute, table.time["minute_gender"])
    return f"{zero}{table.space}{words}" if zero and 0 < minute < 10 else words


def _hour_only(match: re.Match[str], table: Language) -> str | None:
    return spoken_time(table, int(match["hour"]), 0, None, match["half"])


def _h_time(match: re.Match[str], table: Language) -> str | None:
    if table.code not in ("fr", "pt", "es", "it"):
        return None
    return spoken_time(table, int(match["hour"]), int(match["minute"]))


def _dot_time(match: re.Match[str], table: Language) -> str | None:
    lead = match["lead"] or ""
    german = table.code == "de"
    if not german and table.code not in ("da", "sv", "it", "pl"):
        return None
    if german and not (match["word"] or match["word2"]):
        return None
    hour, minute = match["hour"] or match["hour2"], match["minute"] or match["minute2"]
    return lead + spoken_time(table, int(hour), int(minute))


def _korean_hour(match: re.Match[str], table: Language) -> str | None:
    return cardinal(table, int(match["hour"]), "native") if table.code == "ko" else None


def _german_hour(match: re.Match[str], table: Language) -> str | None:
    return cardinal(table, int(match["hour"]), "m") if table.code == "de" else None
