"""What the next row may hold: the control flow of a run as a value (spec voicegen.md 5.2, 5.3).

The text channel says what happens: audio start, a gen-slot for each frame, delay-slots while the
last codes of the staircase come out, audio end, then the end of the turn.

    state = DelayState.start(config, prompt.rows[:, 0], Limits(max_frames=375))
    while state.stop is None:
        decision = state.decide()
        text_id, codes = ...  # drawn as `decision` allows, from the logits of the last row
        state, row = state.advance(text_id, codes)
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from mosstalk.models.moss_tts_delay.config import DelayConfig

# end: the model said so; max_frames: the cap was reached; no_audio: it ended before a frame.
RunStop = Literal["end", "max_frames", "no_audio"]


@dataclass(frozen=True, slots=True)
class Limits:
    """How long a run may become. The reference has only a cap on rows.

    A run that reaches `max_frames` is made to drain the staircase and end. Below `min_frames`
    the model cannot end, unless the cap is lower.
    """

    max_frames: int
    min_frames: int = 0
    max_text_rows: int = 32  # what the model writes is not used

    def max_rows(self, n_vq: int) -> int:
        """Rows that a run can take: start, frames, the rest of the staircase, two ends."""
        return self.max_text_rows + self.max_frames + n_vq + 2


@dataclass(frozen=True, slots=True)
class Decision:
    """What may be drawn for the next row.

    Attributes:
        allowed: the text ids to choose from; None: all but `banned`.
        banned: text ids that must not be chosen.
        codebooks: those to draw a code of; the others hold the pad code.
    """

    allowed: tuple[int, ...] | None
    banned: tuple[int, ...]
    codebooks: range

    @property
    def forced(self) -> int | None:
        """The only text id that can be chosen, if it is so."""
        return self.allowed[0] if self.allowed and len(self.allowed) == 1 else None


@dataclass(frozen=True, slots=True)
class DelayState:
    """Where a run stands. `advance` returns the next state; nothing here is ever changed.

    Attributes:
        audio_length: rows since audio start, with it; 0 outside audio.
        draining: delay-slots so far; None while frames are being opened.
        is_audio: whether the text channel holds slots only.
        step: rows made.
        frames: frames opened in this run; without those of a continued recording.
        text_rows: rows of plain text made.
        stop: why the run is over; None while it goes on.
    """

    config: DelayConfig
    limits: Limits
    audio_length: int = 0
    draining: int | None = None
    is_audio: bool = False
    step: int = 0
    frames: int = 0
    text_rows: int = 0
    stop: RunStop | None = None

    @classmethod
    def start(
        cls, config: DelayConfig, text_ids: Sequence[int] | NDArray[np.int32], limits: Limits
    ) -> "DelayState":
        """The state after a prompt with these text ids.

        A prompt that ends in audio start or a gen-slot is continued; otherwise the model has to
        choose audio start itself, which it may fail to do: see `began_in_text`.
        """
        ids = np.asarray(text_ids)
        starts = np.flatnonzero(ids == config.audio_start_token_id)
        last = (config.audio_start_token_id, config.audio_assistant_gen_slot_token_id)
        if not len(starts) or ids[-1] not in last:
            return cls(config, limits)
        return cls(config, limits, audio_length=len(ids) - int(starts[-1]), is_audio=True)

    @property
    def began_in_text(self) -> bool:
        """Whether the first row was not the audio start that it should have been.

        Such a run seldom comes to speech: with another seed it is likely to.
        """
        return self.step > 0 and not self.is_audio and not self.frames

    def decide(self) -> Decision:
        """What may be drawn for the next row."""
        config = self.config
        allowed: tuple[int, ...] | None = None
        banned: tuple[int, ...] = ()
        if self.draining is not None:
            drained = self.draining == config.n_vq
            slot = config.audio_assistant_delay_slot_token_id
            allowed = (config.audio_end_token_id if drained else slot,)
        elif self.is_audio:
            allowed = self._slots()
        else:
            banned = self._banned()
        return Decision(allowed, banned, self._codebooks)

    def advance(
        self, text_id: int, codes: Sequence[int] | NDArray[np.int32]
    ) -> tuple["DelayState", NDArray[np.int32]]:
        """The state after the next row, and that row [1 + n_vq].

        `text_id` and the codes, one for each codebook of the decision, must be as `decide` says.
        """
        codebooks, config = self._codebooks, self.config
        assert len(codes) == len(codebooks), (len(codes), codebooks)
        row = np.full(1 + config.n_vq, config.audio_pad_code, np.int32)
        row[0] = text_id
        row[1 + codebooks.start : 1 + codebooks.stop] = codes
        return self._after(text_id), row

    @property
    def _codebooks(self) -> range:
        return range(self.draining or 0, min(self.audio_length, self.config.n_vq))

    def _after(self, text_id: int) -> "DelayState":
        config = self.config
        is_slot = text_id in (
            config.audio_start_token_id,
            config.audio_assistant_gen_slot_token_id,
            config.audio_assistant_delay_slot_token_id,
        )
        ends_audio = text_id == config.audio_end_token_id
        draining = self.draining
        if draining is None and text_id == config.audio_assistant_delay_slot_token_id:
            draining = 0
        if draining is not None:
            draining = None if draining == config.n_vq else draining + 1
        is_plain = not (is_slot or ends_audio or text_id == config.im_end_token_id)
        after = replace(
            self,
            audio_length=0 if ends_audio else self.audio_length + is_slot,
            draining=draining,
            is_audio=not ends_audio and (self.is_audio or text_id == config.audio_start_token_id),
            step=self.step + 1,
            frames=self.frames + (self.audio_length > 0 and self.draining is None),
            text_rows=self.text_rows + is_plain,
        )
        return replace(after, stop=after._stop_after(text_id))

    def _slots(self) -> tuple[int, ...]:
        """Slots that may open the next frame; a delay-slot makes it the last."""
        gen = self.config.audio_assistant_gen_slot_token_id
        delay = self.config.audio_assistant_delay_slot_token_id
        if self.frames + 1 >= self.limits.max_frames:
            return (delay,)
        if self.step == 0 or self.frames + 1 < self.limits.min_frames:
            return (gen,)
        return (gen, delay)

    def _banned(self) -> tuple[int, ...]:
        config = self.config
        slots = (
            config.pad_token_id,
            config.audio_assistant_gen_slot_token_id,
            config.audio_assistant_delay_slot_token_id,
            config.audio_end_token_id,
        )
        must_go_on = self.step <= config.n_vq or self.frames < self.limits.min_frames
        return (*slots, config.im_end_token_id) if must_go_on else slots

    def _stop_after(self, text_id: int) -> RunStop | None:
        limits = self.limits
        if text_id == self.config.im_end_token_id or self.text_rows > limits.max_text_rows:
            return "end" if self.frames else "no_audio"
        full = text_id == self.config.audio_end_token_id and self.frames >= limits.max_frames
        if full or self.step >= limits.max_rows(self.config.n_vq):
            return "max_frames"
        return None
