"""A text on its way to words: rules rewrite it one after another."""

import re
from collections.abc import Callable

from mosstalk.text.boundaries import joins_without_space
from mosstalk.text.normalise.detection import LanguageMap
from mosstalk.text.normalise.language import Language, language
from mosstalk.text.normalise.rewriting import Edit, Rewriting

# What a match is read as; None: the rule does not apply to it.
Speak = Callable[[re.Match[str], Language], str | None]
Pattern = re.Pattern[str] | Callable[[Language], re.Pattern[str]]


def neighbours(match: re.Match[str]) -> tuple[str, str]:
    """The characters before and after a match; "" where the text ends."""
    start, end, text = match.start(), match.end(), match.string
    return text[max(0, start - 1) : start], text[end : end + 1]


class Reading:
    """The text as far as it is rewritten, and what nobody can say.

    Args:
        source: the text as it was given.
        code: code of its language, if known.
    """

    def __init__(self, source: str, code: str | None) -> None:
        self.rewriting = Rewriting.of(source)
        self.languages = LanguageMap(source, code)
        self.unspoken: list[str] = []
        self.warnings: list[str] = []
        self.is_counting = False  # words that have been made of numbers stay apart from others

    @property
    def text(self) -> str:
        return self.rewriting.text

    def rewrite(self, pattern: Pattern, speak: Speak) -> None:
        """Put what is spoken in the place of each match.

        A pattern may depend on the language; then only matches in that language count. Spaces are
        put in where words would touch.
        """
        if isinstance(pattern, re.Pattern):
            self._rewrite(pattern, speak, None)
            return
        for code in self.languages.codes:
            self._rewrite(pattern(language(code)), speak, code)

    def _rewrite(self, pattern: re.Pattern[str], speak: Speak, only: str | None) -> None:
        edits = []
        for match in pattern.finditer(self.text):
            start, end = match.span()
            if self.is_counting and self._joins_words(start, end):
                continue
            code = self.languages.at(*self.rewriting.source_span(start, end))
            if only not in (None, code):
                continue
            spoken = speak(match, language(code))
            if spoken is not None and spoken != match.group():
                edits.append(Edit(start, end, self._set_apart(start, end, spoken)))
        if edits:
            self.rewriting = self.rewriting.edited(edits)

    def keep(self, pattern: re.Pattern[str], stop: Callable[[str, Language], str]) -> None:
        """Of each match leave only its last group, and what `stop` says to put after that."""
        edits = []
        for match in pattern.finditer(self.text):
            group = match.lastindex or 0
            start, end = match.span(group)
            code = self.languages.at(*self.rewriting.source_span(*match.span()))
            edits.append(Edit(match.start(), start, ""))
            edits.append(Edit(end, match.end(), stop(match[group], language(code))))
        edits = [edit for edit in edits if edit.text or edit.start < edit.end]
        if edits:
            self.rewriting = self.rewriting.edited(edits)

    def _joins_words(self, start: int, end: int) -> bool:
        """Whether a match reaches from text as written into words that a rule has made."""
        parts = [part for part in self.rewriting.parts(start, end) if part.start < part.end]
        return len(parts) > 1 and any(
            not part.is_copy and any(map(str.isalpha, self.text[part.start : part.end]))
            for part in parts
        )

    def _set_apart(self, start: int, end: int, spoken: str) -> str:
        before, after = self.text[max(start - 1, 0) : start], self.text[end : end + 1]
        if not spoken:
            return ""
        if before.isalnum() and spoken[0].isalnum() and not joins_without_space(before, spoken[0]):
            spoken = f" {spoken}"
        if after.isalnum() and spoken[-1].isalnum() and not joins_without_space(spoken[-1], after):
            spoken = f"{spoken} "
        return spoken
