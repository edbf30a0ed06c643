"""Prompts of the delay family: text and recordings to rows (spec voicegen.md 4).

The template is made of parts, and never filled in by replacing text, so what a user writes cannot
change it. Text between two special ids is encoded as one string: punctuation swallows the newline
after it, so pieces encoded apart would have other ids.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mosstalk.errors import UsageError
from mosstalk.models.moss_tts_delay.config import DelayConfig
from mosstalk.models.moss_tts_delay.delay_pattern import Codes, delayed
from mosstalk.text.bpe_tokenizer import BpeTokenizer

Part = str | Codes  # text, or the codes [frames, n_vq] of a recording


@dataclass(frozen=True, slots=True)
class Prompt:
    """What a run starts from.

    Attributes:
        rows: int32 [n, 1 + n_vq].
        num_shared: the first rows, which are the same for every text.
        lead_in: codes [frames, n_vq] that the run goes on from; none in most prompts.
    """

    rows: NDArray[np.int32]
    num_shared: int
    lead_in: Codes


@dataclass(frozen=True, slots=True)
class Fields:
    """What a prompt says besides text and references; None and "" are printed as `None`.

    `tokens` is the wanted length in frames, `language` an English name.
    """

    instruction: str | None = None
    tokens: int | None = None
    quality: str | None = None
    sound_event: str | None = None
    ambient_sound: str | None = None
    language: str | None = None

    def lines(self) -> list[tuple[str, object]]:
        """Label and value of each field, in the template's order."""
        return [
            ("Instruction", self.instruction),
            ("Tokens", self.tokens),
            ("Quality", self.quality),
            ("Sound Event", self.sound_event),
            ("Ambient Sound", self.ambient_sound),
            ("Language", self.language),
        ]


class PromptBuilder:
    """Makes rows of a template's parts."""

    def __init__(self, config: DelayConfig, tokenizer: BpeTokenizer) -> None:
        self._config = config
        self._encode = tokenizer.encode

    def build(
        self, references: Sequence[Part], lines: Sequence[tuple[str, object]], text: str
    ) -> Prompt:
        """The user's turn, and the beginning of the assistant's, which the model takes up.

        `references` stands under its label, then come `lines` of label and value, then the text.
        """
        *before, label = _merged(
            ["user\n<user_inst>\n- Reference(s):\n", *references, "\n", _fields(lines), "- Text"]
        )
        assert isinstance(label, str), label
        config, encode = self._config, self._encode
        shared = [self._text_rows([config.im_start_token_id])]
        for part in before:
            if isinstance(part, str):
                shared.append(self._text_rows(encode(part)))
            else:
                shared.append(self._heard_rows(part))
        # The label's last token is not shared: newlines at the start of a text join it.
        num_shared = sum(map(len, shared)) + len(encode(label))
        ids = (
            *encode(f"{label}:\n{text}\n</user_inst>"),
            config.im_end_token_id,
            *encode("\n"),
            config.im_start_token_id,
            *encode("assistant\n"),
        )
        rows = np.concatenate([*shared, self._text_rows(ids)])
        return Prompt(rows, num_shared, np.empty((0, config.n_vq), np.int32))

    def spoken(self, prompt: Prompt, codes: Codes) -> Prompt:
        """The prompt whose answer has begun with `codes` [frames, n_vq], and goes on.

        The last codes of the staircase are left to the model, as in the reference.
        """
        config = self._config
        start = self._text_rows([config.audio_start_token_id])
        rows = self._text_rows([config.audio_assistant_gen_slot_token_id] * len(codes))
        rows[:, 1:] = self._delayed(codes)[: len(codes)]
        lead_in = codes[:, : config.n_vq].astype(np.int32)
        return replace(prompt, rows=np.concatenate([prompt.rows, start, rows]), lead_in=lead_in)

    def with_audio_start(self, prompt: Prompt) -> Prompt:
        """The prompt with audio start at its end, which leaves the model no choice but speech."""
        return self.spoken(prompt, np.empty((0, self._config.n_vq), np.int32))

    def _heard_rows(self, codes: Codes) -> NDArray[np.int32]:
        """A recording in the user's turn."""
        config = self._config
        start, end = config.audio_start_token_id, config.audio_end_token_id
        held = self._delayed(codes)
        rows = self._text_rows([start, *[config.audio_user_slot_token_id] * len(held), end])
        rows[1:-1, 1:] = held
        return rows

    def _delayed(self, codes: Codes) -> Codes:
        """Codes of the first n_vq codebooks as rows; none for a recording of no frames."""
        config = self._config
        if codes.shape[1] < config.n_vq:
            raise UsageError(
                f"a voice has {codes.shape[1]} codebooks, but this model needs {config.n_vq}; "
                "make it again with this model"
            )
        if not len(codes):
            return np.empty((0, config.n_vq), np.int32)
        return delayed(codes[:, : config.n_vq], config.audio_pad_code)

    def _text_rows(self, ids: Sequence[int]) -> NDArray[np.int32]:
        rows = np.full((len(ids), 1 + self._config.n_vq), self._config.audio_pad_code, np.int32)
        rows[:, 0] = ids
        return rows


def reference_parts(references: Sequence[Codes | None], absent: str | None = None) -> list[Part]:
    """The references, one for each speaker from [S1] on; None for a speaker without one.

    `absent` is printed for such a speaker; None leaves the speaker out. Without references the
    only part is `None`.
    """
    blocks: list[list[Part]] = []
    for speaker, codes in enumerate(references, start=1):
        if codes is not None:
            blocks.append([f"[S{speaker}]:\n", codes])
        elif absent is not None:
            blocks.append([f"[S{speaker}]: {absent}"])
    if not blocks:
        return ["None"]
    return [*blocks[0], *(part for block in blocks[1:] for part in ("\n", *block))]


def _fields(lines: Sequence[tuple[str, object]]) -> str:
    return "".join(f"- {label}:\n{None if value == '' else value}\n" for label, value in lines)


def _merged(parts: Sequence[Part]) -> list[Part]:
    """The parts with neighbouring texts joined."""
    merged: list[Part] = []
    for part in parts:
        if merged and isinstance(part, str) and isinstance(merged[-1], str):
            merged[-1] += part
        else:
            merged.append(part)
    return merged
