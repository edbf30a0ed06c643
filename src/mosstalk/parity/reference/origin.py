"""What a dump was made from: the head of its `meta`, the same for every family."""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from mosstalk.checkpoint.checkpoint import Checkpoint
from mosstalk.checkpoint.directory import CODEC_FOLDER
from mosstalk.checkpoint.storage import StorageType, StoredTensor
from mosstalk.checkpoint.strict_config import ConfigReader
from mosstalk.errors import CheckpointError
from mosstalk.models.identity import language_model_identity, language_model_tensors


@dataclass(frozen=True, slots=True)
class Origin:
    """The checkpoint, the code and the libraries behind a dump.

    Attributes:
        family: `model_type` of the language model.
        model_identity: see `language_model_identity`.
        codec_identity: the checkpoint's, "" for a dump without codec.
        weight_types: how the language model's tensors were stored, sorted.
        codec_weight_types: the same of the codec's.
        versions: of Python, mosstalk and the libraries that computed.
        code: SHA-256 of each Python file that was there to be run.
        seed: of what was drawn: random rows, codes, audio.
    """

    family: str
    model_identity: str
    codec_identity: str
    weight_types: tuple[StorageType, ...]
    codec_weight_types: tuple[StorageType, ...]
    versions: Mapping[str, str]
    code: Mapping[str, str]
    seed: int

    def as_meta(self) -> dict[str, object]:
        """The keys of `meta` that `read_origin` reads."""
        return {
            "family": self.family,
            "model_identity": self.model_identity,
            "codec_identity": self.codec_identity,
            "weight_types": list(self.weight_types),
            "codec_weight_types": list(self.codec_weight_types),
            "dtype": "float32",
            "versions": dict(self.versions),
            "code": dict(self.code),
            "seed": self.seed,
        }


def read_origin(meta: ConfigReader, values: Mapping[str, object], where: str) -> Origin:
    """The head of a dump's `meta`; raises CheckpointError for a missing or wrong key."""
    meta.ignore("format", "version")
    if meta.get("dtype", str) != "float32":
        raise CheckpointError(f"{where}: it was computed in {values['dtype']}, not in float32")
    return Origin(
        family=meta.get("family", str),
        model_identity=meta.get("model_identity", str),
        codec_identity=meta.get("codec_identity", str),
        weight_types=_weight_types(meta, values, "weight_types", where),
        codec_weight_types=_weight_types(meta, values, "codec_weight_types", where),
        versions=_named_strings(meta, values, "versions", where),
        code=_named_strings(meta, values, "code", where),
        seed=meta.get("seed", int),
    )


def origin_of(
    checkpoint: Checkpoint, codec: Path | None, versions: Mapping[str, str], seed: int
) -> Origin:
    """The origin of a dump that is being made from an opened reference directory."""
    code = {file.name: file for file in sorted(checkpoint.path.glob("*.py"))}
    if codec is not None:
        code |= {f"{CODEC_FOLDER}/{file.name}": file for file in sorted(codec.glob("*.py"))}
    return Origin(
        family=str(checkpoint.config.get("model_type")),
        model_identity=language_model_identity(checkpoint),
        codec_identity=checkpoint.identity,
        weight_types=weight_types(language_model_tensors(checkpoint).values()),
        codec_weight_types=weight_types((checkpoint.codec_tensors or {}).values()),
        versions=versions,
        code={name: hashlib.sha256(file.read_bytes()).hexdigest() for name, file in code.items()},
        seed=seed,
    )


def weight_types(tensors: Iterable[StoredTensor]) -> tuple[StorageType, ...]:
    """The storage types among `tensors`, sorted."""
    return tuple(sorted({tensor.storage for tensor in tensors}))


def _weight_types(
    meta: ConfigReader, values: Mapping[str, object], key: str, where: str
) -> tuple[StorageType, ...]:
    meta.ignore(key)
    found = values.get(key)
    if not isinstance(found, list) or not all(isinstance(item, str) for item in found):
        raise CheckpointError(f"{where}: {key!r} is missing or not a list of weight types")
    if unknown := [item for item in found if item not in list(StorageType)]:
        raise CheckpointError(f"{where}: {key!r} names an unknown weight type {unknown[0]!r}")
    return tuple(StorageType(item) for item in found)


def _named_strings(
    meta: ConfigReader, values: Mapping[str, object], key: str, where: str
) -> dict[str, str]:
    meta.ignore(key)
    found = values.get(key)
    if not isinstance(found, dict) or not all(isinstance(item, str) for item in found.values()):
        raise CheckpointError(f"{where}: {key!r} is missing or not an object of strings")
    return found
