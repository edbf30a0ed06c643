"""Cleaning of text that comes from outside, before it may reach a prompt."""

import unicodedata
from collections.abc import Callable, Iterable

from mosstalk.errors import UsageError

_MAX_NAMED = 4


def clean(
    text: str, strip_specials: Callable[[str], tuple[str, list[str]]]
) -> tuple[str, tuple[str, ...]]:
    """The text without control characters and special tokens, and a warning for each kind.

    Removed are all control, format, private and unassigned characters (Unicode category C), then
    what `strip_specials` takes out: it returns the text without special tokens, and those. Line
    ends become newlines; other control characters that count as white space become spaces.
    """
    kept, controls = _strip_controls(text.replace("\r\n", "\n").replace("\r", "\n"))
    kept, specials = strip_specials(kept)
    warnings = []
    if controls:
        codes = (f"U+{ord(char):04X}" for char in controls)
        warnings.append(f"removed control characters from the text: {_name_some(codes)}")
    if specials:
        warnings.append(f"removed special tokens from the text: {_name_some(specials)}")
    return kept, tuple(warnings)


def clean_controls(text: str) -> tuple[str, tuple[str, ...]]:
    """`clean` for a text that goes to no model, which has no special tokens."""
    return clean(text, lambda kept: (kept, []))


def check_encodable(text: str) -> None:
    """Raises UsageError where the text holds half of a surrogate pair."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise UsageError(
            f"the text holds a broken character at position {error.start}; remove it"
        ) from error


def _strip_controls(text: str) -> tuple[str, list[str]]:
    kept, removed = [], []
    for char in text:
        if char in "\n\t" or not unicodedata.category(char).startswith("C"):
            kept.append(char)
        elif char.isspace():
            kept.append(" ")
        else:
            removed.append(char)
    return "".join(kept), removed


def _name_some(names: Iterable[str]) -> str:
    distinct = list(dict.fromkeys(names))
    more = len(distinct) - _MAX_NAMED
    return ", ".join(distinct[:_MAX_NAMED]) + (f" and {more} more" if more > 0 else "")
