"""One shape for everything that goes wrong: OpenAI's error object."""

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from mosstalk.errors import AudioError, BusyError, MosstalkError, TimeLimitError, UsageError

_INVALID, _FAILED = "invalid_request_error", "server_error"
_NAMES = {404: "not_found", 405: "method_not_allowed", 413: "too_large", 415: "wrong_content_type"}


class ApiError(Exception):
    """A request that is answered with an error.

    Attributes:
        status: HTTP status.
        message: for a person: the thing, the value and the way out.
        code: for a program.
        param: the field of the request that is at fault.
        retry_after: seconds after which the same request may succeed.
    """

    def __init__(
        self,
        status: int,
        message: str,
        code: str,
        *,
        param: str | None = None,
        retry_after: float | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.code = code
        self.param = param
        self.retry_after = retry_after
        self._headers = dict(headers or {})

    @property
    def body(self) -> dict[str, Any]:
        """The error object."""
        kinds = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}
        kind = kinds.get(self.status, _INVALID if self.status < 500 else _FAILED)
        error = {"message": self.message, "type": kind, "code": self.code, "param": self.param}
        return {"error": error}

    def response(self) -> Response:
        """The error as an answer."""
        headers = dict(self._headers)
        if self.retry_after is not None:
            headers["Retry-After"] = str(max(1, round(self.retry_after)))
        return JSONResponse(self.body, self.status, headers)


def api_error(error: Exception) -> ApiError:
    """What a client is told of an exception; of one that we did not expect, nothing."""
    match error:
        case ApiError():
            return error
        case BusyError():
            return ApiError(429, str(error), "busy", retry_after=error.retry_after)
        case TimeLimitError():
            return ApiError(503, str(error), "time_limit", retry_after=1)
        case AudioError():
            return ApiError(400, str(error), "invalid_audio", param="file")
        case UsageError():
            return ApiError(400, str(error), "invalid_value")
        case MosstalkError():
            return ApiError(500, str(error), "failed")
        case HTTPException():
            name = _NAMES.get(error.status_code, "invalid_request")
            return ApiError(error.status_code, error.detail, name, headers=error.headers)
    return ApiError(500, "the server failed on this request; its log says why", "internal_error")


def invalid_body(error: ValidationError) -> ApiError:
    """The first fault that was found in a request's body."""
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    where = ".".join(str(part) for part in first["loc"])
    what = f"{where}: {first['msg']}" if where else first["msg"]
    return ApiError(400, what, first["type"], param=where or None)


async def answer_error(request: Request, error: Exception) -> Response:
    """Starlette's handler for every kind of exception."""
    problem = api_error(error)
    request.scope["notes"]["code"] = problem.code
    return problem.response()
