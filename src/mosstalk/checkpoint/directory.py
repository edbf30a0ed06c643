"""Opens a model directory as it is published: config.json, weights, tokeniser, codec."""

from pathlib import Path

from mosstalk.checkpoint.files import read_weights_file
from mosstalk.checkpoint.json_file import read_object
from mosstalk.checkpoint.parts import Part, Parts
from mosstalk.checkpoint.storage import StoredTensor
from mosstalk.errors import CheckpointError

CONFIG = "config.json"
WEIGHTS = "model.safetensors"
TOKENIZER = "tokenizer.model"
TOKENIZER_JSON = "tokenizer.json"
CODEC_FOLDER = "audio_tokenizer"

# Looked for in this order; an index lists the files that hold the tensors.
_WEIGHT_FILES = (
    WEIGHTS,
    "model.safetensors.index.json",
    "pytorch_model.bin",
    "pytorch_model.bin.index.json",
)


def read_directory(directory: Path, *, with_codec: bool) -> Parts:
    """The parts in a model's directory, or in a codec's.

    `with_codec`: also open `audio_tokenizer/` if it is there. Raises CheckpointError.
    """
    part = read_part(directory)
    if part.is_codec:
        return Parts(None, part, None)
    codec = None
    if with_codec and (directory / CODEC_FOLDER).is_dir():
        codec = read_part(directory / CODEC_FOLDER)
    model = _read_bytes(directory / TOKENIZER)
    return Parts(part, codec, model, _read_bytes(directory / TOKENIZER_JSON))


def _read_bytes(path: Path) -> bytes | None:
    """A file's content; None where there is no such file."""
    try:
        return path.read_bytes() if path.exists() else None
    except OSError as error:
        raise CheckpointError(f"cannot read {path}: {error.strerror}") from None


def read_part(directory: Path) -> Part:
    """The config and tensors of one directory; raises CheckpointError."""
    if not (directory / CONFIG).exists():
        raise CheckpointError(
            f"{directory} has no {CONFIG}; a model directory holds {CONFIG} and one of "
            + ", ".join(_WEIGHT_FILES)
        )
    return Part(read_object(directory / CONFIG), _read_tensors(directory))


def _read_tensors(directory: Path) -> dict[str, StoredTensor]:
    name = next((name for name in _WEIGHT_FILES if (directory / name).exists()), None)
    if name is None:
        raise CheckpointError(
            f"{directory} has {CONFIG} but no weights; looked for " + ", ".join(_WEIGHT_FILES)
        )
    if name.endswith(".json"):
        return _read_shards(directory / name)
    return read_weights_file(directory / name)


def _read_shards(index: Path) -> dict[str, StoredTensor]:
    """The tensors of all files that an index names; they must hold exactly what it says."""
    files = read_object(index).get("weight_map")
    if not isinstance(files, dict) or not files:
        raise CheckpointError(f"{index} has no weight_map; download it again")
    tensors: dict[str, StoredTensor] = {}
    for name in sorted({str(file) for file in files.values()}):
        shard = index.parent / name
        if Path(name).name != name:
            raise CheckpointError(f"{index} names {name}, which is outside its folder; refusing")
        if not shard.exists():
            raise CheckpointError(f"{index} names {name}, which is not there; download it again")
        held = read_weights_file(shard)
        listed = {tensor for tensor, file in files.items() if file == name}
        if wrong := sorted(listed ^ held.keys()):
            raise CheckpointError(
                f"{index} and {name} disagree on {len(wrong)} tensors, such as {wrong[0]}; "
                "download both again"
            )
        tensors.update(held)
    return tensors
