"""Writes a checkpoint as one GGUF file or as a directory of safetensors."""

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path

import gguf
import numpy as np

from mosstalk.checkpoint import gguf_model
from mosstalk.checkpoint.atomic import new_folder, replacing_file
from mosstalk.checkpoint.checkpoint import Checkpoint
from mosstalk.checkpoint.directory import (
    CODEC_FOLDER,
    CONFIG,
    TOKENIZER,
    TOKENIZER_JSON,
    WEIGHTS,
)
from mosstalk.checkpoint.gguf_file import GGML_TYPES
from mosstalk.checkpoint.mapping import matches_any
from mosstalk.checkpoint.safetensors_file import DTYPES
from mosstalk.checkpoint.storage import StorageType, StoredTensor, packed_bytes
from mosstalk.checkpoint.weights import as_weight, storage_for
from mosstalk.errors import CheckpointError, UsageError

_SHORT_SUFFIX = {
    ".parametrizations.weight.original0": ".weight_g",
    ".parametrizations.weight.original1": ".weight_v",
    ".self_attn.in_projs.0.weight": ".self_attn.in_proj.weight",
    ".self_attn.out_projs.0.weight": ".self_attn.out_proj.weight",
}


def write_gguf(
    checkpoint: Checkpoint, out: Path, storage: StorageType, *, skip: Sequence[str] = ()
) -> None:
    """Write everything in `checkpoint` to one file; the layout is in `gguf_model`.

    Matrices are stored as `storage` says (see `weights.storage_for`). `skip` holds fnmatch
    patterns of language model tensors to leave out. Raises OutputError, and then leaves no file;
    CheckpointError for a tensor whose name is too long.
    """
    named = {
        _gguf_name(prefix, name): tensor
        for prefix, tensors in (
            (gguf_model.MODEL_PREFIX, _kept(checkpoint.tensors, skip)),
            (gguf_model.CODEC_PREFIX, checkpoint.codec_tensors or {}),
        )
        for name, tensor in tensors.items()
    }
    model_type = (checkpoint.config or checkpoint.codec_config or {}).get("model_type", "unknown")
    with (
        replacing_file(out) as temporary,
        closing(gguf.GGUFWriter(temporary, str(model_type))) as writer,
    ):
        _add_fields(writer, checkpoint)
        for name, tensor in named.items():
            target = storage_for(tensor, storage)
            writer.add_tensor_info(
                name,
                tensor.shape,
                np.dtype(np.float32),  # not used: the type is given as raw_dtype
                packed_bytes(tensor.shape, target),
                raw_dtype=gguf.GGMLQuantizationType(GGML_TYPES[target]),
            )
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_ti_data_to_file()
        for tensor in named.values():
            writer.write_tensor_data(as_weight(tensor, storage).data)


def write_safetensors(
    checkpoint: Checkpoint, out_dir: Path, storage: StorageType, *, skip: Sequence[str] = ()
) -> None:
    """Write `checkpoint` as a directory: config.json, model.safetensors, its tokeniser's file and
    the codec in audio_tokenizer/ (or in the directory itself, for a codec alone).

    `storage` and `skip` as in `write_gguf`. Raises UsageError for q8_0, which safetensors cannot
    hold, and OutputError, after which no directory is left.
    """
    model = _kept(checkpoint.tensors, skip)
    codec = checkpoint.codec_tensors or {}
    for tensor in (*model.values(), *codec.values()):
        if storage_for(tensor, storage) is StorageType.Q8_0:
            raise UsageError(
                "safetensors cannot hold q8_0 weights; write a .gguf file, or choose f32, f16 "
                "or bf16"
            )
    with new_folder(out_dir) as folder:
        if checkpoint.config:
            _write_part(folder, checkpoint.config, model.values(), storage)
        if checkpoint.codec_config is not None:
            place = folder / CODEC_FOLDER if checkpoint.config else folder
            _write_part(place, checkpoint.codec_config, codec.values(), storage)
        if checkpoint.tokenizer_model is not None:
            (folder / TOKENIZER).write_bytes(checkpoint.tokenizer_model)
        if checkpoint.tokenizer_json is not None:
            (folder / TOKENIZER_JSON).write_bytes(checkpoint.tokenizer_json)


def _kept(tensors: Mapping[str, StoredTensor], skip: Sequence[str]) -> dict[str, StoredTensor]:
    return {name: tensor for name, tensor in tensors.items() if not matches_any(name, skip)}


def _gguf_name(prefix: str, name: str) -> str:
    for long, short in _SHORT_SUFFIX.items():
        if name.endswith(long):
            name = name.removesuffix(long) + short
    if len((prefix + name).encode()) > gguf_model.MAX_NAME_BYTES:
        raise CheckpointError(
            f"tensor {name} cannot be written to GGUF: names have at most "
            f"{gguf_model.MAX_NAME_BYTES - len(prefix)} bytes; write a directory instead"
        )
    return prefix + name


def _add_fields(writer: gguf.GGUFWriter, checkpoint: Checkpoint) -> None:
    writer.add_uint32(gguf_model.FORMAT_KEY, gguf_model.FORMAT)
    if checkpoint.config:
        writer.add_string(gguf_model.CONFIG_KEY, _json_text(checkpoint.config))
    if checkpoint.codec_config is not None:
        writer.add_string(gguf_model.CODEC_CONFIG_KEY, _json_text(checkpoint.codec_config))
    if checkpoint.tokenizer_model:
        writer.add_array(gguf_model.TOKENIZER_KEY, checkpoint.tokenizer_model)
    if checkpoint.tokenizer_json:
        writer.add_array(gguf_model.TOKENIZER_JSON_KEY, checkpoint.tokenizer_json)


def _json_text(config: Mapping[str, object]) -> str:
    return json.dumps(dict(config), indent=2, ensure_ascii=False)


def _write_part(
    folder: Path,
    config: Mapping[str, object],
    tensors: Iterable[StoredTensor],
    storage: StorageType,
) -> None:
    """Write a config.json and a model.safetensors, converting one tensor at a time."""
    folder.mkdir(exist_ok=True)
    (folder / CONFIG).write_text(_json_text(config) + "\n", encoding="utf-8")
    # Widest items first, as safetensors itself does: then every tensor is aligned.
    ordered = sorted(
        tensors, key=lambda item: (storage_for(item, storage) is not StorageType.F32, item.name)
    )
    header: dict[str, object] = {"__metadata__": {"format": "pt"}}
    end = 0
    for tensor in ordered:
        target = storage_for(tensor, storage)
        begin, end = end, end + packed_bytes(tensor.shape, target)
        header[tensor.name] = {
            "dtype": DTYPES[target],
            "shape": tensor.shape,
            "data_offsets": [begin, end],
        }
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with (folder / WEIGHTS).open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for tensor in ordered:
            file.write(np.ascontiguousarray(as_weight(tensor, storage).data).data)
        file.flush()
        os.fsync(file.fileno())
