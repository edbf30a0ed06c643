"""What the specification says of a row, written out: no code of the state machine is used.

Its variables have the specification's names and meanings (spec voicegen.md 5.2, 5.3).
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mosstalk.models.moss_tts_delay.config import DelayConfig


@dataclass(slots=True)
class Rules:
    """The state, changed by each row. `delayed` is infinite where the staircase is not drained."""

    config: DelayConfig
    audio_length: int = 0
    delayed: float = math.inf
    is_audio: bool = False
    step: int = 0

    def text_ids(self) -> list[int]:
        """Which of the ids that mean something, and of one that does not, may be drawn."""
        config, n_vq = self.config, self.config.n_vq
        gen = config.audio_assistant_gen_slot_token_id
        delay = config.audio_assistant_delay_slot_token_id
        if self.delayed < n_vq:
            return [delay]
        if self.delayed == n_vq:
            return [config.audio_end_token_id]
        allowed = set(named_ids(config))
        if self.is_audio:
            allowed = {gen, delay}
        else:
            allowed -= {config.pad_token_id, gen, delay, config.audio_end_token_id}
        if self.step == 0:
            allowed -= {delay}
        if self.step <= n_vq:
            allowed -= {config.im_end_token_id}
        return sorted(allowed)

    def codebooks(self) -> list[int]:
        """Which draw a code."""
        return [
            i
            for i in range(self.config.n_vq)
            if self.audio_length > i and (math.isinf(self.delayed) or i >= self.delayed)
        ]

    def advance(self, text_id: int) -> None:
        """A row with this text id has been drawn."""
        config = self.config
        start, end = config.audio_start_token_id, config.audio_end_token_id
        gen = config.audio_assistant_gen_slot_token_id
        delay = config.audio_assistant_delay_slot_token_id
        if self.delayed == config.n_vq:
            self.is_audio = False
        if text_id == start:
            self.is_audio = True
        if text_id in (start, gen, delay):
            self.audio_length += 1
        if text_id == end:
            self.audio_length = 0
        if math.isinf(self.delayed) and text_id == delay:
            self.delayed = 0
        if not math.isinf(self.delayed):
            self.delayed += 1
        if self.delayed > config.n_vq:
            self.delayed = math.inf
        self.step += 1


def named_ids(config: DelayConfig) -> list[int]:
    """The ids that `Rules.text_ids` chooses from: those that mean something, and one of a word."""
    named = {
        config.pad_token_id,
        config.im_end_token_id,
        config.audio_start_token_id,
        config.audio_end_token_id,
        config.audio_assistant_gen_slot_token_id,
        config.audio_assistant_delay_slot_token_id,
    }
    taken = named | {config.im_start_token_id, config.audio_user_slot_token_id}
    word = next(i for i in range(config.vocab_size) if i not in taken)
    return sorted({word, *named})


def generation_trace(n_vq: int, gen_slots: int, pad: int) -> NDArray[np.int32]:
    """Codes [rows, n_vq] of a run with so many gen-slots (spec 5.5), where each is the number of
    its frame: START, the slots, n_vq delay-slots, END, the end of the turn."""
    frames = gen_slots + 1
    rows = np.full((1 + gen_slots + n_vq + 2, n_vq), pad, np.int32)
    for frame in range(frames):
        for codebook in range(n_vq):
            rows[1 + frame + codebook, codebook] = frame
    return rows


def small_config(n_vq: int) -> DelayConfig:
    """The published ids with a backbone that nothing is computed with."""
    return DelayConfig(
        n_vq=n_vq,
        audio_vocab_size=1024,
        audio_pad_code=1024,
        pad_token_id=151643,
        im_start_token_id=151644,
        im_end_token_id=151645,
        audio_start_token_id=151652,
        audio_end_token_id=151653,
        audio_user_slot_token_id=151654,
        audio_assistant_gen_slot_token_id=151656,
        audio_assistant_delay_slot_token_id=151662,
        sampling_rate=24_000,
        vocab_size=155_648,
        hidden_size=2,
        num_hidden_layers=1,
        intermediate_size=1,
        num_attention_heads=1,
        num_key_value_heads=1,
        head_dim=2,
        rms_norm_eps=1e-6,
        rope_theta=1e6,
        max_position_embeddings=1,
    )
