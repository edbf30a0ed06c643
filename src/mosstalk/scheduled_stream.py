"""A stream of audio that a scheduler fills on its own thread."""

import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from threading import Condition
from types import TracebackType
from typing import Self

from mosstalk.stream import Progress
from mosstalk.types import AudioChunk, Summary

# Audio that waits for its consumer before no more is made: enough that who plays it back does not
# hold a place in the batch longer than need be, little enough to keep for every stream.
BUFFER_SECONDS = 20.0


class ScheduledStream:
    """An iterator of AudioChunk for one consumer, on any thread: `for`, or `async for`.

    Closing it, or leaving its `with` block, stops all work and frees its place; a stream that is
    not read to its end must be closed. `progress` may be read at any time; `summary` is there once
    the stream has ended or is closed. Reading it raises what its request failed with, once.
    """

    def __init__(
        self,
        summarise: Callable[[Progress, float], Summary],
        wake: Callable[[], None],
    ) -> None:
        self.progress = Progress()
        self._summarise = summarise
        self._wake = wake  # the scheduler, which waits for room or for a stream to be closed
        self._changed = Condition()
        self._arrived: Callable[[], object] | None = None  # of an event loop that waits
        self._chunks: deque[AudioChunk] = deque()
        self._buffered_seconds = 0.0
        self._work_seconds = 0.0
        self._error: Exception | None = None
        self._has_ended = False
        self._is_closed = False

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> AudioChunk:
        with self._changed:
            while not self._is_ready:
                self._changed.wait()
            chunk = self._take()
        self._wake()
        if chunk is None:
            raise StopIteration
        return chunk

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> AudioChunk:
        import asyncio

        loop = asyncio.get_running_loop()
        while True:
            arrival = asyncio.Event()
            with self._changed:
                if self._is_ready:
                    chunk = self._take()
                    break
                self._arrived = lambda: loop.call_soon_threadsafe(arrival.set)  # noqa: B023
            await arrival.wait()
        self._wake()
        if chunk is None:
            raise StopAsyncIteration
        return chunk

    def close(self) -> None:
        """Stop now: the rest is not made, and what was not read is dropped."""
        with self._changed:
            self._is_closed = self._has_ended = True
            self._chunks.clear()
            self._tell()
        self._wake()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def summary(self) -> Summary:
        """What was made; `cancelled` is its reason to stop while the stream goes on."""
        return self._summarise(self.progress, self._work_seconds)

    # What follows is the scheduler's side.

    @property
    def is_closed(self) -> bool:
        """Whether the consumer has closed it."""
        return self._is_closed

    @property
    def has_room(self) -> bool:
        """Whether its consumer keeps up."""
        with self._changed:
            return self._buffered_seconds < BUFFER_SECONDS

    def deliver(self, chunk: AudioChunk) -> None:
        """Hand audio to the consumer."""
        with self._changed:
            if self._is_closed:
                return
            if self.progress.first_audio is None:
                self.progress.first_audio = time.monotonic()
            self.progress.seconds += _seconds(chunk)
            self._buffered_seconds += _seconds(chunk)
            self._chunks.append(chunk)
            self._tell()

    def end(self, error: Exception | None = None) -> None:
        """No more audio comes; the consumer is told why after the last."""
        with self._changed:
            if not self._is_closed:
                self._error = error
            self._has_ended = True
            self._tell()

    def add_work(self, seconds: float) -> None:
        """Count its share of the time that a pass took."""
        self._work_seconds += seconds

    @property
    def _is_ready(self) -> bool:
        return bool(self._chunks) or self._has_ended

    def _take(self) -> AudioChunk | None:
        """The next chunk; None after the last. Raises the request's error once."""
        if self._chunks:
            chunk = self._chunks.popleft()
            self._buffered_seconds -= _seconds(chunk)
            return chunk
        error, self._error = self._error, None
        if error is not None:
            raise error
        return None

    def _tell(self) -> None:
        self._changed.notify_all()
        arrived, self._arrived = self._arrived, None
        if arrived is not None:
            with suppress(RuntimeError):  # the event loop is closed: nobody waits
                arrived()


def _seconds(chunk: AudioChunk) -> float:
    seconds: float = chunk.samples.shape[1] / chunk.sample_rate
    return seconds
