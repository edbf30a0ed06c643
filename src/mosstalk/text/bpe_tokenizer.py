"""Byte-level BPE tokeniser from a `tokenizer.json` file.

The file's added tokens, such as `<|im_end|>`, stand beside the BPE model and are matched in a
text before it. Here they are kept apart: `encode` knows the model alone, so no text, wherever it
comes from, becomes one of their ids; a prompt puts those in as numbers.
"""

import re
from collections.abc import Mapping

import tokenizers

from mosstalk.errors import CheckpointError
from mosstalk.text.cleaning import check_encodable, clean


class BpeTokenizer:
    """A byte-level BPE model read from the bytes of its `tokenizer.json` file.

    Attributes:
        special_ids: the added tokens by their text.
        vocab_size: ids go from 0 to `vocab_size` - 1, added tokens included.

    Args:
        tokenizer_json: the file's content.
        name: how error messages call the file.

    Raises:
        CheckpointError: the bytes are not such a file.
    """

    def __init__(self, tokenizer_json: bytes, *, name: str = "tokenizer.json") -> None:
        if not tokenizer_json:
            raise CheckpointError(f"{name}: the tokeniser file is empty; fetch the model again")
        try:
            whole = tokenizers.Tokenizer.from_buffer(tokenizer_json)
        except ValueError as error:
            raise CheckpointError(
                f"{name}: not a tokeniser ({len(tokenizer_json)} bytes); fetch the model again"
            ) from error
        if not isinstance(whole.model, tokenizers.models.BPE):
            raise CheckpointError(
                f"{name}: holds a {type(whole.model).__name__} model; only BPE is supported"
            )
        added = whole.get_added_tokens_decoder()
        self.special_ids: Mapping[str, int] = {
            token.content: token_id for token_id, token in added.items()
        }
        self._plain = tokenizers.Tokenizer(whole.model)
        if whole.normalizer is not None:
            self._plain.normalizer = whole.normalizer
        if whole.pre_tokenizer is not None:
            self._plain.pre_tokenizer = whole.pre_tokenizer
        self.vocab_size: int = max(self._plain.get_vocab_size(), *(1 + i for i in added), 0)
        longest_first = sorted(self.special_ids, key=len, reverse=True)
        self._special_pattern = re.compile("|".join(map(re.escape, longest_first)) or r"(?!)")

    def encode(self, text: str) -> list[int]:
        """Token ids of `text`; nothing is put before or after them, and none is a special id.

        Raises:
            UsageError: the text holds half of a surrogate pair.
        """
        check_encodable(text)
        ids: list[int] = self._plain.encode(text).ids
        return ids

    def sanitise(self, text: str) -> tuple[str, tuple[str, ...]]:
        """Take out of `text` what has no place in a prompt.

        Removed are the special tokens' texts, which would be read out as punctuation and words,
        also where removing one would form another, and all control, format, private and
        unassigned characters (Unicode category C). Line ends become newlines; other control
        characters that count as white space become spaces.

        Returns:
            The text, and one warning for each kind of thing removed.
        """
        return clean(text, self._strip_specials)

    def _strip_specials(self, text: str) -> tuple[str, list[str]]:
        removed: list[str] = []
        while found := self._special_pattern.findall(text):
            removed += found
            text = self._special_pattern.sub("", text)
        return text, removed
