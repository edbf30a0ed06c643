"""GET /health: whether speech can be made, tried out and not assumed."""

import asyncio
import time

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from mosstalk.errors import BusyError
from mosstalk.server.errors import ApiError
from mosstalk.server.service import Service, service_of
from mosstalk.types import SpeechSettings
from mosstalk.voices import NO_VOICE

_KEPT_SECONDS = 5.0
_LIMIT_SECONDS = 10.0
_PROBE: SpeechSettings = {"max_frames": 1, "seed": 0}


class Health:
    """The result of the last look, which is kept for some seconds."""

    def __init__(self) -> None:
        self._looking = asyncio.Lock()
        self._looked = -_KEPT_SECONDS
        self._frames = -1  # of the scheduler, when it was last looked at
        self._is_well = False

    async def check(self, service: Service) -> bool:
        """Whether a frame is made within some seconds."""
        async with self._looking:
            if time.monotonic() - self._looked >= _KEPT_SECONDS:
                self._is_well = await self._look(service)
                self._looked = time.monotonic()
            return self._is_well

    async def _look(self, service: Service) -> bool:
        """Frames made since the last look are proof; else a text of one frame is spoken."""
        made, before = service.scheduler.stats().frames, self._frames
        self._frames = made
        if made > before >= 0:
            return True
        try:
            async with asyncio.timeout(_LIMIT_SECONDS):
                await _speak_a_frame(service)
        except BusyError:
            return await _makes_frames(service, made)
        except Exception:
            return False
        self._frames = service.scheduler.stats().frames
        return True


async def _speak_a_frame(service: Service) -> None:
    voice = None if service.catalogue.designs else NO_VOICE
    with service.scheduler.submit("One.", voice, **_PROBE) as stream:
        async for _ in stream:
            pass


async def _makes_frames(service: Service, made: int) -> bool:
    """Whether a scheduler that has no room for a text gets on with those that it has."""
    deadline = time.monotonic() + _LIMIT_SECONDS
    while time.monotonic() < deadline:
        if service.scheduler.stats().frames > made:
            return True
        await asyncio.sleep(0.05)
    return False


async def health(request: Request) -> Response:
    """The endpoint; needs no key and tells little."""
    service = service_of(request)
    if not await request.app.state.health.check(service):
        raise ApiError(503, "no frame was made in time", "unhealthy", retry_after=_KEPT_SECONDS)
    stats = service.scheduler.stats()
    return JSONResponse({"status": "ok", "streams": stats.streams, "queued": stats.queued})
