"""POST /v1/audio/speech: a text to audio, sent while it is made."""

import base64
import json
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from mosstalk.scheduled_stream import ScheduledStream
from mosstalk.server.encoding import SpokenEncoder, content_type
from mosstalk.server.errors import ApiError, api_error
from mosstalk.server.log import LOGGER
from mosstalk.server.requests import MAX_WHOLE_CHARACTERS, SpeechBody, read_body
from mosstalk.server.service import Service, in_thread, service_of, unless_gone
from mosstalk.types import Summary

Pieces = AsyncGenerator[bytes, None]

_EVENTS = "text/event-stream; charset=utf-8"


async def speech(request: Request) -> Response:
    """The endpoint."""
    asked = await read_body(request, SpeechBody)
    service = service_of(request)
    service.catalogue.check_model(asked.model)
    if asked.stream_format == "sse" and not asked.stream:
        raise ApiError(
            400, "stream_format is sse, which streams; leave stream out", "invalid_value"
        )
    if not asked.stream and len(asked.input) > MAX_WHOLE_CHARACTERS:
        raise ApiError(
            400,
            f"the text has {len(asked.input)} characters; with stream false it may have "
            f"{MAX_WHOLE_CHARACTERS}",
            "string_too_long",
            param="input",
        )
    return SpeechResponse(service, asked)


class SpeechResponse(Response):
    """Audio of a text. Nothing is sent before the first audio is there, so that what goes wrong
    until then has a status of its own; when the client hangs up, the stream is closed."""

    def __init__(self, service: Service, asked: SpeechBody) -> None:
        super().__init__()
        self._service = service
        self._asked = asked

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Speak; raises ApiError and MosstalkError as long as nothing has been sent."""
        await unless_gone(receive, self._speak(scope["notes"], send))

    async def _speak(self, notes: dict[str, Any], send: Send) -> None:
        asked, service = self._asked, self._service
        notes.update(format=asked.response_format, characters=len(asked.input))
        stream = await service.submit(asked.input, asked.voice_name, asked.settings)
        try:
            with stream:
                deliver = self._send_events if asked.stream_format == "sse" else self._send_audio
                async with aclosing(self._encoded(stream)) as pieces:
                    await deliver(stream, pieces, notes, send)
        finally:
            summary = stream.summary
            service.metrics.count_speech(summary)
            notes.update(_figures(summary))

    async def _send_audio(
        self, stream: ScheduledStream, pieces: Pieces, notes: dict[str, Any], send: Send
    ) -> None:
        asked = self._asked
        if not asked.stream:
            body = b"".join([piece async for piece in pieces])
            await _start(send, self._audio_headers(stream.summary, ended=True, length=len(body)))
            await send({"type": "http.response.body", "body": body})
            return
        first = await anext(pieces)
        await _start(send, self._audio_headers(stream.summary, ended=False))
        await _send_part(send, first)
        try:
            async for piece in pieces:
                await _send_part(send, piece)
        except Exception as error:  # the end of the body is not sent: the client sees that it broke
            _break_off(error, notes)
            return
        await send({"type": "http.response.body", "body": b""})

    async def _send_events(
        self, stream: ScheduledStream, pieces: Pieces, notes: dict[str, Any], send: Send
    ) -> None:
        first = await anext(pieces)
        await _start(
            send, self._audio_headers(stream.summary, ended=False) | {"content-type": _EVENTS}
        )
        await _send_part(send, _delta(first))
        try:
            async for piece in pieces:
                if piece:
                    await _send_part(send, _delta(piece))
            last = _event("speech.audio.done", **self._done(stream.summary))
        except Exception as error:
            last = _event("error", **_break_off(error, notes).body)
        await send({"type": "http.response.body", "body": last})

    async def _encoded(self, stream: ScheduledStream) -> Pieces:
        """What each piece of audio adds to the file, the first perhaps nothing, and its tail."""
        asked, speaker = self._asked, self._service.speaker
        encoder: SpokenEncoder | None = None
        try:
            async for chunk in stream:
                encoder = encoder or SpokenEncoder(
                    asked.response_format,
                    speaker.sample_rate,
                    speaker.num_channels,
                    speed=asked.speed,
                    whole=not asked.stream,
                )
                yield await in_thread(encoder.push, chunk.samples)
            if encoder is None:
                raise no_audio(stream.summary)
            yield await in_thread(encoder.finish)
        finally:
            if encoder is not None:
                encoder.close()

    def _audio_headers(
        self, summary: Summary, *, ended: bool, length: int | None = None
    ) -> dict[str, str]:
        headers = {
            "content-type": content_type(self._asked.response_format),
            "cache-control": "no-store",
            "x-seed": str(summary.seed),
        }
        if ended:
            headers |= {
                "x-stop-reason": summary.stop_reason,
                "x-frames": str(summary.frames),
                "x-audio-seconds": f"{summary.seconds:.3f}",
                "x-real-time-factor": f"{summary.rtf:.3f}",
            }
        return headers if length is None else headers | {"content-length": str(length)}

    def _done(self, summary: Summary) -> dict[str, Any]:
        """Of the last event; `usage` is what OpenAI's has."""
        read = self._service.speaker.model.count_tokens(self._asked.input)
        usage = {"input_tokens": read, "output_tokens": summary.frames}
        return {
            "usage": usage | {"total_tokens": sum(usage.values())},
            "seed": summary.seed,
            **_figures(summary),
        }


def no_audio(summary: Summary) -> ApiError:
    """A model that stopped before its first frame."""
    return ApiError(
        422,
        f"the model stopped before its first frame, so there is no audio; try other words or "
        f"another seed than {summary.seed}",
        "no_audio",
    )


def _break_off(error: Exception, notes: dict[str, Any]) -> ApiError:
    """Note why a response that has begun does not end."""
    problem = api_error(error)
    notes.update(code=problem.code, broken=True)
    if problem.status == 500:
        LOGGER.error("speech broke off", exc_info=error)
    return problem


def _figures(summary: Summary) -> dict[str, Any]:
    return {
        "stop_reason": summary.stop_reason,
        "frames": summary.frames,
        "audio_seconds": round(summary.seconds, 3),
        "real_time_factor": round(summary.rtf, 3),
        "first_audio_ms": round(summary.ttfa_ms, 1),
    }


def _delta(audio: bytes) -> bytes:
    return _event("speech.audio.delta", audio=base64.b64encode(audio).decode("ascii"))


def _event(kind: str, **values: Any) -> bytes:
    return f"data: {json.dumps({'type': kind, **values})}\n\n".encode()


async def _start(send: Send, headers: dict[str, str]) -> None:
    raw = [(name.encode("ascii"), value.encode("ascii")) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": 200, "headers": raw})


async def _send_part(send: Send, body: bytes) -> None:
    await send({"type": "http.response.body", "body": body, "more_body": True})
