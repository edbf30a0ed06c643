"""Reads safetensors files: a length, a JSON header, then the tensors' bytes.

Format: https://huggingface.co/docs/safetensors (8 bytes little-endian header length; header
`{name: {dtype, shape, data_offsets: [begin, end]}}`, offsets from the end of the header).
"""

from pathlib import Path
from typing import TypeGuard

from mosstalk.checkpoint.json_file import parse_object
from mosstalk.checkpoint.mapped import map_file, tensor_at
from mosstalk.checkpoint.sniff import SAFETENSORS_MAX_HEADER
from mosstalk.checkpoint.storage import StorageType, StoredTensor, packed_bytes
from mosstalk.errors import CheckpointError

DTYPES = {StorageType.F32: "F32", StorageType.F16: "F16", StorageType.BF16: "BF16"}
_STORAGES = {dtype: storage for storage, dtype in DTYPES.items()}


def read_safetensors(path: Path) -> dict[str, StoredTensor]:
    """All tensors of a file, by name, as views into the mapped file.

    Raises CheckpointError for a truncated or damaged file, tensors that overlap, and dtypes
    other than F32, F16 and BF16.
    """
    buffer = map_file(path)
    start = 8 + int.from_bytes(buffer[:8].tobytes(), "little")
    if start > 8 + SAFETENSORS_MAX_HEADER or len(buffer) < 8:
        raise CheckpointError(f"{path} is not a safetensors file: its header length is impossible")
    if start > len(buffer):
        raise _truncated(path, start, len(buffer))
    header = parse_object(buffer[8:start].tobytes(), f"{path}: the safetensors header")
    header.pop("__metadata__", None)
    tensors: dict[str, StoredTensor] = {}
    spans: list[tuple[int, int, str]] = []
    for name, entry in header.items():
        shape, storage, begin, end = _parse_entry(entry, f"{path}: tensor {name}")
        if start + end > len(buffer):
            raise _truncated(path, start + end, len(buffer))
        spans.append((begin, end, name))
        tensors[name] = tensor_at(buffer, start + begin, name, shape, storage)
    _refuse_overlap(spans, path)
    return tensors


def _parse_entry(entry: object, where: str) -> tuple[tuple[int, ...], StorageType, int, int]:
    """Shape, storage, begin and end of a header entry, checked against each other."""
    fields = entry if isinstance(entry, dict) else {}
    dtype, shape = fields.get("dtype"), fields.get("shape")
    offsets = fields.get("data_offsets")
    if not (_is_sizes(shape) and _is_sizes(offsets) and len(offsets) == 2):
        raise CheckpointError(f"{where} has a damaged header entry; download the file again")
    if str(dtype) not in _STORAGES:
        raise CheckpointError(f"{where} has dtype {dtype}; only F32, F16 and BF16 can be read")
    storage, (begin, end) = _STORAGES[str(dtype)], offsets
    if end - begin != packed_bytes(tuple(shape), storage):
        raise CheckpointError(
            f"{where} has shape {list(shape)} as {dtype} but {end - begin} bytes; "
            "the file is damaged, download it again"
        )
    return tuple(shape), storage, begin, end


def _is_sizes(value: object) -> TypeGuard[list[int]]:
    return isinstance(value, list) and all(type(item) is int and item >= 0 for item in value)


def _refuse_overlap(spans: list[tuple[int, int, str]], path: Path) -> None:
    reached, owner = 0, ""
    for begin, end, name in sorted(spans):
        if begin < reached and end > begin:
            raise CheckpointError(
                f"{path}: tensors {owner} and {name} overlap; the file is damaged"
            )
        if end > reached:
            reached, owner = end, name


def _truncated(path: Path, needed: int, size: int) -> CheckpointError:
    return CheckpointError(
        f"{path} is truncated: its header asks for {needed} bytes and it has {size}; "
        "download it again"
    )
