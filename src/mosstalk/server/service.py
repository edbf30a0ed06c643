"""What the endpoints share: one model, one scheduler, their figures and their voices."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from starlette.requests import HTTPConnection
from starlette.types import Receive

from mosstalk.engine import Speaker
from mosstalk.scheduled_stream import ScheduledStream
from mosstalk.scheduler import Scheduler
from mosstalk.server.catalogue import Catalogue
from mosstalk.server.metrics import Metrics
from mosstalk.types import SpeechSettings

T = TypeVar("T")


class Service:
    """A loaded model that takes requests."""

    def __init__(self, speaker: Speaker, scheduler: Scheduler, model: str) -> None:
        self.speaker = speaker
        self.scheduler = scheduler
        self.catalogue = Catalogue(speaker, model)
        self.metrics = Metrics(scheduler)
        # Recordings are encoded one at a time: that takes the model's own threads, and its lock.
        self.studio = ThreadPoolExecutor(1, "mosstalk recordings")

    async def submit(
        self, text: str, voice: str | None, settings: SpeechSettings
    ) -> ScheduledStream:
        """A stream, which the caller must close. Raises ApiError and MosstalkError."""

        def submit() -> ScheduledStream:
            return self.scheduler.submit(text, self.catalogue.choose(voice), **settings)

        # On a thread, as a long text takes a while to divide. Who is cancelled meanwhile cannot
        # close the stream, so that it is closed when it is there.
        opening = asyncio.get_running_loop().run_in_executor(None, submit)
        try:
            return await asyncio.shield(opening)
        except asyncio.CancelledError:
            opening.add_done_callback(_close_unclaimed)
            raise

    def close(self, *, finish: bool) -> None:
        """End the scheduler; see there."""
        self.scheduler.close(finish=finish)
        self.studio.shutdown(wait=False, cancel_futures=True)


class ClientGone(Exception):
    """The client has closed the connection: there is nobody to answer."""


def service_of(connection: HTTPConnection) -> Service:
    """The service that a request is made to."""
    service = connection.app.state.service
    assert isinstance(service, Service)
    return service


async def unless_gone(receive: Receive, work: Coroutine[Any, Any, T]) -> T:
    """The result of `work`, which is cancelled when the client hangs up.

    `receive` is that of a request whose body has been read. Raises ClientGone.
    """
    working = asyncio.ensure_future(work)
    watching = asyncio.ensure_future(_hung_up(receive))
    try:
        await asyncio.wait({working, watching}, return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise ClientGone
        return working.result()
    finally:
        working.cancel()
        watching.cancel()
        await asyncio.gather(working, watching, return_exceptions=True)


async def in_thread(act: Callable[..., T], *arguments: Any) -> T:
    """What a function returns that would hold up the event loop."""
    return await asyncio.get_running_loop().run_in_executor(None, act, *arguments)


async def _hung_up(receive: Callable[[], Awaitable[Any]]) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _close_unclaimed(opening: asyncio.Future[ScheduledStream]) -> None:
    if not opening.cancelled() and opening.exception() is None:
        opening.result().close()
