"""Division of a long text into chunks that are spoken one after another (spec 4.6)."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from mosstalk.errors import UsageError
from mosstalk.text.boundaries import (
    clause_ends,
    cut_after,
    ends_sentence,
    has_cjk,
    joins_without_space,
    sentence_ends,
)

_SHORT_CHUNK_WORDS = 4
_SHORT_CHUNK_PAUSE_SECONDS = 0.40
_PAUSE_SECONDS = 0.24
_LOOK_BACK_CHARS = 24
_FIRST_WINDOW_CHARS = 32  # then doubled until it is too long

CountTokens = Callable[[str], int]
Span = tuple[int, int]


@dataclass(frozen=True)
class TextChunk:
    """A part of a text, and the silence to leave after it (0.0 after the last)."""

    text: str
    pause_seconds: float


def split_text(text: str, max_tokens: int, count_tokens: CountTokens) -> list[TextChunk]:
    """Divide `text` at sentence ends, clause ends or, where there are none, anywhere.

    No chunk counts more than `max_tokens`, except a single character that does so by itself.
    A text that fits into one chunk is left as it is; otherwise its white space is collapsed, it
    gets a capital at its start and a full stop at its end. With `max_tokens` of 0 or less
    nothing is divided.

    Args:
        text: sanitised text.
        max_tokens: budget of one chunk, in tokens.
        count_tokens: number of tokens of a text.

    Raises:
        UsageError: the text is empty or only white space.
    """
    if not text.strip():
        raise UsageError("there is no text to speak; give some words")
    if max_tokens <= 0:
        return [TextChunk(text, 0.0)]
    prepared, added_stop = prepare_text(text)
    chunks = _merge(prepared, max_tokens, count_tokens)
    if len(chunks) > 1 and chunks[-1] == added_stop:
        chunks.pop()  # a full stop that the text never had, and nothing to say with it
    if len(chunks) == 1 and count_tokens(text) <= max_tokens:
        return [TextChunk(text, 0.0)]
    return [*(TextChunk(chunk, _pause(chunk)) for chunk in chunks[:-1]), TextChunk(chunks[-1], 0.0)]


def prepare_text(text: str) -> tuple[str, str]:
    """A text that is not blank as it is divided, and the full stop that was added, or "".

    White space is collapsed to single spaces. Text without Chinese, Japanese or Korean starts
    with a capital and gets "." after a last letter or digit; other text gets "。" unless it
    ends with a sentence mark.
    """
    text = " ".join(text.split())
    if has_cjk(text):
        stop = "" if ends_sentence(text[-1]) else "。"
    else:
        text = text[0].upper() + text[1:]
        stop = "." if text[-1].isalnum() else ""
    return text + stop, stop


def _pause(chunk: str) -> float:
    short = len(chunk.split()) <= _SHORT_CHUNK_WORDS
    return _SHORT_CHUNK_PAUSE_SECONDS if short else _PAUSE_SECONDS


def _merge(text: str, max_tokens: int, count_tokens: CountTokens) -> list[str]:
    """The spans of `text` joined into chunks, each as full as the budget allows."""
    chunks: list[str] = []
    chunk_tokens, chunk_end = 0, 0
    for start, end in _spans(text, max_tokens, count_tokens):
        span = text[start:end]
        span_tokens = count_tokens(span)
        joined = chunks[-1] + _gap(text, chunk_end, start) + span if chunks else ""
        if (
            chunks
            and chunk_tokens + span_tokens <= max_tokens
            and (joined_tokens := count_tokens(joined)) <= max_tokens
        ):
            chunks[-1], chunk_tokens = joined, joined_tokens
        else:
            chunks.append(span)
            chunk_tokens = span_tokens
        chunk_end = end
    return chunks


def _gap(text: str, left_end: int, right_start: int) -> str:
    """The space between two spans, unless the writing on one side goes without spaces."""
    if joins_without_space(text[left_end - 1], text[right_start]):
        return ""
    return text[left_end:right_start]


def _spans(text: str, max_tokens: int, count_tokens: CountTokens) -> Iterator[Span]:
    """Sentences; where one is too long its clauses; where one is too long parts of it."""

    def fits(span: Span) -> bool:
        return count_tokens(text[span[0] : span[1]]) <= max_tokens

    clauses = clause_ends(text)
    for sentence in _between(text, (0, len(text)), sentence_ends(text)):
        if fits(sentence):
            yield sentence
            continue
        for clause in _between(text, sentence, clauses):
            yield from _cut(text, clause, fits)


def _between(text: str, span: Span, ends: list[int]) -> Iterator[Span]:
    """The parts of `span` between the sorted positions `ends`, without spaces around them."""
    start, stop = span
    for end in [*ends[bisect_right(ends, start) : bisect_left(ends, stop)], stop]:
        part = _strip(text, (start, end))
        if part[0] < part[1]:
            yield part
        start = end


def _strip(text: str, span: Span) -> Span:
    start, end = span
    while start < end and text[start].isspace():
        start += 1
    while start < end and text[end - 1].isspace():
        end -= 1
    return start, end


def _cut(text: str, span: Span, fits: Callable[[Span], bool]) -> Iterator[Span]:
    """Parts of `span`, each the longest that fits, cut at a boundary if one is near its end."""
    start, stop = span
    while start < stop:
        end = _longest_fit(text, (start, stop), fits)
        if end < stop:
            nearest = range(end, max(start, end - _LOOK_BACK_CHARS), -1)
            ends = (i for i in nearest if cut_after(text, i - 1))
            end = next((i for i in ends if fits(_strip(text, (start, i)))), end)
        yield _strip(text, (start, end))
        start = _strip(text, (end, stop))[0]


def _longest_fit(text: str, span: Span, fits: Callable[[Span], bool]) -> int:
    """The end of the longest prefix of `span` that fits, at least one character long."""
    start, stop = span
    window = _FIRST_WINDOW_CHARS
    while start + window < stop and fits(_strip(text, (start, start + window))):
        window *= 2
    fitting, too_long = start + 1, min(start + window, stop) + 1
    while too_long - fitting > 1:
        middle = (fitting + too_long) // 2
        if fits(_strip(text, (start, middle))):
            fitting = middle
        else:
            too_long = middle
    return fitting
