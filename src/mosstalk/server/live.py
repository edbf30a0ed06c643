"""WebSocket /v1/audio/stream: text comes in pieces, audio goes out sentence by sentence.

A client sends JSON: `start` first, then `text`, `flush`, `cancel` and `end`. It gets JSON, and
between `sentence` and `sentence_end` the audio: interleaved 16-bit samples at the model's rate.
"""

import asyncio
import secrets
from collections import deque
from typing import Any

from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketState

from mosstalk.scheduled_stream import ScheduledStream
from mosstalk.server.encoding import pcm16
from mosstalk.server.errors import ApiError, api_error
from mosstalk.server.requests import (
    MAX_INPUT_CHARACTERS,
    PlainMessage,
    StartMessage,
    TextMessage,
    parse,
    parse_live,
)
from mosstalk.server.service import Service, in_thread, service_of
from mosstalk.text.boundaries import sentence_ends

_START_SECONDS = 10.0  # for the first message
_IDLE_SECONDS = 300.0  # between messages, when nothing is left to say
_CLOSE_CODES = {429: 1013, 500: 1011, 503: 1013}
_REFUSED = 1008


async def live(socket: WebSocket) -> None:
    """The endpoint."""
    await socket.accept()
    try:
        await _Conversation(socket, service_of(socket)).run()
    except WebSocketDisconnect:
        return
    except Exception as error:
        problem = api_error(error)
        socket.scope["notes"]["code"] = problem.code
        await _part(socket, problem)
        if problem.code == "internal_error":
            raise


async def _part(socket: WebSocket, problem: ApiError) -> None:
    """Tell what went wrong, and close."""
    if socket.application_state is not WebSocketState.CONNECTED:
        return
    body = {"type": "error", **problem.body}
    if problem.retry_after is not None:
        body["retry_after"] = problem.retry_after
    try:
        await socket.send_json(body)
        await socket.close(_CLOSE_CODES.get(problem.status, _REFUSED))
    except (WebSocketDisconnect, RuntimeError):  # gone meanwhile
        return


class _Conversation:
    """One client: a task reads its messages, another speaks what is complete of its text."""

    def __init__(self, socket: WebSocket, service: Service) -> None:
        self._socket = socket
        self._service = service
        self._unfinished = ""  # text after the last sentence that is complete
        self._sentences: deque[str] = deque()
        self._changed = asyncio.Event()
        self._has_ended = False  # the client sends no more text
        self._is_speaking: ScheduledStream | None = None
        self._index = 0
        self._cancels = 0  # what was begun before the last one is not spoken any further

    async def run(self) -> None:
        """Until the text has ended; raises what goes wrong."""
        async with asyncio.timeout(_START_SECONDS):
            first = await self._socket.receive_text()
        start = parse(StartMessage, first)
        if not (self._socket.scope["has_key"] or self._socket.app.state.guard.knows(start.api_key)):
            raise ApiError(401, "the API key is missing or wrong", "invalid_api_key")
        self._service.catalogue.check_model(start.model)
        await in_thread(self._service.catalogue.choose, start.voice_name)  # raises if unknown
        settings = start.settings
        if settings["seed"] is None:
            settings["seed"] = secrets.randbits(32)
        speaker = self._service.speaker
        await self._send(
            "ready",
            sample_rate=speaker.sample_rate,
            channels=speaker.num_channels,
            format="pcm_s16le",
            seed=settings["seed"],
        )
        reading = asyncio.ensure_future(self._read())
        speaking = asyncio.ensure_future(self._speak(start.voice_name, dict(settings)))
        try:
            await asyncio.wait({reading, speaking}, return_when=asyncio.FIRST_COMPLETED)
            for task in (reading, speaking):
                if task.done():
                    task.result()
            await speaking
        finally:
            reading.cancel()
            speaking.cancel()
            await asyncio.gather(reading, speaking, return_exceptions=True)
        await self._send("done")
        await self._socket.close()

    async def _read(self) -> None:
        """Take in messages until the client has no more; then only watch whether it hangs up."""
        while True:
            content = await self._socket.receive_text()
            message = parse_live(content)
            if self._has_ended and message.type != "cancel":
                raise ApiError(400, f"{message.type} came after end", "invalid_value")
            if isinstance(message, TextMessage):
                self._take(message.text)
            else:
                await self._obey(message)
            self._changed.set()

    def _take(self, text: str) -> None:
        self._unfinished += text
        waiting = len(self._unfinished) + sum(map(len, self._sentences))
        if waiting > MAX_INPUT_CHARACTERS:
            raise ApiError(
                400,
                f"more than {MAX_INPUT_CHARACTERS} characters wait to be spoken; send them later",
                "too_much_text",
                param="text",
            )
        # A mark that is the last so far may go on: "3." to "3.14", or "?" to "?!".
        ends = [end for end in sentence_ends(self._unfinished) if end < len(self._unfinished)]
        if ends:
            self._say(self._unfinished[: ends[-1]])
            self._unfinished = self._unfinished[ends[-1] :]

    async def _obey(self, message: PlainMessage) -> None:
        if message.type == "cancel":
            self._cancels += 1
            self._unfinished = ""
            self._sentences.clear()
            if self._is_speaking is not None:
                self._is_speaking.close()
            await self._send("cancelled")
            return
        self._say(self._unfinished)
        self._unfinished = ""
        self._has_ended = message.type == "end"

    def _say(self, text: str) -> None:
        if text.strip():
            self._sentences.append(text.strip())

    async def _speak(self, voice: str | None, settings: Any) -> None:
        while True:
            while not self._sentences:
                if self._has_ended:
                    return
                self._changed.clear()
                async with asyncio.timeout(_IDLE_SECONDS):
                    await self._changed.wait()
            text, begun = self._sentences.popleft(), self._cancels
            stream = await self._service.submit(text, voice, settings)
            self._is_speaking = stream
            try:
                with stream:
                    await self._deliver(stream, text, begun)
            finally:
                self._is_speaking = None
                self._service.metrics.count_speech(stream.summary)
            self._index += 1

    async def _deliver(self, stream: ScheduledStream, text: str, begun: int) -> None:
        """Send a sentence; nothing of it any more once it is cancelled."""
        if begun == self._cancels:
            await self._send("sentence", index=self._index, text=text)
        while begun == self._cancels and (chunk := await anext(stream, None)) is not None:
            if begun == self._cancels:
                await self._socket.send_bytes(pcm16(chunk.samples))
        if begun != self._cancels:
            return
        summary = stream.summary
        await self._send(
            "sentence_end",
            index=self._index,
            stop_reason=summary.stop_reason,
            frames=summary.frames,
            audio_seconds=round(summary.seconds, 3),
            real_time_factor=round(summary.rtf, 3),
        )

    async def _send(self, kind: str, **values: Any) -> None:
        await self._socket.send_json({"type": kind, **values})
