"""Prompts of MOSS-TTS-Nano: text and voice to rows (spec nano.md 4.2, 4.3)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mosstalk.models.moss_tts_nano.config import NanoConfig
from mosstalk.text.tokenizer import Tokenizer

_FIELDS = ("Instruction", "Tokens", "Quality", "Sound Event", "Ambient Sound", "Language")


@dataclass(frozen=True, slots=True)
class Prompt:
    """Rows [n, 1 + n_vq]; the first `num_shared` are the same for every text of a voice."""

    rows: NDArray[np.int32]
    num_shared: int


class PromptBuilder:
    """The template's pieces, each tokenised by itself, and the three ways to join them."""

    def __init__(self, config: NanoConfig, tokenizer: Tokenizer) -> None:
        self._config = config
        self._tokenizer = tokenizer
        encode = tokenizer.encode
        self.prefix = (
            config.im_start_token_id,
            *encode("user\n"),
            *encode("<user_inst>\n- Reference(s):\n"),
        )
        self.none = tuple(encode("None"))
        fields = "".join(f"- {field}:\nNone\n" for field in _FIELDS)
        self.after = tuple(encode(f"\n{fields}- Text:\n"))
        self.assistant = (
            *encode("\n</user_inst>"),
            config.im_end_token_id,
            *encode("\n"),
            config.im_start_token_id,
            *encode("assistant\n"),
        )

    def plain(self, text: str) -> Prompt:
        """No voice."""
        shared = (*self.prefix, *self.none, *self.after)
        rest = (*self._tokenizer.encode(text), *self.assistant, self._config.audio_start_token_id)
        return Prompt(self._text_rows([*shared, *rest]), len(shared))

    def clone(self, text: str, codes: NDArray[np.int32]) -> Prompt:
        """Speak as in a recording of codes [frames, codebooks]."""
        config = self._config
        rows = [
            self._text_rows([*self.prefix, config.audio_start_token_id]),
            self._code_rows(codes, config.audio_user_slot_token_id),
            self._text_rows([config.audio_end_token_id, *self.after]),
        ]
        rest = (*self._tokenizer.encode(text), *self.assistant, config.audio_start_token_id)
        num_shared = sum(map(len, rows))
        return Prompt(np.concatenate([*rows, self._text_rows(rest)]), num_shared)

    def continuation(self, text: str, codes: NDArray[np.int32], transcript: str) -> Prompt:
        """Go on after a recording whose words are `transcript`; nothing is put between the two."""
        plain = self.plain(transcript + text)
        spoken = self._code_rows(codes, self._config.audio_assistant_slot_token_id)
        return Prompt(np.concatenate([plain.rows, spoken]), plain.num_shared)

    def _text_rows(self, ids: Sequence[int]) -> NDArray[np.int32]:
        rows = np.full((len(ids), 1 + self._config.n_vq), self._config.audio_pad_token_id, np.int32)
        rows[:, 0] = ids
        return rows

    def _code_rows(self, codes: NDArray[np.int32], slot: int) -> NDArray[np.int32]:
        """Codes beyond those given are audio_pad_token_id."""
        rows = self._text_rows([slot] * len(codes))
        rows[:, 1 : 1 + codes.shape[1]] = codes
        return rows
