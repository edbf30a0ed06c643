"""A whole model in one GGUF file: language model, codec and tokeniser.

Layout, format 1:

    general.architecture       the language model's model_type (a codec's, in a file of a codec)
    mosstalk.format            uint32, 1
    mosstalk.config            JSON text of the language model's config.json; absent for a codec
    mosstalk.codec_config      JSON text of the codec's config.json; absent without a codec
    mosstalk.tokenizer_model   uint8 array, the SentencePiece model; absent without one
    mosstalk.tokenizer_json    uint8 array, the tokenizer.json file; absent without one
    tensors                    model.<name> and codec.<name>, with the names of the checkpoint

Names have at most 63 bytes, the limit of other GGUF readers. Names of weight-normalised layers
are longer, and are written in their older form: `.weight_g` for
`.parametrizations.weight.original0`, `.weight_v` for `...original1`.
"""

from pathlib import Path

import numpy as np

from mosstalk.checkpoint.gguf_file import GgufFile
from mosstalk.checkpoint.json_file import parse_object
from mosstalk.checkpoint.parts import Part, Parts
from mosstalk.checkpoint.storage import StoredTensor
from mosstalk.errors import CheckpointError

FORMAT = 1
FORMAT_KEY = "mosstalk.format"
CONFIG_KEY = "mosstalk.config"
CODEC_CONFIG_KEY = "mosstalk.codec_config"
TOKENIZER_KEY = "mosstalk.tokenizer_model"
TOKENIZER_JSON_KEY = "mosstalk.tokenizer_json"
MODEL_PREFIX = "model."
CODEC_PREFIX = "codec."
MAX_NAME_BYTES = 63


def read_gguf_model(path: Path) -> Parts:
    """The parts in a GGUF file of ours; raises CheckpointError, also for one of another program."""
    file = GgufFile(path)
    version = file.fields.get(FORMAT_KEY)
    if version is None:
        architecture = file.fields.get("general.architecture", "unknown")
        raise CheckpointError(
            f"{path} is a GGUF file of a {architecture!r} model, not one by mosstalk; make one "
            "with `mosstalk convert`"
        )
    if version != FORMAT:
        raise CheckpointError(
            f"{path} has mosstalk format {version}, and this version reads {FORMAT}; "
            "update mosstalk or convert the model again"
        )
    tensors = file.tensors()
    model = _part(file, CONFIG_KEY, MODEL_PREFIX, tensors)
    codec = _part(file, CODEC_CONFIG_KEY, CODEC_PREFIX, tensors)
    if tensors:
        raise CheckpointError(f"{path} has tensor {next(iter(tensors))} of no part; convert again")
    return Parts(model, codec, _bytes(file, TOKENIZER_KEY), _bytes(file, TOKENIZER_JSON_KEY))


def _bytes(file: GgufFile, key: str) -> bytes | None:
    """The byte array under `key`; None where there is none."""
    value = file.fields.get(key)
    if value is not None and not isinstance(value, np.ndarray):
        raise CheckpointError(f"{file.path}: {key} is no byte array; convert again")
    return None if value is None else value.tobytes()


def _part(file: GgufFile, key: str, prefix: str, tensors: dict[str, StoredTensor]) -> Part | None:
    """The part with a config under `key`; its tensors are taken out of `tensors`."""
    text = file.fields.get(key)
    if text is None:
        return None
    config = parse_object(str(text), f"{file.path}: {key}")
    names = [name for name in tensors if name.startswith(prefix)]
    taken = {name.removeprefix(prefix): tensors.pop(name) for name in names}
    return Part(config, {name: _renamed(tensor, name) for name, tensor in taken.items()})


def _renamed(tensor: StoredTensor, name: str) -> StoredTensor:
    return StoredTensor(name, tensor.shape, tensor.storage, tensor.data)
