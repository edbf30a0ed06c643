"""The registry's entry for the MOSS-TTS delay family."""

from mosstalk.checkpoint.checkpoint import Checkpoint
from mosstalk.checkpoint.storage import StorageType
from mosstalk.compute.backend import Backend
from mosstalk.models.moss_tts_delay.model import DelayModel
from mosstalk.models.moss_tts_delay.speech import DelaySpeech
from mosstalk.models.moss_tts_delay.tokenizer import check_tokenizer, load_tokenizer
from mosstalk.models.moss_tts_delay.weights import IGNORABLE_TENSORS
from mosstalk.models.registry import Family


def _load_language_model(
    checkpoint: Checkpoint, backend: Backend, storage: StorageType
) -> DelayModel:
    """Works without a tokeniser too: the ids that a config leaves to it are then the published."""
    special_ids = None
    if checkpoint.tokenizer_json is not None:
        special_ids = load_tokenizer(checkpoint).special_ids
    return DelayModel(checkpoint.config, checkpoint.tensors, backend, storage, special_ids)


def _load(checkpoint: Checkpoint, backend: Backend, storage: StorageType) -> DelaySpeech:
    tokenizer = load_tokenizer(checkpoint)
    special_ids = tokenizer.special_ids
    model = DelayModel(checkpoint.config, checkpoint.tensors, backend, storage, special_ids)
    check_tokenizer(checkpoint, tokenizer, model.config)
    return DelaySpeech(model, tokenizer)


FAMILY = Family("MOSS-TTS delay", IGNORABLE_TENSORS, _load, _load_language_model)
