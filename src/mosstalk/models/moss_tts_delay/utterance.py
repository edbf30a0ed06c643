"""One text of the delay family, being spoken: a run of rows, begun again where no speech comes."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from mosstalk.compute.seats import Seats
from mosstalk.models.moss_tts_delay.delay_pattern import Staircase
from mosstalk.models.moss_tts_delay.prompt import Prompt
from mosstalk.models.moss_tts_delay.run import DelayRun
from mosstalk.models.moss_tts_delay.sampling import DelaySampling, retry_seed
from mosstalk.models.moss_tts_delay.session import DelaySession, step_together
from mosstalk.models.speech_model import NextFrame

# About one run in fifty begins with text instead of speech (spec 5.7): so many in a row are not
# chance, and the last is left to go where it goes.
MAX_RETRIES = 4


class DelayUtterance:
    """One text whose prompt is prefilled in `prefix`, a session that others may go on from too.

    Its own session has room for `budget` rows; it is that of a seat, where there is one.

    Attributes:
        lead_in: codes [frames, n_vq] of a recording that speech goes on from.
        retries: runs that began with text and were begun again with a derived seed.
    """

    def __init__(
        self,
        prefix: DelaySession,
        prompt: Prompt,
        budget: int,
        start: DelayRun,
        sampling: DelaySampling,
        seats: Seats | None = None,
    ) -> None:
        config = start.state.config
        self.lead_in = prompt.lead_in
        self.retries = 0
        self._prefix = prefix
        self._rows = prompt.rows
        self._budget = budget
        self._seats = seats
        self._seat = None if seats is None else seats.take(budget)
        self._session: DelaySession | None = None
        self._start = self._run = start
        self._sampling = self._first_sampling = sampling
        self._no_rows = self._staircase = Staircase(config.n_vq, config.audio_pad_code)

    @property
    def session(self) -> DelaySession:
        """Holds the whole prompt, or all of it that is prefilled."""
        return self._session or self._prefix

    @property
    def rows_left(self) -> int:
        """Rows of the prompt that are still to be computed."""
        return max(0, len(self._rows) - self.session.cached_positions)

    @property
    def has_stopped(self) -> bool:
        """Whether no frame comes any more."""
        return self._run.state.stop is not None

    def prefill(self, max_rows: int) -> None:
        """Compute up to `max_rows` more rows of the prompt."""
        if self._session is None:
            self._prefix.extend(self._rows, max_rows)
            if not self.rows_left:
                self._session = self._prefix.fork(self._budget, self._seat)

    def next_frame(self) -> NDArray[np.int32] | None:
        """Codes [n_vq] of the next frame; None when the model stops."""
        self.prefill(self.rows_left)
        while not self.has_stopped:
            frame, row = self.draw()
            if row is not None:
                self.session.step(row)
            if frame is not None:
                return frame
            self.begin_again_if_failed()
        return None

    def draw(self) -> tuple[NDArray[np.int32] | None, NDArray[np.int32] | None]:
        """Draw one row: the frame that it completes, if any; the row, if more are to come."""
        self._run, row = self._run.draw(self.session, self._sampling)
        self._staircase, frame = self._staircase.push(row[1:])
        return frame, None if self.has_stopped else row

    def begin_again_if_failed(self) -> None:
        """After rows without a frame: the prompt is cached, its last row is computed once more."""
        state = self._run.state
        if not (state.began_in_text or state.stop == "no_audio") or self.retries == MAX_RETRIES:
            return
        self.retries += 1
        seed = retry_seed(self._first_sampling.seed, self.retries)
        self._sampling = replace(self._first_sampling, seed=seed)
        self.session.prefill(self._rows, reuse_rows=len(self._rows) - 1)
        self._run, self._staircase = self._start, self._no_rows

    def close(self) -> None:
        """Give the seat back."""
        if self._seats is not None and self._seat is not None:
            self._seats.give_back(self._seat)
        self._seat = None


def next_frames(utterances: Sequence[DelayUtterance]) -> list[NextFrame]:
    """One row of each, and the frame that it completes; seats share a pass over the backbone."""
    made: list[NextFrame] = [None] * len(utterances)
    groups: dict[int, list[tuple[int, NDArray[np.int32]]]] = {}
    for i, utterance in enumerate(utterances):
        if utterance.has_stopped:
            continue
        made[i], row = utterance.draw()
        if row is not None:
            groups.setdefault(id(utterance.session.state), []).append((i, row))
    for group in groups.values():
        sessions = [utterances[i].session for i, _ in group]
        errors = step_together(sessions, [row for _, row in group])
        for (i, _), error in zip(group, errors, strict=True):
            made[i] = made[i] if error is None else error
    for frame, utterance in zip(made, utterances, strict=True):
        if frame is None:
            utterance.begin_again_if_failed()
    return made
