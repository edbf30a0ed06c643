"""One line of JSON for each request, and for what goes wrong; never a word of what is spoken."""

import json
import logging
import re
import time
import uuid
from datetime import UTC, datetime
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mosstalk.server.errors import api_error
from mosstalk.server.metrics import Metrics
from mosstalk.server.service import ClientGone

LOGGER = logging.getLogger("mosstalk.server")
_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_GONE = 499  # what web servers write down for a client that hung up


class JsonLines(logging.Formatter):
    """A record as a line of JSON; the attribute `fields` of a record is added to it."""

    def format(self, record: logging.LogRecord) -> str:
        entry: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "message": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            entry["trace"] = self.formatException(record.exc_info)
        return json.dumps(entry)


class RequestLog:
    """ASGI middleware around everything: request ids, the log, counts, and the last net."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        given = Headers(scope=scope).get("x-request-id", "")
        request_id = given if _REQUEST_ID.fullmatch(given) else uuid.uuid4().hex
        notes: dict[str, Any] = {}
        scope["notes"] = notes
        status, started = 0, time.monotonic()

        async def noted(message: Message) -> None:
            nonlocal status
            if message["type"] in ("http.response.start", "websocket.http.response.start"):
                status = message["status"]
                MutableHeaders(scope=message)["X-Request-Id"] = request_id
            elif message["type"] == "websocket.accept":
                status = 101
            await send(message)

        try:
            await self._app(scope, receive, noted)
        except ClientGone:
            status = _GONE
        except Exception as error:
            notes["code"] = api_error(error).code
            fields = {"request_id": request_id}
            LOGGER.error("request failed", exc_info=error, extra={"fields": fields})
            if not status and scope["type"] == "http":
                await api_error(error).response()(scope, receive, noted)
            elif scope["type"] == "websocket":
                raise
        finally:
            self._note(scope, request_id, status, 1000 * (time.monotonic() - started))

    def _note(self, scope: Scope, request_id: str, status: int, duration_ms: float) -> None:
        notes = scope["notes"]
        method = scope.get("method", "WEBSOCKET")
        route = scope.get("route")  # the path as declared: what stands for its parts stays out
        path = getattr(route, "path", "") or "other"
        self._metrics.count_request(method if route else "other", path, status, notes.get("code"))
        fields = {
            "request_id": request_id,
            "method": method,
            "path": path,
            "status": status,
            "duration_ms": round(duration_ms, 1),
            **notes,
        }
        LOGGER.info("request", extra={"fields": fields})
