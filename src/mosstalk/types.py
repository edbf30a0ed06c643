"""Values that cross the package's borders: what is asked for, and what comes back."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Literal, TypedDict

import numpy as np
from numpy.typing import NDArray

from mosstalk.errors import UsageError

# end: the model said so; max_frames: the cap was reached; cancelled: the caller closed the
# stream; no_audio: the model stopped before the first frame.
StopReason = Literal["end", "max_frames", "cancelled", "no_audio"]

# clone: speak as the voice does; continuation: go on after the voice's recording, of which the
# transcript must be known.
VoiceMode = Literal["clone", "continuation"]


@dataclass(frozen=True, slots=True)
class VoiceOrigin:
    """How a designed voice came about.

    Attributes:
        instruction: the description it was made from.
        seed: of the run that made its recording.
        model_identity, codec_identity: of the model that spoke it, as 16 hex digits each.
    """

    instruction: str
    seed: int
    model_identity: str
    codec_identity: str


@dataclass(frozen=True, slots=True)
class Voice:
    """A speaker's voice as codes of a short recording.

    Attributes:
        name: how it is called.
        codes: int32 [frames, codebooks].
        sample_rate: of the codec that made the codes, in Hz.
        source_hash: SHA-256 of the recording's file, "" if not known.
        codec_identity: which codec the codes belong to.
        transcript: the words of the recording, if known.
        origin: of a voice that was designed; None for a recording of another kind.
    """

    name: str
    codes: NDArray[np.int32]
    sample_rate: int
    source_hash: str
    codec_identity: str
    transcript: str | None = None
    origin: VoiceOrigin | None = None


@dataclass(frozen=True, slots=True)
class SpeechOptions:
    """How a text is spoken. `None` stands for the model's own default.

    Attributes:
        seed: of all random choices; the same seed gives the same codes.
        temperature: of the codes; 0 takes the likeliest always, of the stop decision too.
        top_k, top_p, repetition_penalty: of the codes (spec nano.md 3.6).
        max_frames: cap on each chunk of a text, in frames.
        max_tokens: longest chunk of a text, in tokens; 0: the text is not divided.
        num_codebooks: how many of the codebooks to generate.
        mode: what a voice is used for.
        instruction: how it is spoken, in words; of models that follow one.
        language: of the text, as a code or an English name; None: it is found out. Models that
            are told get it too.
        force_audio_start: leave a model that may begin with text no choice but speech.
        normalize: read numbers, dates, signs and markup as a person would, and pauses as silence.
        dictionary: how words are spoken, before anything else is read.

    Raises:
        UsageError: a value is outside its range.
    """

    seed: int | None = None
    temperature: float | None = None
    top_k: int | None = None
    top_p: float | None = None
    repetition_penalty: float | None = None
    max_frames: int | None = None
    max_tokens: int | None = None
    num_codebooks: int | None = None
    mode: VoiceMode = "clone"
    instruction: str | None = None
    language: str | None = None
    force_audio_start: bool = False
    normalize: bool = True
    dictionary: Mapping[str, str] | None = None

    def __post_init__(self) -> None:
        if self.seed is not None and not 0 <= self.seed < 2**63:
            raise UsageError(f"the seed is {self.seed}, but must be from 0 to 2^63 - 1")
        if self.max_frames is not None and self.max_frames < 1:
            raise UsageError(f"max-frames is {self.max_frames}, but must be at least 1")
        if self.num_codebooks is not None and self.num_codebooks < 1:
            raise UsageError(f"codebooks is {self.num_codebooks}, but must be at least 1")
        if self.mode not in ("clone", "continuation"):
            raise UsageError(f"unknown mode {self.mode!r}; choose clone or continuation")
        if self.dictionary is not None and not self.normalize:
            raise UsageError("a dictionary is of no use to a text that is not normalised; drop one")


class SpeechSettings(TypedDict, total=False):
    """The fields of SpeechOptions as keyword arguments."""

    seed: int | None
    temperature: float | None
    top_k: int | None
    top_p: float | None
    repetition_penalty: float | None
    max_frames: int | None
    max_tokens: int | None
    num_codebooks: int | None
    mode: VoiceMode
    instruction: str | None
    language: str | None
    force_audio_start: bool
    normalize: bool
    dictionary: Mapping[str, str] | None


@dataclass(frozen=True, slots=True)
class AudioChunk:
    """A piece of a stream.

    Attributes:
        samples: float32 [channels, n].
        sample_rate: in Hz.
        text_chunk: index of the part of the text that it belongs to.
        is_pause: silence between two parts.
    """

    samples: NDArray[np.float32]
    sample_rate: int
    text_chunk: int
    is_pause: bool = False


@dataclass(frozen=True, slots=True)
class Summary:
    """What a finished stream can tell about itself.

    Attributes:
        seed: the seed used; give it again for the same codes.
        frames: generated frames.
        seconds: of audio, pauses included.
        stop_reason: of the whole stream.
        rtf: seconds of work for each second of audio.
        ttfa_ms: from the request to the first audio.
        device, weight_type: where and with what it was computed.
        retries: runs that began with text instead of speech and were begun again.
        warnings: what the user should know.
    """

    seed: int
    frames: int
    seconds: float
    stop_reason: StopReason
    rtf: float
    ttfa_ms: float
    device: str
    weight_type: str
    retries: int
    warnings: tuple[str, ...]

    def as_dict(self) -> dict[str, object]:
        """For JSON."""
        return {**asdict(self), "warnings": list(self.warnings)}
