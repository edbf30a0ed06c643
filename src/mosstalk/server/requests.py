"""What clients send, checked strictly: an unknown field or a value of another kind is an error."""

from typing import Annotated, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError
from starlette.requests import Request

from mosstalk.server.encoding import FormatName
from mosstalk.server.errors import ApiError, invalid_body
from mosstalk.server.tempo import FASTEST, SLOWEST
from mosstalk.types import SpeechSettings

MAX_INPUT_CHARACTERS = 50_000
MAX_WHOLE_CHARACTERS = 10_000  # of a text whose audio is kept until it is whole: some 10 minutes
_MAX_FRAMES = 4_096  # of each part of a text: a state of that length is made for the request
_DESIGN_TEXT = "Good morning. This is how I sound when I read a sentence to you."

Name = Annotated[str, Field(min_length=1, max_length=200)]
Seed = Annotated[int, Field(ge=0, lt=2**63)]
Number = Annotated[float, Field(allow_inf_nan=False)]
Text = Annotated[str, Field(min_length=1, max_length=MAX_INPUT_CHARACTERS)]
Words = Annotated[str, Field(max_length=4_096)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class VoiceId(_Strict):
    """The form in which OpenAI's clients name a voice of their user's."""

    id: Name


class _Spoken(_Strict):
    """How a text is spoken; see SpeechOptions."""

    model: Name | None = None
    voice: Name | VoiceId | None = None
    instructions: Words | None = None
    language: Annotated[str, Field(max_length=64)] | None = None
    seed: Seed | None = None
    temperature: Number | None = None
    top_p: Number | None = None
    top_k: Annotated[int, Field(ge=0, lt=2**31)] | None = None
    max_frames: Annotated[int, Field(ge=1, le=_MAX_FRAMES)] | None = None

    @property
    def voice_name(self) -> str | None:
        return self.voice.id if isinstance(self.voice, VoiceId) else self.voice

    @property
    def settings(self) -> SpeechSettings:
        """For the engine; an empty text stands for none."""
        return {
            "seed": self.seed,
            "temperature": self.temperature,
            "top_p": self.top_p,
            "top_k": self.top_k,
            "max_frames": self.max_frames,
            "instruction": self.instructions or None,
            "language": self.language or None,
        }


class SpeechBody(_Spoken):
    """POST /v1/audio/speech."""

    input: Text
    response_format: FormatName = "mp3"
    speed: Annotated[Number, Field(ge=SLOWEST, le=FASTEST)] = 1.0
    stream_format: Literal["audio", "sse"] = "audio"
    stream: bool = True


class DesignBody(_Strict):
    """POST /v1/audio/voices/design."""

    description: Annotated[str, Field(min_length=1, max_length=4_096)]
    text: Annotated[str, Field(min_length=1, max_length=1_000)] = _DESIGN_TEXT
    count: Annotated[int, Field(ge=1, le=8)] = 1
    language: Annotated[str, Field(max_length=64)] | None = None
    seed: Annotated[int, Field(ge=0, lt=2**62)] | None = None
    temperature: Number | None = None
    max_frames: Annotated[int, Field(ge=1, le=_MAX_FRAMES)] | None = None


class OriginField(_Strict):
    """`origin` of an uploaded voice, as POST /v1/audio/voices/design gave it; see VoiceOrigin."""

    instruction: Words
    seed: Seed
    model_identity: Annotated[str, Field(max_length=64)]
    codec_identity: Annotated[str, Field(max_length=64)]


class StartMessage(_Spoken):
    """The first message of a WebSocket."""

    type: Literal["start"]
    api_key: Annotated[str, Field(max_length=1_000)] | None = None


class TextMessage(_Strict):
    """A piece of text, of any length, cut anywhere."""

    type: Literal["text"]
    text: Annotated[str, Field(max_length=MAX_INPUT_CHARACTERS)]


class PlainMessage(_Strict):
    """flush: speak what is there; cancel: stop and forget; end: no text comes any more."""

    type: Literal["flush", "cancel", "end"]


LiveMessage = TextMessage | PlainMessage
_LIVE: TypeAdapter[LiveMessage] = TypeAdapter(
    Annotated[TextMessage | PlainMessage, Field(discriminator="type")]
)

M = TypeVar("M", bound=BaseModel)


async def read_body(request: Request, kind: type[M]) -> M:
    """A JSON body; raises ApiError."""
    content_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if content_type != "application/json":
        raise ApiError(
            415,
            f"the content type is {content_type or 'missing'}; send application/json",
            "wrong_content_type",
        )
    return parse(kind, await request.body())


def parse(kind: type[M], content: bytes | str) -> M:
    """JSON as a message of this kind; raises ApiError."""
    try:
        return kind.model_validate_json(content)
    except ValidationError as error:
        raise invalid_body(error) from None


def parse_live(content: str) -> LiveMessage:
    """A WebSocket's message after the first; raises ApiError."""
    try:
        return _LIVE.validate_json(content)
    except ValidationError as error:
        raise invalid_body(error) from None
