"""Opens a checkpoint: a directory as published, or one GGUF file."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from mosstalk.checkpoint.directory import read_directory
from mosstalk.checkpoint.gguf_model import read_gguf_model
from mosstalk.checkpoint.identity import codec_identity
from mosstalk.checkpoint.parts import Part, Parts
from mosstalk.checkpoint.sniff import FileKind, file_kind
from mosstalk.checkpoint.storage import StoredTensor
from mosstalk.errors import CheckpointError, UsageError


@dataclass(frozen=True)
class Checkpoint:
    """An opened checkpoint: configs, named tensors, tokeniser.

    Tensors are views into memory-mapped files: nothing is read until it is used.
    """

    path: Path  # what the user named
    kind: str  # "directory" or "gguf"
    config: Mapping[str, object]  # the language model's config.json; {} for a bare codec
    tensors: Mapping[str, StoredTensor]  # the language model's, by their names in the file
    codec_config: Mapping[str, object] | None  # the codec's config.json
    codec_tensors: Mapping[str, StoredTensor] | None
    tokenizer_model: bytes | None  # SentencePiece model
    identity: str  # 16 hex digits that tell codecs apart; "" without a codec
    tokenizer_json: bytes | None = None  # byte-level BPE and its added tokens

    @property
    def model_bytes(self) -> int:
        """Bytes of the language model's weights, stored as they are here."""
        return sum(tensor.num_bytes for tensor in self.tensors.values())


def open_checkpoint(path: Path, codec: Path | None = None) -> Checkpoint:
    """Open the model at `path`: a directory with config.json and weights, or a GGUF file of ours.

    The codec is the one at `codec` if given (directory or GGUF), else the one inside the GGUF
    file or in `audio_tokenizer/`, else None. A codec alone opens with an empty `config`.

    Raises CheckpointError for files that are missing, damaged or of an unknown kind, and
    UsageError where `codec` is given and `path` is a codec itself.
    """
    kind, parts = _read_parts(path, with_codec=codec is None)
    if codec is not None and parts.model is None:
        raise UsageError(f"{path} is a codec itself; leave the codec {codec} out")
    codec_part = parts.codec if codec is None else _read_codec(codec)
    if codec_part is not None and not codec_part.is_codec:
        raise CheckpointError(
            f"{codec or path}: the codec has model_type {codec_part.config.get('model_type')!r}, "
            "which is no MOSS audio tokenizer"
        )
    model = parts.model or Part({}, {})
    return Checkpoint(
        path=path,
        kind=kind,
        config=model.config,
        tensors=model.tensors,
        codec_config=codec_part.config if codec_part else None,
        codec_tensors=codec_part.tensors if codec_part else None,
        tokenizer_model=parts.tokenizer_model,
        identity=codec_identity(codec_part),
        tokenizer_json=parts.tokenizer_json,
    )


def _read_codec(path: Path) -> Part:
    """The codec at `path`: a codec alone, or the codec of a whole model."""
    _, parts = _read_parts(path, with_codec=True)
    part = parts.codec or parts.model
    if part is None:
        raise CheckpointError(f"{path} holds no codec")
    return part


def _read_parts(path: Path, *, with_codec: bool) -> tuple[str, Parts]:
    if path.is_dir():
        return "directory", read_directory(path, with_codec=with_codec)
    if not path.exists():
        raise CheckpointError(
            f"{path} does not exist; give a directory with config.json and weights, or a .gguf file"
        )
    if file_kind(path) is not FileKind.GGUF:
        raise CheckpointError(
            f"{path} holds weights alone; give its directory, which must have a config.json too"
        )
    return "gguf", read_gguf_model(path)
