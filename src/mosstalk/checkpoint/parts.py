"""What a checkpoint consists of, before it is known which of it is there."""

from collections.abc import Mapping
from dataclasses import dataclass

from mosstalk.checkpoint.storage import StoredTensor

_CODEC_TYPES = ("moss-audio-tokenizer", "moss-audio-tokenizer-nano", "speech_tokenizer")


@dataclass(frozen=True, slots=True)
class Part:
    """A model's config and tensors: a language model or a codec."""

    config: Mapping[str, object]
    tensors: Mapping[str, StoredTensor]

    @property
    def is_codec(self) -> bool:
        return self.config.get("model_type") in _CODEC_TYPES


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts found in one place."""

    model: Part | None
    codec: Part | None
    tokenizer_model: bytes | None  # SentencePiece model
    tokenizer_json: bytes | None = None  # byte-level BPE and its added tokens
