"""What a request must get past before anything reads it: host, origin, key and size."""

import hmac
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mosstalk.server.errors import ApiError
from mosstalk.server.settings import ServerSettings, is_loopback

MAX_JSON_BYTES = 2**20
MAX_FORM_BYTES = 26 * 2**20  # a recording of 25 MiB with its fields
_FORM_PATH = "/v1/audio/voices"
_CLOSED = ("/v1", "/metrics", "/openapi.json")  # what needs the key; the page and /health do not


class Guard:
    """ASGI middleware.

    A page on another site can make a browser send requests here, and a name that it owns lead to
    this machine. So a browser's `Origin` must be this server's own or one that was allowed, and a
    server on a loopback address answers to names of this machine only.
    """

    def __init__(self, app: ASGIApp, settings: ServerSettings) -> None:
        self._app = app
        self._settings = settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        try:
            headers = Headers(scope=scope)
            self._check_host(headers)
            self._check_origin(headers)
            scope["has_key"] = self.knows(_bearer(headers))
            if scope["type"] == "http":
                self._check_key(scope)
                receive = _limited(scope, headers, receive)
        except ApiError as error:
            await _refuse(error, scope, receive, send)
            return
        await self._app(scope, receive, send)

    def knows(self, key: str | None) -> bool:
        """Whether a client's key is the server's, or none is asked for."""
        wanted = self._settings.api_key
        if wanted is None:
            return True
        given = (key or "").encode("utf-8", "surrogateescape")
        return hmac.compare_digest(given, wanted.encode())

    def _check_host(self, headers: Headers) -> None:
        if not self._settings.is_loopback:
            return
        host = headers.get("host", "")
        try:
            name = urlsplit(f"//{host}").hostname
        except ValueError:
            name = None
        if name is None or not is_loopback(name):
            raise ApiError(403, "this server answers to 127.0.0.1 and localhost only", "wrong_host")

    def _check_origin(self, headers: Headers) -> None:
        origin = headers.get("origin")
        if origin is None or origin in self._settings.origins:
            return
        if origin.partition("://")[2].lower() != headers.get("host", "").lower():
            raise ApiError(
                403, "pages of other origins may not use this server; see --allow-origin", "origin"
            )

    def _check_key(self, scope: Scope) -> None:
        is_preflight = scope["method"] == "OPTIONS"  # browsers send it without the key
        if scope["has_key"] or is_preflight or not scope["path"].startswith(_CLOSED):
            return
        raise ApiError(
            401,
            "the API key is missing or wrong; send Authorization: Bearer KEY",
            "invalid_api_key",
            headers={"WWW-Authenticate": "Bearer"},
        )


def _bearer(headers: Headers) -> str | None:
    scheme, _, key = headers.get("authorization", "").partition(" ")
    return key.strip() if scheme.lower() == "bearer" else None


def _limited(scope: Scope, headers: Headers, receive: Receive) -> Receive:
    """`receive`, which raises ApiError when the body grows too large, or says that it is."""
    limit = MAX_FORM_BYTES if scope["path"] == _FORM_PATH else MAX_JSON_BYTES
    too_large = ApiError(
        413,
        f"the body has more than {limit >> 20} MiB; send less",
        "too_large",
        headers={"Connection": "close"},
    )
    promised = headers.get("content-length", "0")
    if not promised.isdigit() or int(promised[:20]) > limit:
        raise too_large
    count = 0

    async def counted() -> Message:
        nonlocal count
        message = await receive()
        count += len(message.get("body", b""))
        if count > limit:
            raise too_large
        return message

    return counted


async def _refuse(error: ApiError, scope: Scope, receive: Receive, send: Send) -> None:
    scope["notes"]["code"] = error.code
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1008, "reason": error.code})
        return
    await error.response()(scope, receive, send)
