"""SentencePiece tokeniser.

Special tokens are matched inside plain text by SentencePiece, after its own Unicode folding. So
a text could smuggle a prompt's control tokens in; `Tokenizer.sanitise` takes them out.
"""

import re

import sentencepiece

from mosstalk.errors import CheckpointError
from mosstalk.text.cleaning import check_encodable, clean

_SPECIAL_SHAPE = re.compile(r"</?[^<>\s]+>")


class Tokenizer:
    """A SentencePiece model read from the bytes of its `tokenizer.model` file.

    Args:
        model_proto: the file's content.
        name: how error messages call the file.

    Raises:
        CheckpointError: the bytes are not a SentencePiece model.
    """

    def __init__(self, model_proto: bytes, *, name: str = "tokenizer.model") -> None:
        if not model_proto:
            raise CheckpointError(f"{name}: the tokeniser file is empty; fetch the model again")
        try:
            self._processor = sentencepiece.SentencePieceProcessor(model_proto=model_proto)
            self.vocab_size: int = self._processor.get_piece_size()
        except RuntimeError as error:
            raise CheckpointError(
                f"{name}: not a SentencePiece model ({len(model_proto)} bytes); "
                "fetch the model again"
            ) from error
        self.special_strings: tuple[str, ...] = tuple(
            self.piece(i)
            for i in range(self.vocab_size)
            if not self._processor.is_byte(i) and _SPECIAL_SHAPE.fullmatch(self.piece(i))
        )
        longest_first = sorted(self.special_strings, key=len, reverse=True)
        self._special_pattern = re.compile("|".join(map(re.escape, longest_first)) or r"(?!)")

    def encode(self, text: str) -> list[int]:
        """Token ids of `text`; nothing is put before or after them.

        Special strings in `text` become special ids: pass text from outside through `sanitise`
        first.

        Raises:
            UsageError: the text holds half of a surrogate pair.
        """
        check_encodable(text)
        ids: list[int] = self._processor.encode(text)
        return ids

    def piece(self, token_id: int) -> str:
        """The piece of one id, from 0 to `vocab_size` - 1."""
        piece: str = self._processor.id_to_piece(token_id)
        return piece

    def sanitise(self, text: str) -> tuple[str, tuple[str, ...]]:
        """Take out of `text` what must not reach a prompt.

        Removed are the model's special strings, in any spelling that the tokeniser would fold
        into one and also where removing one would form another, and all control, format,
        private and unassigned characters (Unicode category C). Line ends become newlines; other
        control characters that count as white space become spaces.

        Returns:
            The text, and one warning for each kind of thing removed.
        """
        return clean(text, self._strip_specials)

    def _strip_specials(self, text: str) -> tuple[str, list[str]]:
        removed: list[str] = []
        while True:
            folded, origins = self._processor.normalize(text, with_offsets=True)
            ends = [*origins, len(text)]
            kept, position = [], 0
            for match in self._special_pattern.finditer(folded):
                start = ends[match.start()]
                kept.append(text[position:start])
                position = max(ends[match.end()], start + 1)
                removed.append(match.group())
            if not kept:
                return text, removed
            text = "".join(kept) + text[position:]
