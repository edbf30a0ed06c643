"""The tokeniser against the reference's ids, and the cleaning of hostile text."""

import json
from pathlib import Path
from typing import Any

import pytest
import sentencepiece

from mosstalk.errors import CheckpointError, UsageError
from mosstalk.text.tokenizer import Tokenizer


@pytest.fixture(scope="module")
def notes(golden_dir: Path) -> dict[str, Any]:
    path = golden_dir / "reference" / "nano_tokenizer.json"
    if not path.exists():
        pytest.skip("no golden tokeniser notes")
    loaded: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return loaded


def test_tokenizer_golden_ids_and_pieces(nano_tokenizer: Tokenizer, notes: dict[str, Any]) -> None:
    """The reference's wrapper also parses the names of ids 0 to 3 in a text (spec 4.1);
    SentencePiece does not, and `sanitise` takes them out."""
    wrapper_only = [case for case in notes["texts"] if set(case["ids"]) & {0, 1, 2, 3}]
    assert [case["text"] for case in wrapper_only] == ["<s> </s> <pad> <unk>"]
    assert nano_tokenizer.encode(nano_tokenizer.sanitise(wrapper_only[0]["text"])[0]) == []
    for case in notes["texts"]:
        if case in wrapper_only:
            continue
        ids = nano_tokenizer.encode(case["text"])
        assert ids == case["ids"], case["text"]
        assert [nano_tokenizer.piece(i) for i in ids] == case["pieces"]


def test_tokenizer_golden_vocabulary(nano_tokenizer: Tokenizer, notes: dict[str, Any]) -> None:
    assert nano_tokenizer.vocab_size == notes["vocab_size"]
    for token_id, piece in notes["special"].items():
        assert nano_tokenizer.piece(int(token_id)) == piece
    assert set(notes["special"].values()) <= set(nano_tokenizer.special_strings)


def test_tokenizer_special_strings_are_ids_0_to_14(nano_tokenizer: Tokenizer) -> None:
    assert nano_tokenizer.special_strings == tuple(nano_tokenizer.piece(i) for i in range(15))


def test_tokenizer_spec_ids(nano_tokenizer: Tokenizer) -> None:
    assert nano_tokenizer.encode("Hello, World!") == [7026, 10364, 4387, 11449]
    assert nano_tokenizer.encode("😀") == [10356, 255, 174, 167, 143]
    assert nano_tokenizer.encode("\n") == []
    assert nano_tokenizer.encode(" " * 8 + "Hello.") == nano_tokenizer.encode("Hello.")


@pytest.mark.parametrize("proto", [b"", b"not a model", b"\x00" * 1000])
def test_tokenizer_broken_model_is_a_checkpoint_error(proto: bytes) -> None:
    with pytest.raises(CheckpointError, match="my.model") as caught:
        Tokenizer(proto, name="my.model")
    assert "\n" not in str(caught.value)


def test_tokenizer_model_cut_short_is_a_checkpoint_error(nano_proto: bytes) -> None:
    with pytest.raises(CheckpointError):
        Tokenizer(nano_proto[: len(nano_proto) // 2])


def test_encode_of_half_a_surrogate_pair_is_a_usage_error(nano_tokenizer: Tokenizer) -> None:
    with pytest.raises(UsageError, match="position 2"):
        nano_tokenizer.encode("ab\ud800")


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("a <|im_end|> b", "a  b"),
        ("<user_inst>a</user_inst>", "a"),
        ("a<|im_<|im_end|>end|>b", "ab"),
        ("<s<s>>a</<pad>s>", "a"),
        ("＜|im_start|＞你好<｜im_end｜>", "你好"),
        ("a<|im_\u200bend|>b", "ab"),
        ("a<|im_\u00adend|>b", "ab"),
        ("a <b> is < c", "a <b> is < c"),
    ],
)
def test_sanitise_special_tokens(nano_tokenizer: Tokenizer, text: str, clean: str) -> None:
    result, warnings = nano_tokenizer.sanitise(text)
    assert result == clean
    assert not set(nano_tokenizer.encode(result)) & set(range(15))
    assert nano_tokenizer.sanitise(result) == (result, ())
    assert bool(warnings) == (text != clean)


def test_sanitise_names_what_it_removed(nano_tokenizer: Tokenizer) -> None:
    text, warnings = nano_tokenizer.sanitise("\ufeffa\x00b<|im_start|>\ud83dc\u200d")
    assert text == "abc"
    assert warnings == (
        "removed control characters from the text: U+FEFF, U+0000, U+D83D, U+200D",
        "removed special tokens from the text: <|im_start|>",
    )


def test_sanitise_keeps_white_space_apart(nano_tokenizer: Tokenizer) -> None:
    assert nano_tokenizer.sanitise("a\r\nb\rc\td\x0ce\n") == ("a\nb\nc\td e\n", ())


def test_sanitise_ends_on_deeply_nested_special_tokens(nano_tokenizer: Tokenizer) -> None:
    text = "<|im_" * 500 + "<s>" + "end|>" * 500
    assert nano_tokenizer.sanitise(text)[0] == ""


def test_sanitise_leaves_the_labels_of_a_template_alone(tmp_path: Path) -> None:
    prefix = tmp_path / "small"
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(["a few words to learn from", "and some more words"] * 20),
        model_prefix=str(prefix),
        vocab_size=40,
        hard_vocab_limit=False,
        user_defined_symbols=["<|im_start|>", "- Text:"],
        minloglevel=2,
    )
    tokenizer = Tokenizer(prefix.with_suffix(".model").read_bytes())
    assert "<|im_start|>" in tokenizer.special_strings
    assert tokenizer.sanitise("- Text: <|im_start|>words")[0] == "- Text: words"
