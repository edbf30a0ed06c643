"""Many requests at a time: they join and leave a running batch, and share passes over the weights.

A round makes a frame for every stream. Between two rounds requests join, a bounded number of prompt
rows is prefilled and finished frames are decoded, so that nobody waits much longer than a frame.
"""

import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Condition, Thread
from types import TracebackType
from typing import Self, TypeVar, Unpack

from mosstalk.engine import Speaker, VoiceChoice
from mosstalk.errors import BusyError, TimeLimitError, UsageError
from mosstalk.scheduled_stream import ScheduledStream
from mosstalk.speaking import (
    Decode,
    MakeFrame,
    Prefill,
    SpeechRequest,
    Studio,
    Talk,
    Work,
    decode,
    make_frames,
    prefill,
    resume,
    speak,
)
from mosstalk.types import AudioChunk, SpeechSettings

# Of one round. Prompt rows take about as long as a frame of eight streams: a row of a prompt goes
# through the global transformer once, a frame's through the local one seventeen times as well.
_PREFILL_ROWS = 32
_DECODE_FRAMES = 16
_LEAST_RETRY_SECONDS = 1.0
_KEPT_DURATIONS = 32  # of the requests done last, to guess how long others take

W = TypeVar("W", bound=Work)


@dataclass(frozen=True, slots=True)
class SchedulerStats:
    """What a scheduler does and has done.

    Attributes:
        streams: requests being spoken.
        queued: requests that wait for one of these to end.
        done, failed, cancelled: requests that have ended, by how.
        refused: requests for which there was no room.
        frames: made.
        rounds: passes that made them.
        audio_seconds: handed to streams.
        work_seconds: spent on prompts, frames and decoding.
    """

    streams: int = 0
    queued: int = 0
    done: int = 0
    failed: int = 0
    cancelled: int = 0
    refused: int = 0
    frames: int = 0
    rounds: int = 0
    audio_seconds: float = 0.0
    work_seconds: float = 0.0


@dataclass(slots=True)
class _Totals:
    """The parts of SchedulerStats that only grow."""

    done: int = 0
    failed: int = 0
    cancelled: int = 0
    refused: int = 0
    frames: int = 0
    rounds: int = 0
    audio_seconds: float = 0.0
    work_seconds: float = 0.0


@dataclass(slots=True, eq=False)
class _Member:
    """A request, from when it is taken on until its stream ends."""

    request: SpeechRequest
    stream: ScheduledStream
    deadline: float  # monotonic seconds
    talk: Talk | None = None  # once it is being spoken
    work: Work | None = None  # that it waits for
    waits_since: float = 0.0  # monotonic seconds, as is the next
    joined: float = 0.0


class Scheduler:
    """Speaks many texts at a time on a thread of its own, with the same samples as `Speaker.say`.

    Args:
        speaker: may still be used by itself; then both take turns.
        max_streams: texts spoken at a time.
        max_queue: requests that wait beside these, first come, first served.
        time_limit: seconds that a request may take, waiting included; None: as long as it needs.

    Raises:
        UsageError: a limit is outside its range.
    """

    def __init__(
        self,
        speaker: Speaker,
        max_streams: int = 8,
        max_queue: int = 64,
        time_limit: float | None = None,
    ) -> None:
        if max_streams < 1:
            raise UsageError(f"max_streams is {max_streams}, but must be at least 1")
        if max_queue < 0:
            raise UsageError(f"max_queue is {max_queue}, but must be at least 0")
        if time_limit is not None and not time_limit > 0:
            raise UsageError(f"time_limit is {time_limit}, but must be more than 0 seconds")
        self.speaker = speaker
        self.max_streams = max_streams
        self.max_queue = max_queue
        self.time_limit = time_limit
        with speaker.lock:
            seats = speaker.model.seats(max_streams), speaker.codec.seats(max_streams)
        self._studio = Studio(speaker.model, speaker.codec, *seats)
        self._changed = Condition()  # guards what follows
        self._queue: deque[_Member] = deque()
        self._members: list[_Member] = []  # being spoken, in the order in which they joined
        self._is_closing = False
        self._totals = _Totals()
        self._durations: deque[float] = deque(maxlen=_KEPT_DURATIONS)
        self._thread = Thread(target=self._work, name="mosstalk scheduler", daemon=True)
        self._thread.start()

    def submit(
        self, text: str, voice: VoiceChoice = None, **options: Unpack[SpeechSettings]
    ) -> ScheduledStream:
        """Take on a request; same arguments as `Speaker.stream`. Returns at once.

        Raises:
            UsageError: as `Speaker.stream`. What only the prompt shows is raised by the stream.
            BusyError: there is no room in the queue, or the scheduler is closed.
        """
        with self._changed:
            self._check_room()
        request = self.speaker.request(text, voice, **options)
        stream = ScheduledStream(self.speaker.summarise(request), self._wake)
        limit = float("inf") if self.time_limit is None else self.time_limit
        member = _Member(request, stream, stream.progress.started + limit)
        with self._changed:
            self._check_room()
            self._queue.append(member)
            self._changed.notify()
        return stream

    def stats(self) -> SchedulerStats:
        """A snapshot, for metrics."""
        with self._changed:
            totals = {name: getattr(self._totals, name) for name in _Totals.__slots__}
            return SchedulerStats(len(self._members), len(self._queue), **totals)

    def close(self, finish: bool = True) -> None:
        """End all work and the thread. Nothing is taken on any more.

        `finish`: speak what was taken on, and keep it until it is read; else cancel it.
        """
        with self._changed:
            self._is_closing = True
            left = [] if finish else [*self._members, *self._queue]
            self._changed.notify()
        for member in left:
            member.stream.close()
        self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close(finish=kind is None)

    def _check_room(self) -> None:
        if self._is_closing:
            raise BusyError("the scheduler is closed; nothing is taken on", self._retry_after())
        waiting = sum(not member.stream.is_closed for member in self._queue)
        free = self.max_streams - len(self._members)
        if waiting >= self.max_queue + free:
            self._totals.refused += 1
            seconds = self._retry_after()
            raise BusyError(
                f"{len(self._members)} texts are being spoken and {waiting} wait; try again in "
                f"{seconds:.0f} s",
                seconds,
            )

    def _retry_after(self) -> float:
        """Seconds until the queue has moved on by one, by how long requests took."""
        durations: Sequence[float] = self._durations
        if not durations:
            now = time.monotonic()
            durations = [now - member.joined for member in self._members] or [0.0]
        return max(_LEAST_RETRY_SECONDS, sum(durations) / len(durations) / self.max_streams)

    def _wake(self) -> None:
        with self._changed:
            self._changed.notify()

    # What follows runs on the scheduler's thread.

    def _work(self) -> None:
        try:
            while self._wait():
                self._round()
        except Exception as error:  # nobody may wait for ever
            with self._changed:
                self._is_closing = True
                left = [*self._members, *self._queue]
            for member in left:
                member.stream.end(error)
            raise

    def _wait(self) -> bool:
        """Until something can be done; False when all is done for good."""
        with self._changed:
            while True:
                self._admit()
                if self._is_closing and not self._members:
                    return False
                now = time.monotonic()
                if any(self._can_go_on(member, now) for member in self._members):
                    return True
                deadlines = [member.deadline for member in self._members]
                next_one = min(deadlines, default=float("inf"))
                self._changed.wait(None if next_one == float("inf") else max(0, next_one - now))

    def _admit(self) -> None:
        """Let the first of the queue join, as many as there is room for."""
        now = time.monotonic()
        for member in [m for m in self._queue if m.stream.is_closed or m.deadline <= now]:
            self._queue.remove(member)
            self._count_end(member, self._overdue(member))
        while self._queue and len(self._members) < self.max_streams:
            member = self._queue.popleft()
            member.joined = now
            member.talk = speak(member.request, self._studio, member.stream.progress)
            self._members.append(member)

    def _can_go_on(self, member: _Member, now: float) -> bool:
        if member.stream.is_closed or member.deadline <= now or member.work is None:
            return True
        return self._is_closing or member.stream.has_room

    def _round(self) -> None:
        """A frame of every stream, and what comes before and after it."""
        now = time.monotonic()
        for member in list(self._members):
            if member.stream.is_closed or member.deadline <= now:
                self._leave(member, self._overdue(member))
            elif member.work is None:
                self._advance(member)
        self._do(Prefill, lambda works: prefill(works, _PREFILL_ROWS))
        self._do(MakeFrame, lambda works: make_frames(works, self._studio.model))
        self._do(Decode, lambda works: decode(_first(works), self._studio.codec))

    def _do(self, kind: type[W], act: Callable[[list[W]], None]) -> None:
        """Do all work of one kind together; those that it completes go on to what comes next."""
        members = [m for m in self._members if isinstance(m.work, kind)]
        members = [m for m in members if self._is_closing or m.stream.has_room]
        members.sort(key=_turn)
        if not members:
            return
        works = [member.work for member in members if isinstance(member.work, kind)]
        started = time.perf_counter()
        with self.speaker.lock:
            act(works)
        seconds = time.perf_counter() - started
        with self._changed:
            self._totals.work_seconds += seconds
            if kind is MakeFrame:
                self._totals.rounds += 1
                self._totals.frames += sum(
                    isinstance(work, MakeFrame) and work.codes is not None for work in works
                )
        for member, work in zip(members, works, strict=True):
            member.stream.add_work(seconds / len(works))
            if work.is_done:
                self._advance(member)

    def _advance(self, member: _Member) -> None:
        """Go on with a text until it waits for work, and hand out the audio on the way."""
        assert member.talk is not None
        try:
            with self.speaker.lock:
                item = resume(member.talk, member.work)
                while isinstance(item, AudioChunk):
                    self._hand_out(member, item)
                    item = resume(member.talk)
        except Exception as error:
            self._leave(member, error)
            return
        member.work, member.waits_since = item, time.monotonic()
        if item is None:
            self._leave(member)

    def _hand_out(self, member: _Member, chunk: AudioChunk) -> None:
        member.stream.deliver(chunk)
        with self._changed:
            self._totals.audio_seconds += chunk.samples.shape[1] / chunk.sample_rate

    def _leave(self, member: _Member, error: Exception | None = None) -> None:
        """Free a member's place; its stream ends."""
        assert member.talk is not None
        with self.speaker.lock:
            member.talk.close()
        with self._changed:
            self._members.remove(member)
            self._durations.append(time.monotonic() - member.joined)
            self._count_end(member, error)

    def _count_end(self, member: _Member, error: Exception | None) -> None:
        if member.stream.is_closed:
            self._totals.cancelled += 1
        elif error is not None:
            self._totals.failed += 1
        else:
            self._totals.done += 1
        member.stream.end(error)

    def _overdue(self, member: _Member) -> TimeLimitError:
        return TimeLimitError(
            f"the request was not done within {self.time_limit} s, its limit; ask for less text "
            "or try again when there is less to do"
        )


def _turn(member: _Member) -> tuple[bool, float]:
    """Who has heard nothing yet comes first, then who has waited longest."""
    return member.stream.progress.first_audio is not None, member.waits_since


def _first(works: list[Decode]) -> list[Decode]:
    """As many as a round decodes, and at least one: the others come first in the next."""
    first: list[Decode] = []
    frames = 0
    for work in works:
        frames += len(work.codes)
        if first and frames > _DECODE_FRAMES:
            break
        first.append(work)
    return first
