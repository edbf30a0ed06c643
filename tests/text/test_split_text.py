"""The splitter against the reference's chunks, its repaired faults, and random texts."""

import json
import random
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from mosstalk.errors import UsageError
from mosstalk.text.split import prepare_text, split_text
from mosstalk.text.tokenizer import Tokenizer

CountTokens = Callable[[str], int]
NO_LIMIT = 10**9


@pytest.fixture(scope="module")
def count_tokens(nano_tokenizer: Tokenizer) -> CountTokens:
    return lambda text: len(nano_tokenizer.encode(text))


def texts(text: str, max_tokens: int, count_tokens: CountTokens) -> list[str]:
    return [chunk.text for chunk in split_text(text, max_tokens, count_tokens)]


def count_words(text: str) -> int:
    return len(text.split())


def test_split_golden_chunks(golden_dir: Path, count_tokens: CountTokens) -> None:
    """Two stated differences: a text of one chunk stays as it is (the reference's caller does
    that), and a chunk that is only the full stop the reference added is left out."""
    path = golden_dir / "reference" / "nano_tokenizer.json"
    cases = json.loads(path.read_text(encoding="utf-8"))["chunker"]
    assert len(cases) == 18
    for case in cases:
        chunks = texts(case["text"], case["max_tokens"], count_tokens)
        golden = case["chunks"]
        if len(golden) == 1:
            assert chunks == [case["text"]]
            assert golden == [prepare_text(case["text"])[0]]
        else:
            assert chunks == (golden[:-1] if golden[-1] == "." else golden)


def test_split_golden_end_to_end_chunks_and_pauses(
    golden_dir: Path, count_tokens: CountTokens
) -> None:
    path = golden_dir / "reference" / "nano_e2e.json"
    if not path.exists():
        pytest.skip("no golden end-to-end run")
    golden = json.loads(path.read_text(encoding="utf-8"))["clone_chunked"]
    chunks = split_text(" ".join(golden["chunks"]), 12, count_tokens)
    assert [chunk.text for chunk in chunks] == golden["chunks"]
    spoken_samples = golden["frames"] * 3840
    pause_samples = round(sum(chunk.pause_seconds for chunk in chunks) * golden["sr"])
    assert spoken_samples + pause_samples == golden["wav"][1]


def test_split_spec_token_counts(count_tokens: CountTokens) -> None:
    fox = "The quick brown fox jumps over the lazy dog. " * 6
    assert [count_tokens(chunk) for chunk in texts(fox, 50, count_tokens)] == [42, 42]
    assert [count_tokens(chunk) for chunk in texts(fox, 75, count_tokens)] == [70, 14]


def test_split_pauses_are_longer_after_few_words_and_none_at_the_end() -> None:
    chunks = split_text("One two three four. One two three four five. Six.", 5, count_words)
    assert [chunk.pause_seconds for chunk in chunks] == [0.40, 0.24, 0.0]


@pytest.mark.parametrize("text", ["", "   ", "\n\t\n", "\u3000"])
def test_split_of_nothing_is_a_usage_error(text: str) -> None:
    with pytest.raises(UsageError, match="there is no text to speak"):
        split_text(text, 50, count_words)


@pytest.mark.parametrize("max_tokens", [0, -1])
def test_split_without_a_budget_leaves_the_text_whole(max_tokens: int) -> None:
    text = "one two.  three\nfour"
    assert texts(text, max_tokens, count_words) == [text]


@pytest.mark.parametrize(
    "sentence",
    [
        "Pi is 3.14 or so.",
        "It costs .5 dollars.",
        "Get v2.3.1 now.",
        "It was 1,000 or 1,234,567.89 euros.",
        "Come at 12:30 sharp.",
        "See https://example.com/a?b=1,2;c now.",
        "Write to a.b@example.com today.",
        "Edit the .env file.",
        "Mr. Smith met Dr. Jones.",
        "Fruit, e.g. apples, i.e. these, vs. those.",
        "The U.S. Senate voted.",
        "J. R. R. Tolkien wrote.",
        "See No. 5 and Fig. 2 there.",
        "They left at 5 p.m. on Monday.",
    ],
)
def test_split_keeps_marks_inside_words_whole(sentence: str) -> None:
    """The budget holds the sentence but not two, so each false sentence end would show."""
    budget = count_words(sentence) + 1
    text = f"{sentence} It is so. {sentence}"
    assert sentence in texts(text, budget, count_words)
    assert " ".join(texts(text, budget, count_words)) == text


@pytest.mark.parametrize(
    ("text", "chunks"),
    [
        ("What?! Yes... No.", ["What?!", "Yes...", "No."]),
        ("So...then we go", ["So...", "then we", "go."]),
        ("He said no. Yes.", ["He said", "no. Yes."]),
        ('"Stop." (Now.) Go', ['"Stop." (Now.)', "Go."]),
        ("It was v2.3.1. Then", ["It was", "v2.3.1. Then."]),
    ],
)
def test_split_still_ends_sentences_at_real_marks(text: str, chunks: list[str]) -> None:
    budget = 1 if "?!" in text else 2
    assert texts(text, budget, count_words) == chunks


def test_split_puts_no_space_into_chinese_and_keeps_it_elsewhere() -> None:
    def count(text: str) -> int:
        return len(text.replace(" ", ""))

    assert texts("你好。\n今天好。走吧走吧走吧。", 8, count) == ["你好。今天好。", "走吧走吧走吧。"]
    assert texts("我用 Go. And so. 好好好好好好。", 13, count) == [
        "我用 Go. And so.",
        "好好好好好好。",
    ]
    assert texts("네. 가요. 다음에 또 만나요.", 6, count)[0] == "네. 가요."


@pytest.mark.parametrize(
    ("text", "prepared"),
    [
        ("hello  there", ("Hello there.", ".")),
        ("Hello, there!", ("Hello, there!", "")),
        ('he said "no"', ('He said "no"', "")),
        ("你好\n世界", ("你好 世界。", "。")),
        ("你好！", ("你好！", "")),
    ],
)
def test_prepare_text(text: str, prepared: tuple[str, str]) -> None:
    assert prepare_text(text) == prepared


LONG_TEXTS = {
    "one letter": "a" * 10_000,
    "chinese without marks": "你好世界" * 2_500,
    "emoji": "😀" * 10_000,
    "words without marks": "the quick brown " * 625,
    "tiny sentences": "a. " * 3_333,
    "abbreviations": "Mr. " * 2_500,
    "dots": "." * 10_000,
    "dotted letters": "a." * 5_000,
    "sentences": "The quick brown fox jumps over the lazy dog. " * 222,
}


@pytest.mark.parametrize("max_tokens", [8, 75])
@pytest.mark.parametrize("text", LONG_TEXTS.values(), ids=LONG_TEXTS.keys())
def test_split_of_10_000_characters_is_quick_and_complete(
    text: str, max_tokens: int, count_tokens: CountTokens
) -> None:
    start = time.process_time()
    chunks = texts(text, max_tokens, count_tokens)
    assert time.process_time() - start < 1.0
    check_chunks(text, chunks, max_tokens, count_tokens)


def test_split_of_random_texts_loses_nothing_and_keeps_the_budget(
    count_tokens: CountTokens,
) -> None:
    rng = random.Random(20)
    alphabet = [
        *"aAbz 019.,;:!?\"')(  \n",
        "你",
        "。",
        "，",
        "한",
        "カ",
        "😀",
        "é",
        "ﬁ",
        "the ",
        "Mr. ",
    ]
    for _ in range(150):
        text = "x" + "".join(rng.choices(alphabet, k=rng.randrange(1, 300)))
        max_tokens = rng.choice([8, 13, 30, 75])
        check_chunks(text, texts(text, max_tokens, count_tokens), max_tokens, count_tokens)


def check_chunks(text: str, chunks: list[str], max_tokens: int, count_tokens: CountTokens) -> None:
    prepared, added_stop = prepare_text(text)
    if chunks != [text]:
        spoken = "".join("".join(chunks).split())
        whole = "".join(prepared.split())
        assert spoken in (whole, whole.removesuffix(added_stop))
    assert all(chunk == chunk.strip() and chunk for chunk in chunks if chunks != [text])
    assert all(count_tokens(chunk) <= max_tokens for chunk in chunks)
