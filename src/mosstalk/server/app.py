"""The endpoints, put together."""

import mimetypes
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route, WebSocketRoute
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mosstalk.errors import MosstalkError
from mosstalk.server.errors import ApiError, answer_error
from mosstalk.server.guard import Guard
from mosstalk.server.health import Health, health
from mosstalk.server.live import live
from mosstalk.server.log import RequestLog
from mosstalk.server.metrics import CONTENT_TYPE
from mosstalk.server.schema import openapi
from mosstalk.server.service import Service, in_thread, service_of
from mosstalk.server.settings import ServerSettings
from mosstalk.server.speech import speech
from mosstalk.server.voices import add_voice, delete_voice, design_voices, list_voices

PAGE = Path(__file__).parent / "page"
# Everything from this server, nothing from anywhere else; audio may also come from memory.
_CONTENT_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "media-src 'self' blob:; connect-src 'self'; worker-src 'self'; font-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_PAGE_HEADERS = (
    (b"content-security-policy", _CONTENT_POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cache-control", b"no-cache"),
)


def build_app(service: Service, settings: ServerSettings, page: Path = PAGE) -> ASGIApp:
    """The server as an ASGI application; `page` is served at / where it has an index.html.

    When it ends, the streams that are still open are cancelled: who runs it lets them finish first.
    """

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        yield
        await in_thread(lambda: service.close(finish=False))

    kinds = (ApiError, MosstalkError, HTTPException, Exception)
    inner = Starlette(
        routes=_routes(),
        lifespan=lifespan,
        exception_handlers=dict.fromkeys(kinds, answer_error),
    )
    if (page / "index.html").is_file():  # last, so that a wrong method stays one
        inner.router.default = _Page(page, inner.router.not_found)
    guard = Guard(inner, settings)
    inner.state.service = service
    inner.state.guard = guard
    inner.state.health = Health()
    app: ASGIApp = guard
    if settings.origins:
        app = CORSMiddleware(
            guard,
            allow_origins=settings.origins,
            allow_methods=["GET", "POST", "DELETE"],
            allow_headers=["Authorization", "Content-Type"],
            expose_headers=["X-Seed", "X-Request-Id", "Retry-After"],
        )
    return RequestLog(app, service.metrics)


def _routes() -> list[BaseRoute]:
    return [
        Route("/v1/audio/speech", speech, methods=["POST"]),
        Route("/v1/models", models),
        Route("/v1/models/{model}", model),
        Route("/v1/audio/voices", list_voices, methods=["GET"]),
        Route("/v1/audio/voices", add_voice, methods=["POST"]),
        Route("/v1/audio/voices/design", design_voices, methods=["POST"]),
        Route("/v1/audio/voices/{voice}", delete_voice, methods=["DELETE"]),
        WebSocketRoute("/v1/audio/stream", live),
        Route("/health", health),
        Route("/metrics", metrics),
        Route("/openapi.json", schema),
    ]


async def models(request: Request) -> Response:
    """GET /v1/models."""
    return JSONResponse({"object": "list", "data": [_model(service_of(request))]})


async def model(request: Request) -> Response:
    """GET /v1/models/{model}."""
    service = service_of(request)
    service.catalogue.check_model(request.path_params["model"])
    return JSONResponse(_model(service))


async def metrics(request: Request) -> Response:
    """GET /metrics."""
    return Response(service_of(request).metrics.text(), media_type=CONTENT_TYPE)


async def schema(request: Request) -> Response:
    """GET /openapi.json."""
    return JSONResponse(openapi())


def _model(service: Service) -> dict[str, object]:
    speaker, catalogue = service.speaker, service.catalogue
    return {
        "id": catalogue.model_id,
        "object": "model",
        "created": 0,
        "owned_by": "mosstalk",
        "sample_rate": speaker.sample_rate,
        "channels": speaker.num_channels,
        "designs_voices": catalogue.designs,
    }


class _Page:
    """A folder's files, with headers that keep them to themselves."""

    def __init__(self, folder: Path, otherwise: ASGIApp) -> None:
        mimetypes.add_type("text/javascript", ".js")  # Windows' registry may say text/plain
        self._files = StaticFiles(directory=folder, html=True)
        self._otherwise = otherwise

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *_PAGE_HEADERS]
            await send(message)

        if scope["type"] == "http" and scope["method"] in ("GET", "HEAD"):
            await self._files(scope, receive, guarded)
        else:
            await self._otherwise(scope, receive, send)
