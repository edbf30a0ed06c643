"""Model families by the `model_type` of their config.json: a folder and one line each."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from mosstalk.checkpoint.checkpoint import Checkpoint
from mosstalk.checkpoint.storage import StorageType
from mosstalk.compute.backend import Backend
from mosstalk.errors import CheckpointError
from mosstalk.models.speech_model import SpeechModel

_FAMILIES = {
    "moss_tts_nano": "mosstalk.models.moss_tts_nano.family",
    "moss_tts_delay": "mosstalk.models.moss_tts_delay.family",
}


@dataclass(frozen=True, slots=True)
class Family:
    """How a family is recognised, converted and loaded; each family's `family.py` makes one."""

    name: str
    ignorable_tensors: tuple[str, ...]  # fnmatch patterns of tensors that are not read
    load: Callable[[Checkpoint, Backend, StorageType], SpeechModel[Any]]
    load_language_model: Callable[[Checkpoint, Backend, StorageType], Any]  # for parity tools


def family_for(config: Mapping[str, object]) -> Family:
    """The family that runs a checkpoint; raises CheckpointError for an unknown one."""
    model_type = config.get("model_type")
    if not isinstance(model_type, str) or model_type not in _FAMILIES:
        raise CheckpointError(
            f"no family runs models of type {model_type!r}; known are {', '.join(_FAMILIES)}"
        )
    family: Family = import_module(_FAMILIES[model_type]).FAMILY
    return family
