"""Reads GGUF files: metadata and tensors, memory-mapped.

The `gguf` package writes our files, and its constants name the types here. Its reader is not
used: it makes an array for each byte of a tokeniser model (seconds at every start), and follows
lengths in a damaged file without checks.
Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
"""

import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from mosstalk.checkpoint.mapped import Bytes, map_file, tensor_at
from mosstalk.checkpoint.storage import Q8_BLOCK_LEN, StorageType, StoredTensor, packed_bytes
from mosstalk.errors import CheckpointError

_VERSIONS = (2, 3)
_MAX_AXES = 8
_MAX_ARRAY_DEPTH = 4
_STRING, _ARRAY = 8, 9
_SCALARS: Mapping[int, np.dtype[Any]] = {
    0: np.dtype("<u1"),
    1: np.dtype("<i1"),
    2: np.dtype("<u2"),
    3: np.dtype("<i2"),
    4: np.dtype("<u4"),
    5: np.dtype("<i4"),
    6: np.dtype("<f4"),
    7: np.dtype("?"),
    10: np.dtype("<u8"),
    11: np.dtype("<i8"),
    12: np.dtype("<f8"),
}
GGML_TYPES = {
    StorageType.F32: 0,
    StorageType.F16: 1,
    StorageType.Q8_0: 8,
    StorageType.BF16: 30,
}
_STORAGES = {number: storage for storage, number in GGML_TYPES.items()}


class _Damaged(Exception):
    """A length or type in the file that cannot be."""


class _Cursor:
    """Reads little-endian values one after another, within bounds."""

    def __init__(self, buffer: Bytes) -> None:
        self.buffer = buffer
        self.offset = 0

    def take(self, size: int) -> Bytes:
        end = self.offset + size
        if end > len(self.buffer):
            raise _Damaged("it ends too early")
        taken = self.buffer[self.offset : end]
        self.offset = end
        return taken

    def u32(self) -> int:
        return int(struct.unpack("<I", self.take(4).tobytes())[0])

    def u64(self) -> int:
        return int(struct.unpack("<Q", self.take(8).tobytes())[0])

    def text(self) -> str:
        return self.take(self.u64()).tobytes().decode("utf-8")

    def value(self, kind: int, depth: int = 0) -> object:
        """A metadata value: number, bool, str, NumPy array of numbers, or list."""
        if kind in _SCALARS:
            return self.take(_SCALARS[kind].itemsize).view(_SCALARS[kind])[0].item()
        if kind == _STRING:
            return self.text()
        if kind != _ARRAY or depth > _MAX_ARRAY_DEPTH:
            raise _Damaged(f"metadata type {kind} does not exist")
        item, count = self.u32(), self.u64()
        if item in _SCALARS:
            return self.take(count * _SCALARS[item].itemsize).view(_SCALARS[item])
        return [self.value(item, depth + 1) for _ in range(count)]


class GgufFile:
    """An opened GGUF file: `fields` is its metadata by key."""

    def __init__(self, path: Path) -> None:
        """Read the metadata; raises CheckpointError for a damaged file."""
        self.path = path
        self._cursor = _Cursor(map_file(path))
        try:
            self._tensor_count, self.fields = self._read_fields()
        except (_Damaged, ValueError) as error:
            raise self._damaged(error) from None

    def tensors(self) -> dict[str, StoredTensor]:
        """All tensors by name, as views into the mapped file; to be called once.

        Raises CheckpointError for a damaged file, and for tensors of other types than F32, F16,
        BF16 and Q8_0.
        """
        try:
            return self._read_tensors()
        except (_Damaged, ValueError) as error:
            raise self._damaged(error) from None

    def _read_fields(self) -> tuple[int, dict[str, object]]:
        cursor = self._cursor
        if cursor.take(4).tobytes() != b"GGUF":
            raise _Damaged("it does not start with GGUF")
        version = cursor.u32()
        if version not in _VERSIONS:
            raise _Damaged(f"version {version} (or big-endian) cannot be read")
        tensor_count, field_count = cursor.u64(), cursor.u64()
        fields: dict[str, object] = {}
        for _ in range(field_count):
            key = cursor.text()
            if key in fields:
                raise _Damaged(f"key {key} stands twice")
            fields[key] = cursor.value(cursor.u32())
        return tensor_count, fields

    def _read_tensors(self) -> dict[str, StoredTensor]:
        entries = [self._read_entry() for _ in range(self._tensor_count)]
        alignment = self.fields.get("general.alignment", 32)
        if not isinstance(alignment, int) or alignment < 1:
            raise _Damaged("impossible alignment")
        start = -(-self._cursor.offset // alignment) * alignment
        buffer, tensors = self._cursor.buffer, dict[str, StoredTensor]()
        for name, shape, storage, offset in entries:
            end = start + offset + packed_bytes(shape, storage)
            if end > len(buffer):
                raise CheckpointError(
                    f"{self.path} is truncated: tensor {name} ends at byte {end} and the file "
                    f"has {len(buffer)}; download it again"
                )
            if name in tensors:
                raise _Damaged(f"tensor {name} stands twice")
            tensors[name] = tensor_at(buffer, start + offset, name, shape, storage)
        return tensors

    def _read_entry(self) -> tuple[str, tuple[int, ...], StorageType, int]:
        """Name, shape, storage type and offset of the next tensor."""
        cursor = self._cursor
        name, axes = cursor.text(), cursor.u32()
        if axes > _MAX_AXES:
            raise _Damaged(f"tensor {name} has {axes} axes")
        # GGUF lists the fastest axis first.
        shape = tuple(cursor.u64() for _ in range(axes))[::-1]
        number, offset = cursor.u32(), cursor.u64()
        if number not in _STORAGES:
            raise CheckpointError(
                f"{self.path}: tensor {name} has GGML type {number}; only F32, F16, BF16 and "
                "Q8_0 can be read"
            )
        storage = _STORAGES[number]
        if storage is StorageType.Q8_0 and (not shape or shape[-1] % Q8_BLOCK_LEN):
            raise _Damaged(f"tensor {name} of shape {list(shape)} cannot be Q8_0")
        return name, shape, storage, offset

    def _damaged(self, error: Exception) -> CheckpointError:
        return CheckpointError(f"{self.path} is damaged: {error}; download or convert it again")
