"""What is spelt out: web addresses, e-mail addresses, phone numbers, paths and handles."""

import re

from mosstalk.text.normalise.language import Language
from mosstalk.text.normalise.numbers import cardinal, digits
from mosstalk.text.normalise.reading import Reading

_WORD = "[A-Za-z0-9]"
_EMAIL = re.compile(
    r"(?<![\w.+-])(?:mailto:)?([A-Za-z0-9][\w.+-]{0,63})@([A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+)(?![\w@])"
)
_TOP = (
    "com|org|net|edu|gov|io|ai|dev|co|info|app|me|tv|cn|jp|kr|de|fr|es|it|pt|br|pl|cz|dk|se|hu|gr|"
    "il|ru|tr|ir|uk|us|eu|ch|at|be|nl"
)
_URL = re.compile(
    r"(?:(?P<scheme>https?|ftp)://|(?=www\.))(?P<long>[^\s<>\"'“”«»（）()\[\]{}，。！？；、]+)"
    rf"|(?<![\w@./-])(?P<short>(?:[A-Za-z0-9-]+\.)+(?:{_TOP})(?:/[^\s<>\"'“”«»（）()\[\]，。！？；、]*)?)(?![\w@.-]*@|\w)"
)
_TRAILING = ".,;:!?…"
_PHONE = re.compile(
    r"(?<![A-Za-z0-9_.,/:-])(?P<plus>\+)?"
    r"(?P<number>(?:\(\d{2,4}\)\s?)?\d{1,4}(?:[-‑ .]\(?\d{2,8}\)?){1,5})"
    r"(?![A-Za-z0-9_/:]|[-.,]\d)"
)
_BARE_PHONE = re.compile(
    r"(?<![A-Za-z0-9_.,/:+-])(?P<number>\+\d{7,15}|1[3-9]\d{9}|0\d{8,10})"
    r"(?![A-Za-z0-9_/:]|[-.,]\d)"
)
_GROUPED = re.compile(r"\d{1,3}(?:[ .]\d{3})+")
_HANDLE = re.compile(r"(?<![\w@/.])([@#])(?=[^\W\d_])")
_HASHTAG = re.compile(r"(?<![\w&])#(?=\d)")
_SIGNS = {
    ".": "dot",
    "/": "slash",
    "-": "dash",
    "_": "underscore",
    "@": "at",
    ":": "colon",
    "?": "question",
    "=": "equals",
    "&": "and",
    "#": "hash",
    "+": "plus",
    "%": "percent",
    "~": "tilde",
}


def read_addresses(reading: Reading) -> None:
    """Put words in the place of addresses and handles."""
    reading.rewrite(_EMAIL, lambda match, table: spell_address(match[1] + "@" + match[2], table))
    reading.rewrite(_URL, _url)
    reading.rewrite(_HANDLE, lambda match, table: _sign(match[1], table) + table.space)
    reading.rewrite(_HASHTAG, lambda match, table: table.words["number"] + table.space)


def read_phones(reading: Reading) -> None:
    """Put digits in the place of phone numbers; dates, which look alike, are gone already."""
    reading.rewrite(_BARE_PHONE, _phone)
    reading.rewrite(_PHONE, _phone)


def _sign(char: str, table: Language) -> str:
    return table.words[_SIGNS[char]]


def _url(match: re.Match[str], table: Language) -> str | None:
    address = match["long"] or match["short"]
    kept = address.rstrip(_TRAILING)
    tail = address[len(kept) :]
    kept = kept.rstrip("/")
    if not kept:
        return None
    return spell_address(kept, table) + tail


def spell_address(address: str, table: Language) -> str:
    """Words of an address, its signs by name; digits one by one."""
    words = []
    for part in re.findall(r"\d+|[^\W\d_]+|.", address):
        if part.isdecimal():
            words.append(
                digits(table, part) if len(part) > 2 or part[0] == "0" else _small(part, table)
            )
        elif part in _SIGNS:
            words.append(_sign(part, table))
        elif part.isalpha():
            words.append(part)
    return " ".join(words)


def _small(part: str, table: Language) -> str:
    return cardinal(table, int(part))


def _phone(match: re.Match[str], table: Language) -> str | None:
    written = match["number"]
    groups = re.findall(r"\d+", written)
    count = sum(map(len, groups))
    plus = written.startswith("+") or bool(match.groupdict().get("plus"))
    if not 7 <= count <= 15:
        return None
    if not plus and (_GROUPED.fullmatch(written) or "." in written and len(groups) < 3):
        return None
    if not plus and len(groups) > 1 and not _looks_like_phone(groups, written, table):
        return None
    spoken = [digits(table, group) for group in groups]
    between = ", " if table.spaced else "，"
    return (table.words["plus"] + table.space if plus else "") + between.join(spoken)


def _looks_like_phone(groups: list[str], written: str, table: Language) -> bool:
    """Not a range, a date or a sum: several groups with one kind of mark, or a leading zero."""
    if "." in written and len(groups) == 4 and all(int(group) < 256 for group in groups):
        return False  # an address of a computer
    return (
        len(groups) >= 3
        or groups[0][0] == "0"
        or (table.code == "en" and len(groups) == 2 and len(groups[0]) == 3 and len(groups[1]) == 4)
    )
