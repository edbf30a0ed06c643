"""Written to spoken: the golden table, and what holds for every text.

`normalise_cases.tsv` says how people read each text aloud, in 20 languages; `-` is a language that
must be found out, `\\n` an end of line. Kind `c15` are inputs that other engines have read wrong.
"""

import json
import random
import re
from pathlib import Path

import pytest

from mosstalk.errors import UsageError
from mosstalk.text.normalise import normalise
from mosstalk.text.normalise.dictionary import Dictionary, read_dictionary
from mosstalk.text.normalise.language import LANGUAGE_NAMES, language, language_code

Case = tuple[str | None, str, str]


def _cases() -> list[Case]:
    lines = (Path(__file__).parent / "normalise_cases.tsv").read_text(encoding="utf-8")
    cases = []
    for line in lines.splitlines()[1:]:
        code, _, written, spoken = (part.replace("\\n", "\n") for part in line.split("\t"))
        cases.append((None if code == "-" else code, written, spoken))
    return cases


CASES = _cases()
_PIECES = [
    *"0123456789.,:;!?-–—/\\()[]{}<>«»“”‘’'\"#*_~`@&%+=$€£¥°²|^ \n\t",
    *("km", "PM", "α", "αβ", "Ω", "ß", "é", "ł", "年", "月", "你好", "です", "개", "시", "год"),
    *('ש"ח', "كم", "٪", "۵", "😊", "👍🏽", "→", "XIV", "II", "FBI", "URLs", "www.", "http://"),
    *("e.g.", "Dr.", "1st", "½", "№", "<b>", "&amp;", "&lt;", "the ", "der ", "le ", "и ", "M"),
    *("a.com", "г.", "  "),
]


@pytest.mark.parametrize(("code", "written", "spoken"), CASES)
def test_golden_table(code: str | None, written: str, spoken: str) -> None:
    assert normalise(written, code).text == spoken


def test_golden_table_has_every_language() -> None:
    counts = {code: sum(case[0] == code for case in CASES) for code in LANGUAGE_NAMES}
    assert min(counts.values()) >= 20, counts


@pytest.mark.parametrize(("code", "written", "spoken"), CASES)
def test_golden_table_is_idempotent(code: str | None, written: str, spoken: str) -> None:
    assert normalise(spoken, code).text == spoken


def _random_text(rng: random.Random) -> str:
    if rng.random() < 0.5:
        return "".join(rng.choice(_PIECES) for _ in range(rng.randint(1, 25)))
    return rng.choice([" ", ", ", "\n"]).join(
        rng.choice(CASES)[1] for _ in range(rng.randint(1, 4))
    )


@pytest.mark.parametrize("seed", range(20))
def test_random_text(seed: int) -> None:
    """It is read without a digit left, a second time changes nothing, and the spans fit."""
    rng = random.Random(seed)
    for _ in range(15):
        written = _random_text(rng)
        code = rng.choice([None, *LANGUAGE_NAMES])
        read = normalise(written, code)
        assert normalise(read.text, code).text == read.text, (written, code)
        without_tags = re.sub(r"\[S\d+\]", "", read.text)
        assert not re.search(r"\d", without_tags), (written, code)
        end, source_end = 0, 0
        for span in read.spans:
            assert (span.start, span.source_start) == (end, source_end), (written, code)
            end, source_end = span.end, span.source_end
            if span.is_copy:
                kept = read.text[span.start : span.end]
                assert kept == written[span.source_start : span.source_end]
        assert (end, source_end) == (len(read.text), len(written)), (written, code)


def test_spans_lead_back_to_what_was_written() -> None:
    written = "Dr. Smith paid $19.99 **today**."
    read = normalise(written, "en")
    found = {}
    for span in read.spans:
        if not span.is_copy:
            spoken = read.text[span.start : span.end]
            found[spoken] = written[span.source_start : span.source_end]
    assert found["Doctor"] == "Dr."
    assert found["nineteen dollars and ninety-nine cents"] == "$19.99"
    assert read.text.endswith("today.")


@pytest.mark.parametrize("text", ["Hello there.", "你好。", "Как дела?", "Two  spaces\n\nhere"])
def test_words_stay_as_they_are(text: str) -> None:
    read = normalise(text)
    assert read.text == text
    assert read.warnings == ()


@pytest.mark.parametrize("text", ["", "   ", "\n", "...", "！！！"])
def test_texts_without_words(text: str) -> None:
    assert normalise(text).text == text


def test_what_nobody_can_say_is_in_a_warning() -> None:
    read = normalise("Great 😊 job ☂", "en")
    assert read.text == "Great job"
    (warning,) = read.warnings
    assert "😊 (smiling face with smiling eyes)" in warning
    assert "☂ (umbrella)" in warning


def test_a_sign_alone_is_read_by_its_name() -> None:
    read = normalise("😊")
    assert read.text == "smiling face with smiling eyes"
    assert "signs alone" in read.warnings[0]


def test_a_program_in_a_page_is_left_out_with_a_warning() -> None:
    read = normalise("<p>Hi</p><script>alert(1)</script>", "en")
    assert read.text.split() == ["Hi."]
    assert "<script>" in read.warnings[0]


def test_long_digits_are_read_one_by_one() -> None:
    assert normalise("1" * 5000, "en").text == " ".join(["one"] * 5000)


def test_no_special_token_can_be_formed() -> None:
    read = normalise("&lt;|im_end|&gt; <|im_end|> &lt;s&gt;", "en")
    assert "<" not in read.text
    assert "|" not in read.text


@pytest.mark.parametrize("asked", ["de", "DE", "de-AT", "German", "german"])
def test_languages_by_code_and_name(asked: str) -> None:
    assert language_code(asked) == "de"


def test_language_without_rules() -> None:
    read = normalise("Minulla on 3 kissaa.", "fi")
    assert read.text == "Minulla on 3 kissaa."
    assert "no rules for fi" in read.warnings[0]


def test_unknown_language() -> None:
    with pytest.raises(UsageError, match="unknown language 'klingon'; choose one of ar"):
        normalise("1", "klingon")


@pytest.mark.parametrize("code", LANGUAGE_NAMES)
def test_tables_are_whole(code: str) -> None:
    """Each table loads, has all months and letters, and the words that every other has."""
    table = language(code)
    assert len(table.date["months"]) == 12
    assert len(table.letters) == 24
    optional = {"other_point", "digit_zero", "wholes", "places", "1/3", "2/3", "1/4", "3/4"}
    assert set(language("en").words) - optional <= set(table.words)
    assert {"USD", "EUR", "GBP", "JPY", "CNY"} <= set(table.currencies)
    assert {"%", "°C", "km", "kg", "m", "GB"} <= set(table.units)


def test_dictionary_comes_before_all_rules() -> None:
    words = Dictionary({"nginx": "engine x", "SQL": "sequel", "😊": "smiley", "3D": "three D"})
    read = normalise("Nginx and SQL, 3D 😊 sql", "en", words)
    assert read.text == "engine x and sequel, three D smiley sql"
    assert read.warnings == ()
    assert normalise(read.text, "en", words).text == read.text


def test_dictionary_of_chinese_words() -> None:
    assert normalise("他重庆人", "zh", Dictionary({"重庆": "崇庆"})).text == "他崇庆人"


def test_dictionary_that_would_never_end() -> None:
    with pytest.raises(UsageError, match="'Nano model' for 'Nano'"):
        Dictionary({"Nano": "Nano model"})


def test_dictionary_files(tmp_path: Path) -> None:
    toml, as_json = tmp_path / "words.toml", tmp_path / "words.json"
    toml.write_text('nginx = "engine x"\n"C++" = "C plus plus"\n', encoding="utf-8")
    as_json.write_text(json.dumps({"nginx": "engine x", "C++": "C plus plus"}), encoding="utf-8")
    assert read_dictionary(toml) == read_dictionary(as_json)
    assert normalise("C++", "en", read_dictionary(toml)).text == "C plus plus"


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.txt", "x", "rename or convert"),
        ("a.toml", "x", "mend the file"),
        ("a.json", "[1]", "not a table of words"),
        ("a.json", '{"x": 1}', "'x' is 1"),
        ("a.toml", '[part]\nx = "y"', "'part' is"),
    ],
)
def test_dictionary_files_that_cannot_be_used(
    tmp_path: Path, name: str, content: str, message: str
) -> None:
    path = tmp_path / name
    path.write_text(content, encoding="utf-8")
    with pytest.raises(UsageError, match=re.escape(message)):
        read_dictionary(path)


def test_missing_dictionary(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot read .*check --dictionary"):
        read_dictionary(tmp_path / "none.toml")
