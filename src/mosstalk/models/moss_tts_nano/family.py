"""The registry's entry for MOSS-TTS-Nano."""

from mosstalk.checkpoint.checkpoint import Checkpoint
from mosstalk.checkpoint.storage import StorageType
from mosstalk.compute.backend import Backend
from mosstalk.errors import CheckpointError
from mosstalk.models.moss_tts_nano.model import NanoModel
from mosstalk.models.moss_tts_nano.speech import NanoSpeech
from mosstalk.models.moss_tts_nano.weights import IGNORABLE_TENSORS
from mosstalk.models.registry import Family
from mosstalk.text.tokenizer import Tokenizer


def _load_language_model(
    checkpoint: Checkpoint, backend: Backend, storage: StorageType
) -> NanoModel:
    return NanoModel(checkpoint.config, checkpoint.tensors, backend, storage)


def _load(checkpoint: Checkpoint, backend: Backend, storage: StorageType) -> NanoSpeech:
    if checkpoint.tokenizer_model is None:
        raise CheckpointError(f"{checkpoint.path}: tokenizer.model is missing; fetch it again")
    model = _load_language_model(checkpoint, backend, storage)
    tokenizer = Tokenizer(checkpoint.tokenizer_model)
    if tokenizer.vocab_size > model.config.vocab_size:
        raise CheckpointError(
            f"{checkpoint.path}: tokenizer.model has {tokenizer.vocab_size} pieces, but the model "
            f"knows {model.config.vocab_size}; they do not belong together"
        )
    return NanoSpeech(model, tokenizer)


FAMILY = Family("MOSS-TTS-Nano", IGNORABLE_TENSORS, _load, _load_language_model)
