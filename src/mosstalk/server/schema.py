"""The API in OpenAPI's terms, made of the same classes that check requests."""

from functools import cache
from importlib.metadata import version
from typing import Any

from pydantic.json_schema import models_json_schema

from mosstalk.server.encoding import FORMATS, content_type
from mosstalk.server.requests import DesignBody, SpeechBody

_BINARY = {"schema": {"type": "string", "format": "binary"}}
_FORM = {
    "type": "object",
    "required": ["name", "file"],
    "additionalProperties": False,
    "properties": {
        "name": {"type": "string", "pattern": r"^\w[\w.-]{0,63}$"},
        "file": {"type": "string", "format": "binary"},
        "transcript": {"type": "string"},
        "replace": {"type": "string", "enum": ["true", "false"]},
        "origin": {"type": "string", "description": "as /v1/audio/voices/design gave it"},
    },
}
_ERROR = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["message", "type", "code", "param"],
            "properties": {
                "message": {"type": "string"},
                "type": {"type": "string"},
                "code": {"type": "string"},
                "param": {"type": ["string", "null"]},
            },
        }
    },
}
_VOICE = {"type": "object", "required": ["id", "name"]}


@cache
def openapi() -> dict[str, Any]:
    """The document at /openapi.json."""
    bodies, definitions = models_json_schema(
        [(SpeechBody, "validation"), (DesignBody, "validation")],
        ref_template="#/components/schemas/{model}",
    )
    speech, design = bodies[SpeechBody, "validation"], bodies[DesignBody, "validation"]
    voices = {
        "get": _operation("List voices", _listing("voices", _VOICE)),
        "post": _operation(
            "Make a voice of a recording",
            _VOICE,
            201,
            _body("multipart/form-data", _FORM),
            (409, 413),
        ),
    }
    return {
        "openapi": "3.1.0",
        "info": {"title": "mosstalk", "version": version("mosstalk")},
        "paths": {
            "/v1/audio/speech": {
                "post": _operation(
                    "Speak a text", None, 200, _body("application/json", speech), (404, 422)
                )
            },
            "/v1/audio/voices": voices,
            "/v1/audio/voices/design": {
                "post": _operation(
                    "Make voices from a description",
                    _listing("candidates", {"type": "object"}),
                    200,
                    _body("application/json", design),
                )
            },
            "/v1/audio/voices/{voice}": {
                "delete": _operation("Remove a voice", {"type": "object"}, 200, None, (404,))
                | _parameter("voice")
            },
            "/v1/models": {"get": _operation("List models", _listing("data", {"type": "object"}))},
            "/v1/models/{model}": {
                "get": _operation("Look at a model", {"type": "object"}, 200, None, (404,))
                | _parameter("model")
            },
            "/health": {"get": _operation("Try whether it speaks", {"type": "object"})},
        },
        "components": {
            "schemas": {**definitions.get("$defs", {}), "Error": _ERROR},
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
    }


def _operation(
    summary: str,
    answer: dict[str, Any] | None,
    status: int = 200,
    body: dict[str, Any] | None = None,
    more_errors: tuple[int, ...] = (),
) -> dict[str, Any]:
    """An operation; `answer`: of JSON, or None for audio."""
    errors = (400, 401, 403, 413, 415, 429, 503) if body else (401, 403, 503)
    described: dict[str, Any] = {
        str(code): {
            "description": "see error.message",
            "content": _json({"$ref": "#/components/schemas/Error"}),
        }
        for code in sorted({*errors, *more_errors})
    }
    kinds = [*map(content_type, FORMATS), "text/event-stream"]
    content = dict.fromkeys(kinds, _BINARY) if answer is None else _json(answer)
    described[str(status)] = {"description": "done", "content": content}
    operation: dict[str, Any] = {"summary": summary, "responses": described}
    return operation | ({} if body is None else {"requestBody": body})


def _json(schema: dict[str, Any]) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}


def _body(kind: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"required": True, "content": {kind: {"schema": schema}}}


def _listing(key: str, item: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "required": [key],
        "properties": {key: {"type": "array", "items": item}},
    }


def _parameter(name: str) -> dict[str, Any]:
    parameter = {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
    return {"parameters": [parameter]}
