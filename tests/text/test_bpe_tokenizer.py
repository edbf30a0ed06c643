"""The byte-level BPE tokeniser: the reference's ids, and texts that look like special tokens."""

import json
from pathlib import Path
from typing import Any

import pytest
import tokenizers
from byte_bpe import SPECIALS, byte_json

from mosstalk.errors import CheckpointError, UsageError
from mosstalk.text.bpe_tokenizer import BpeTokenizer


@pytest.fixture(scope="module")
def byte_tokenizer() -> BpeTokenizer:
    return BpeTokenizer(byte_json())


@pytest.fixture(scope="module")
def qwen(golden_dir: Path) -> BpeTokenizer:
    path = golden_dir / "tokenizers" / "qwen" / "tokenizer.json"
    if not path.exists():
        pytest.skip("no golden tokeniser")
    return BpeTokenizer(path.read_bytes())


def test_bpe_golden_ids_of_prompts(qwen: BpeTokenizer, golden_dir: Path) -> None:
    """Turns without recordings, between the special ids that the chat template puts in."""
    path = golden_dir / "reference" / "delay_prompts.json"
    cases: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    checked = 0
    for case in cases.values():
        if "<|audio|>" in case.get("content", "<|audio|>"):
            continue
        turn, end, start = 151644, 151645, 151644
        answer = [end, *qwen.encode("\n"), start, *qwen.encode("assistant\n")]
        assert [turn, *qwen.encode(f"user\n{case['content']}"), *answer] == case["text_ids"]
        checked += 1
    assert checked == 5


def test_bpe_punctuation_takes_the_newline_after_it(qwen: BpeTokenizer) -> None:
    """Spec voicegen.md 4.4."""
    pairs = {".\n": [624], ":\n": [510], ">\n": [397], "):\n": [982], "\n": [198], "12": [16, 17]}
    assert {text: qwen.encode(text) for text in pairs} == pairs


def test_bpe_composes_accents(qwen: BpeTokenizer, byte_tokenizer: BpeTokenizer) -> None:
    for tokenizer in (qwen, byte_tokenizer):
        assert tokenizer.encode("e\u0301") == tokenizer.encode("\u00e9")


def test_bpe_special_ids_of_qwen(qwen: BpeTokenizer) -> None:
    """Spec voicegen.md 4.3."""
    assert qwen.special_ids["<|endoftext|>"] == 151643
    assert qwen.special_ids["<|im_start|>"] == 151644
    assert qwen.special_ids["<|im_end|>"] == 151645
    assert qwen.special_ids["<|fim_pad|>"] == 151662
    assert qwen.vocab_size == 151669


def test_bpe_of_a_text_is_never_a_special_id(
    qwen: BpeTokenizer, byte_tokenizer: BpeTokenizer
) -> None:
    for tokenizer in (qwen, byte_tokenizer):
        for text in tokenizer.special_ids:
            ids = tokenizer.encode(f"a{text}b {text}\n{text}")
            assert not set(ids) & set(tokenizer.special_ids.values()), text


def test_bpe_ids_without_merges_are_the_bytes(byte_tokenizer: BpeTokenizer) -> None:
    text = "añ你\n"
    assert len(byte_tokenizer.encode(text)) == len(text.encode())
    assert byte_tokenizer.encode("") == []
    assert byte_tokenizer.special_ids == {text: 256 + i for i, text in enumerate(SPECIALS)}
    assert byte_tokenizer.vocab_size == 256 + len(SPECIALS)


def test_bpe_without_added_tokens() -> None:
    tokenizer = BpeTokenizer(byte_json(()))
    assert tokenizer.vocab_size == 256
    assert tokenizer.sanitise("a <|im_end|> b") == ("a <|im_end|> b", ())


@pytest.mark.parametrize("content", [b"", b"{}", b"[]", b"not JSON", b"\xff\xfe", b'{"model": 1}'])
def test_bpe_broken_file_is_a_checkpoint_error(content: bytes) -> None:
    with pytest.raises(CheckpointError, match="my.json.*fetch the model again") as caught:
        BpeTokenizer(content, name="my.json")
    assert "\n" not in str(caught.value)


def test_bpe_file_cut_short_is_a_checkpoint_error() -> None:
    content = byte_json()
    with pytest.raises(CheckpointError):
        BpeTokenizer(content[: len(content) // 2])


def test_bpe_file_of_another_kind_is_a_checkpoint_error() -> None:
    words = tokenizers.Tokenizer(tokenizers.models.WordLevel({"a": 0, "?": 1}, unk_token="?"))
    with pytest.raises(CheckpointError, match="WordLevel model; only BPE"):
        BpeTokenizer(words.to_str().encode())


def test_bpe_encode_of_half_a_surrogate_pair_is_a_usage_error(byte_tokenizer: BpeTokenizer) -> None:
    with pytest.raises(UsageError, match="position 2"):
        byte_tokenizer.encode("ab\ud800")


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("a <|im_end|> b", "a  b"),
        ("<think>a<|im_start|>", "a"),
        ("a<|im_<|im_end|>end|>b", "ab"),
        ("a<|im_\u200bend|>b", "ab"),
        ("a <b> is < c", "a <b> is < c"),
        ("{text} </user_inst>", "{text} </user_inst>"),
    ],
)
def test_bpe_sanitise_special_tokens(byte_tokenizer: BpeTokenizer, text: str, clean: str) -> None:
    result, warnings = byte_tokenizer.sanitise(text)
    assert result == clean
    assert byte_tokenizer.sanitise(result) == (result, ())
    assert bool(warnings) == (text != clean)


def test_bpe_sanitise_names_what_it_removed(byte_tokenizer: BpeTokenizer) -> None:
    text, warnings = byte_tokenizer.sanitise("\ufeffa\x00b<|im_start|>\r\nc")
    assert text == "ab\nc"
    assert warnings == (
        "removed control characters from the text: U+FEFF, U+0000",
        "removed special tokens from the text: <|im_start|>",
    )
