"""Where a text may be divided: sentence ends, clause ends, and the marks that are neither.

The sets of marks are those of spec 4.6. A full stop inside a number, an address or an
abbreviation, a comma in `1,000` and a colon in `12:30` are no boundaries.
"""

import re

_SENTENCE_MARKS = frozenset(".!?。！？；;")
_CLAUSE_MARKS = frozenset(",，、；;：:")
_CLOSERS = frozenset("\"'”’)]}）】》」』")
_ASCII_MARKS = frozenset(".!?;,:")
_WORD_SYMBOLS = frozenset("/\\_%&=#@+")  # after a mark: the middle of an address or a path

_CJK = re.compile("[\u4e00-\u9fff\u3400-\u4dbf\u3040-\u30ff\uac00-\ud7af]")
_UNSPACED = re.compile(
    "[\u4e00-\u9fff\u3400-\u4dbf\u3040-\u30ff\u3001-\u303f\uff01-\uff0f\uff1a-\uff20\uff3b-\uff65]"
)

_ABBREVIATION_REACH = 16  # characters looked at before a full stop
_LAST_WORD = re.compile(r"[^\W_][\w.]*\Z")
_DOTTED_LETTERS = re.compile(r"(?:[^\W\d_]\.)*[^\W\d_]")
_ABBREVIATION = re.compile(
    "mr|mrs|ms|mx|dr|prof|st|jr|sra?|gen|col|maj|capt|lt|sgt|cmdr|rev|hon|sen|gov|pres|mt|ft"
    "|vs|etc|cf|viz|approx|dept|est|inc|ltd|co|corp|bros|ave|blvd"
    "|jan|feb|apr|aug|sept|oct|nov|bzw|usw|vgl|ca|nr|mme|mlle"
)
_BEFORE_NUMBER = re.compile("nos?|figs?|vol|pp|ch|sec|art|eq|ver")


def has_cjk(text: str) -> bool:
    """Whether `text` holds a Chinese, Japanese or Korean character."""
    return _CJK.search(text) is not None


def joins_without_space(left: str, right: str) -> bool:
    """Whether two characters of a script without word spaces meet here."""
    return _UNSPACED.match(left) is not None or _UNSPACED.match(right) is not None


def ends_sentence(char: str) -> bool:
    """Whether `char` is a sentence mark."""
    return char in _SENTENCE_MARKS


def sentence_ends(text: str) -> list[int]:
    """Positions in `text` just after each sentence, its closing quotes and brackets included.

    A run of marks ("?!", "...") ends one sentence. The end of the text is not listed unless a
    mark stands there.
    """
    ends, position = [], 0
    while position < len(text):
        if not _is_boundary(text, position, _SENTENCE_MARKS):
            position += 1
            continue
        while position < len(text) and text[position] in _SENTENCE_MARKS:
            position += 1
        while position < len(text) and text[position] in _CLOSERS:
            position += 1
        ends.append(position)
    return ends


def clause_ends(text: str) -> list[int]:
    """Positions in `text` just after each clause mark."""
    return [i + 1 for i in range(len(text)) if _is_boundary(text, i, _CLAUSE_MARKS)]


def cut_after(text: str, position: int) -> bool:
    """Whether `text` may be cut after the character at `position`: a space or any mark."""
    return text[position].isspace() or _is_boundary(text, position, _SENTENCE_MARKS | _CLAUSE_MARKS)


def _is_boundary(text: str, position: int, marks: frozenset[str]) -> bool:
    char = text[position]
    if char not in marks:
        return False
    before = text[position - 1] if position else ""
    after = text[position + 1 : position + 2]
    if char in _ASCII_MARKS and _continues_word(after) and not has_cjk(before):
        return before in _SENTENCE_MARKS  # "3.14", "12:30", "a.com/", ".env", but not "so...then"
    return char != "." or not _is_abbreviation(text, position)


def _continues_word(char: str) -> bool:
    return (char.isalnum() and not has_cjk(char)) or char in _WORD_SYMBOLS


def _is_abbreviation(text: str, position: int) -> bool:
    """Whether the full stop at `position`, not the text's last, belongs to an abbreviation."""
    rest = text[position + 1 : position + 3].lstrip()
    word = _LAST_WORD.search(text, max(0, position - _ABBREVIATION_REACH), position)
    if not rest or word is None or has_cjk(word.group()):
        return False
    if _DOTTED_LETTERS.fullmatch(word.group()):
        return not ends_sentence(rest[0]) and rest[0] not in _CLOSERS
    folded = word.group().lower()
    numbers = _BEFORE_NUMBER.fullmatch(folded) is not None and rest[0].isdigit()
    return numbers or _ABBREVIATION.fullmatch(folded) is not None
