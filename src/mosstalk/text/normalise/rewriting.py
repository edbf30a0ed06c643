"""A text that is being rewritten, and where each part of it came from."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Span:
    """Where a part of a rewritten text came from; positions count characters.

    Attributes:
        start, end: the part in the rewritten text.
        source_start, source_end: what it stands for in the source.
        is_copy: each of its characters is the source's own.
    """

    start: int
    end: int
    source_start: int
    source_end: int
    is_copy: bool


@dataclass(frozen=True, slots=True)
class Edit:
    """`text` in the place of the characters from `start` to `end`."""

    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class Rewriting:
    """The text as it is now, and its spans in order; together they cover text and source."""

    text: str
    spans: tuple[Span, ...]

    @classmethod
    def of(cls, source: str) -> "Rewriting":
        """Nothing is rewritten yet."""
        return cls(source, (Span(0, len(source), 0, len(source), True),) if source else ())

    def source_span(self, start: int, end: int) -> tuple[int, int]:
        """The part of the source that the text from `start` to `end` stands for."""
        parts = self._cut(start, end)
        if parts:
            return parts[0].source_start, parts[-1].source_end
        at = bisect_right(self.spans, start, key=lambda span: span.start) - 1
        if at < 0:
            return 0, 0
        span = self.spans[at]
        inside = span.is_copy and start < span.end
        place = span.source_start + start - span.start if inside else span.source_end
        return place, place

    def edited(self, edits: Iterable[Edit]) -> "Rewriting":
        """The text after `edits`, which are in order and do not overlap."""
        pieces: list[str] = []
        spans: list[Span] = []
        length, position = 0, 0
        for edit in edits:
            _append(spans, self._cut(position, edit.start), length - position)
            length += edit.start - position
            source_start, source_end = self.source_span(edit.start, edit.end)
            end = length + len(edit.text)
            spans.append(Span(length, end, source_start, source_end, False))
            pieces += (self.text[position : edit.start], edit.text)
            length, position = end, edit.end
        rest = self._cut(position, len(self.text) + 1)
        _append(spans, rest, length - position)
        return Rewriting("".join(pieces) + self.text[position:], tuple(_merged(spans)))

    def then(self, other: "Rewriting") -> "Rewriting":
        """This one, followed by one of its text."""
        return self.edited(
            Edit(span.source_start, span.source_end, other.text[span.start : span.end])
            for span in other.spans
            if not span.is_copy
        )

    def parts(self, start: int, end: int) -> list[Span]:
        """The spans of the text from `start` to `end`."""
        return self._cut(start, end)

    def _cut(self, start: int, end: int) -> list[Span]:
        """The spans from `start` to before `end`, what was taken out there included; copies are
        cut there, others stay whole in the source.
        """
        parts = []
        first = max(0, bisect_left(self.spans, start, key=lambda span: span.start) - 1)
        for at in range(first, len(self.spans)):
            span = self.spans[at]
            if span.start >= end:
                break
            begin, stop = max(span.start, start), min(span.end, end)
            if begin >= stop and not (span.start == span.end and start <= span.start):
                continue
            source = (span.source_start, span.source_end)
            if span.is_copy:
                shift = span.source_start - span.start
                source = (begin + shift, stop + shift)
            parts.append(Span(begin, stop, *source, span.is_copy))
        return parts


def _merged(spans: list[Span]) -> list[Span]:
    """Parts of one rewritten part that stand for the same source become one again."""
    merged: list[Span] = []
    for span in spans:
        while merged and merged[-1].source_end > span.source_start:
            last = merged.pop()
            source_start = min(last.source_start, span.source_start)
            source_end = max(last.source_end, span.source_end)
            span = Span(last.start, span.end, source_start, source_end, False)
        merged.append(span)
    return merged


def _append(spans: list[Span], parts: Sequence[Span], shift: int) -> None:
    for part in parts:
        spans.append(
            Span(
                part.start + shift,
                part.end + shift,
                part.source_start,
                part.source_end,
                part.is_copy,
            )
        )
