"""/v1/audio/voices: list, upload, design and delete voices."""

import asyncio
import base64
import io
import math
import secrets
from typing import Any

import soundfile
from starlette.datastructures import FormData, UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from mosstalk.audio.clip import AudioClip
from mosstalk.audio.read import read_clip
from mosstalk.design import Candidate
from mosstalk.engine import Speaker
from mosstalk.server.encoding import SpokenEncoder
from mosstalk.server.errors import ApiError
from mosstalk.server.requests import DesignBody, OriginField, parse, read_body
from mosstalk.server.service import Service, in_thread, service_of, unless_gone
from mosstalk.types import SpeechSettings, Voice, VoiceOrigin

MAX_UPLOAD_BYTES = 25 * 2**20
MAX_UPLOAD_SECONDS = 120
_MAX_UPLOAD_SAMPLES = 2**25  # of all channels together: 128 MiB of float32
_MAX_FIELD_BYTES = 64 * 2**10
_FIELDS = ("name", "file", "transcript", "replace", "origin")


async def list_voices(request: Request) -> Response:
    """GET: the voices that `voice` may name."""
    return JSONResponse({"voices": await in_thread(service_of(request).catalogue.listing)})


async def add_voice(request: Request) -> Response:
    """POST, as a form: a voice of a recording, saved under a name."""
    service = service_of(request)
    if service.catalogue.designs:
        raise ApiError(400, "this model makes voices from descriptions and takes none", "no_voices")
    form = await _read_form(request)
    try:
        name, content = _field(form, "name"), await _content(form)
        transcript, replace = _field(form, "transcript"), _flag(form, "replace")
        origin = _origin(_field(form, "origin"))
    finally:
        await form.close()
    if not name:
        raise ApiError(400, "name is missing; give the voice a name", "missing", param="name")
    if transcript is None and origin is not None:
        raise ApiError(
            400, "a designed voice has its transcript; send it", "missing", param="transcript"
        )
    store = service.speaker.voices
    if store.check_free(name, replace=True).exists() and not replace:
        raise ApiError(
            409, f"there is a voice {name!r} already; send replace=true", "taken", param="name"
        )
    making = asyncio.get_running_loop().run_in_executor(
        service.studio, _make, service.speaker, name, content, transcript, origin
    )
    voice, warnings = await making
    store.save(voice, replace=replace)
    made = {"id": name, "name": name, "frames": len(voice.codes), "warnings": list(warnings)}
    return JSONResponse(made, 201)


async def delete_voice(request: Request) -> Response:
    """DELETE: remove a voice."""
    service, name = service_of(request), request.path_params["voice"]
    store = service.speaker.voices
    if name not in store.names():
        raise ApiError(404, f"there is no voice {name!r}", "unknown_voice", param="voice")
    store.remove(name)
    return JSONResponse({"id": name, "deleted": True})


async def design_voices(request: Request) -> Response:
    """POST: voices for a description, each as a recording to listen to and to upload."""
    service = service_of(request)
    asked = await read_body(request, DesignBody)
    if not service.catalogue.designs:
        raise ApiError(400, "this model clones voices and follows no description", "no_design")
    seed = secrets.randbits(32) if asked.seed is None else asked.seed
    found = [
        await unless_gone(request.receive, _candidate(service, asked, seed + number))
        for number in range(asked.count)
    ]
    return JSONResponse({"candidates": found})


async def _candidate(service: Service, asked: DesignBody, seed: int) -> dict[str, Any]:
    speaker = service.speaker
    settings: SpeechSettings = {
        "instruction": asked.description,
        "seed": seed,
        "max_tokens": 0,
        "language": asked.language or None,
        "temperature": asked.temperature,
        "max_frames": asked.max_frames,
    }
    with await service.submit(asked.text, None, settings) as stream:
        encoder = SpokenEncoder(
            "wav", speaker.sample_rate, speaker.num_channels, speed=1, whole=True
        )
        async for chunk in stream:
            encoder.push(chunk.samples)
        summary = stream.summary
    service.metrics.count_speech(summary)
    audio = base64.b64encode(encoder.finish()).decode("ascii") if summary.frames else None
    return {
        "seed": seed,
        "text": asked.text,
        "stop_reason": summary.stop_reason,
        "seconds": round(summary.seconds, 3),
        "origin": {
            "instruction": asked.description,
            "seed": seed,
            "model_identity": speaker.model_identity,
            "codec_identity": speaker.codec_identity,
        },
        "audio": audio,
    }


def check_recording(content: bytes) -> None:
    """Raise ApiError for a recording whose header tells that it is too long to be decoded.

    What is no audio at all is left to `read_clip` to name.
    """
    try:
        with soundfile.SoundFile(io.BytesIO(content)) as file:
            samples, seconds = file.frames * file.channels, file.frames / max(1, file.samplerate)
    except (soundfile.SoundFileError, RuntimeError, ValueError, TypeError, OverflowError):
        return
    if seconds > MAX_UPLOAD_SECONDS or samples > _MAX_UPLOAD_SAMPLES:
        raise ApiError(
            400,
            f"the recording is {math.ceil(seconds)} s long, but may be {MAX_UPLOAD_SECONDS} s at "
            "most; 5 to 30 s of speech are best",
            "recording_too_long",
            param="file",
        )


def _make(
    speaker: Speaker, name: str, content: bytes, transcript: str | None, origin: VoiceOrigin | None
) -> tuple[Voice, tuple[str, ...]]:
    check_recording(content)
    if origin is None:
        return speaker.make_voice(name, content, transcript)
    clip: AudioClip = read_clip(content, name="the recording")
    return speaker.adopt(name, Candidate(clip, transcript or "", origin))


async def _read_form(request: Request) -> FormData:
    """The parts of a form, its file kept in memory."""
    if not request.headers.get("content-type", "").startswith("multipart/form-data"):
        raise ApiError(
            415, "send a form (multipart/form-data) with name and file", "wrong_content_type"
        )
    parser = MultiPartParser(
        request.headers,
        request.stream(),
        max_files=1,
        max_fields=len(_FIELDS),
        max_part_size=_MAX_FIELD_BYTES,
    )
    parser.spool_max_size = 2 * MAX_UPLOAD_BYTES
    try:
        form = await parser.parse()
    except MultiPartException as error:
        raise ApiError(400, error.message, "invalid_form") from None
    except (KeyError, ValueError, UnicodeError, AttributeError) as error:
        raise ApiError(
            400, "the form cannot be read; check how it is sent", "invalid_form"
        ) from error
    for key in form:
        if key not in _FIELDS:
            await form.close()
            raise ApiError(
                400, f"unknown field {key!r}; send {', '.join(_FIELDS)}", "extra", param=key
            )
    return form


def _field(form: FormData, key: str) -> str | None:
    value = form.get(key)
    if isinstance(value, UploadFile):
        raise ApiError(400, f"{key} is a file, but must be text", "invalid_form", param=key)
    return value or None


def _flag(form: FormData, key: str) -> bool:
    value = _field(form, key)
    if value not in (None, "true", "false"):
        raise ApiError(400, f"{key} is {value!r}, but must be true or false", "bool", param=key)
    return value == "true"


def _origin(value: str | None) -> VoiceOrigin | None:
    if value is None:
        return None
    return VoiceOrigin(**parse(OriginField, value).model_dump())


async def _content(form: FormData) -> bytes:
    file = form.get("file")
    if not isinstance(file, UploadFile):
        raise ApiError(400, "file is missing; send a recording", "missing", param="file")
    content = await file.read()
    if len(content) > MAX_UPLOAD_BYTES:
        raise ApiError(
            413,
            f"the recording has more than {MAX_UPLOAD_BYTES >> 20} MiB",
            "too_large",
            param="file",
        )
    return content
