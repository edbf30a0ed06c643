"""The prompt template of MOSS-TTS-Nano as rows of the small model."""

from pathlib import Path

import numpy as np
import sentencepiece
from language_model import REFERENCE
from numpy.typing import NDArray

IM_START, IM_END, AUDIO_START, AUDIO_END = 4, 5, 6, 7
FIELDS = ("Instruction", "Tokens", "Quality", "Sound Event", "Ambient Sound", "Language")


class Prompts:
    def __init__(self, tokenizer: Path, num_books: int, no_code: int) -> None:
        self._tokenizer = sentencepiece.SentencePieceProcessor(model_file=str(tokenizer))
        self.vocab = self._tokenizer.vocab_size()
        self._num_books, self._no_code = num_books, no_code
        encode = self._tokenizer.encode
        self._prefix = [IM_START, *encode("user\n"), *encode("<user_inst>\n- Reference(s):\n")]
        self._none = encode("None")
        fields = "".join(f"- {field}:\nNone\n" for field in FIELDS)
        self._after = encode(f"\n{fields}- Text:\n")
        self._assistant = [*encode("\n</user_inst>"), IM_END, *encode("\n"), IM_START]
        self._assistant += encode("assistant\n")

    def shared(self, reference: NDArray[np.int64] | None = None) -> NDArray[np.int64]:
        """Rows before the text, [rows, 1 + books]: no voice, or a reference [frames, books]."""
        if reference is None:
            return self._rows([*self._prefix, *self._none, *self._after])
        spoken = self._rows([REFERENCE] * len(reference))
        spoken[:, 1:] = reference
        before = self._rows([*self._prefix, AUDIO_START])
        return np.concatenate([before, spoken, self._rows([AUDIO_END, *self._after])])

    def text(self, text: str) -> list[int]:
        """Ids of the text and of what follows it; the last one is answered by the first frame."""
        return [*self._tokenizer.encode(text), *self._assistant, AUDIO_START]

    def text_len(self, text: str) -> int:
        return len(self._tokenizer.encode(text))

    def _rows(self, ids: list[int]) -> NDArray[np.int64]:
        rows = np.full((len(ids), 1 + self._num_books), self._no_code)
        rows[:, 0] = ids
        return rows
