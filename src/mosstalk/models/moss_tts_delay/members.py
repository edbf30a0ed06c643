"""The members of the family and what is their own (spec voicegen.md 1.1, 5.7)."""

from dataclasses import dataclass

from mosstalk.compute.sampling import SamplingParams
from mosstalk.models.moss_tts_delay.config import DelayConfig

_8B_HIDDEN_SIZE = 4096
_TTS_CODEBOOKS = 32


@dataclass(frozen=True, slots=True)
class Member:
    """A model of the family.

    Attributes:
        audio_sampling: of the codes, where a request says nothing.
        max_voices: recordings that a prompt can hold.
    """

    name: str
    audio_sampling: SamplingParams
    max_voices: int


VOICE_GENERATOR = Member("MOSS-VoiceGenerator", SamplingParams(1.5, 50, 0.6, 1.1), max_voices=0)
TTS = Member("MOSS-TTS", SamplingParams(1.7, 25, 0.8, 1.0), max_voices=1)
TTSD = Member("MOSS-TTSD", SamplingParams(1.1, 50, 0.9, 1.1), max_voices=5)


def member_of(config: DelayConfig) -> Member:
    """Which model a config belongs to: it holds no name, so its sizes must tell."""
    if config.n_vq >= _TTS_CODEBOOKS:
        return TTS
    return TTSD if config.hidden_size >= _8B_HIDDEN_SIZE else VOICE_GENERATOR
