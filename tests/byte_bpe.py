"""A small tokenizer.json for tests that must run without the real one."""

import tokenizers

SPECIALS = ("<|im_start|>", "<|im_end|>", "<think>")  # the last is not flagged as special


def byte_json(specials: tuple[str, ...] = SPECIALS) -> bytes:
    """A tokeniser of 256 bytes, without merges, and added tokens behind them."""
    alphabet = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    whole = tokenizers.Tokenizer(
        tokenizers.models.BPE(vocab={char: i for i, char in enumerate(alphabet)}, merges=[])
    )
    whole.normalizer = tokenizers.normalizers.NFC()
    whole.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(
        add_prefix_space=False, use_regex=False
    )
    whole.add_special_tokens([text for text in specials if "|" in text])
    whole.add_tokens([text for text in specials if "|" not in text])
    return str(whole.to_str()).encode()
