"""A user's own words: how each is spoken."""

import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from mosstalk.errors import UsageError
from mosstalk.text.normalise.language import Language
from mosstalk.text.normalise.reading import Reading

_MAX_BYTES = 4 * 2**20


@dataclass(frozen=True)
class Dictionary:
    """Words and signs, and what is said in their place. A word in lower case stands for its other
    spellings too; one with a capital only for itself.

    Raises:
        UsageError: an entry that cannot be used.
    """

    entries: Mapping[str, str]

    def __post_init__(self) -> None:
        for word, spoken in self.entries.items():
            if not word.strip():
                raise UsageError("the dictionary has an entry without a word; give it one")
            if word != spoken and self._pattern.search(spoken):
                raise UsageError(
                    f"the dictionary says {spoken!r} for {word!r}, which holds a word of the "
                    "dictionary again; spell it otherwise"
                )

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        longest_first = sorted(self.entries, key=len, reverse=True)
        return re.compile("|".join(map(_whole, longest_first)) or "(?!)")

    @cached_property
    def _folded(self) -> Mapping[str, str]:
        return {word.lower(): spoken for word, spoken in self.entries.items() if word.islower()}

    def read(self, reading: Reading) -> None:
        """Put what is spoken in the place of the words."""
        reading.rewrite(self._pattern, self._spoken)

    def _spoken(self, match: re.Match[str], table: Language) -> str:
        word = match.group()
        exact = self.entries.get(word)
        return self._folded[word.lower()] if exact is None else exact


def _whole(word: str) -> str:
    """Matches the word where it stands alone; Chinese and Japanese words stand anywhere."""
    pattern = re.escape(word)
    if word.islower():
        pattern = f"(?i:{pattern})"
    if word[0].isascii() and word[0].isalnum():
        pattern = rf"(?<![A-Za-z0-9_\u00c0-\u024f]){pattern}"
    elif word[0].isalpha() and not "\u3040" <= word[0] <= "\ud7af":
        pattern = rf"(?<!\w){pattern}"
    if word[-1].isascii() and word[-1].isalnum():
        pattern = rf"{pattern}(?![A-Za-z0-9_\u00c0-\u024f])"
    elif word[-1].isalpha() and not "\u3040" <= word[-1] <= "\ud7af":
        pattern = rf"{pattern}(?!\w)"
    return pattern


def read_dictionary(path: str | Path) -> Dictionary:
    """A dictionary from a TOML or JSON file: one table of words and what is said for each.

    Raises UsageError for a file that cannot be read, or is of another form.
    """
    path = Path(path)
    if path.suffix.lower() not in (".toml", ".json"):
        raise UsageError(f"{path}: a dictionary is a .toml or a .json file; rename or convert it")
    try:
        data = path.read_bytes()
        if len(data) > _MAX_BYTES:
            raise UsageError(f"{path}: longer than {_MAX_BYTES >> 20} MiB; divide the dictionary")
        text = data.decode("utf-8-sig")
        entries = tomllib.loads(text) if path.suffix.lower() == ".toml" else json.loads(text)
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}; check --dictionary") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not text in UTF-8; save it as UTF-8") from error
    except ValueError as error:
        raise UsageError(f"{path}: {error}; mend the file") from error
    if not isinstance(entries, dict):
        raise UsageError(f'{path}: not a table of words; write one WORD = "SPOKEN" a line')
    for word, spoken in entries.items():
        if not isinstance(spoken, str):
            raise UsageError(f"{path}: {word!r} is {spoken!r}, but must be a text in quotes")
    return Dictionary(entries)
