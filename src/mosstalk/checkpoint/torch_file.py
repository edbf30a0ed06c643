"""Reads `pytorch_model.bin` without torch: the zip layout, and the stream layout before it.

Zip: `<name>/data.pkl` describes the tensors, `<name>/data/<key>` holds a storage each, stored
uncompressed. Stream: four pickles (magic, protocol, system, tensors), a pickled list of storage
keys, then for each an int64 count of items and the items.
"""

import math
import mmap
import struct
import zipfile
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np

from mosstalk.checkpoint.mapped import Bytes, map_file, tensor_at
from mosstalk.checkpoint.storage import StorageType, StoredTensor, packed_bytes
from mosstalk.checkpoint.torch_pickle import TorchStorage, TorchTensor, load_plain
from mosstalk.errors import CheckpointError

_STORAGES = {
    "FloatStorage": StorageType.F32,
    "HalfStorage": StorageType.F16,
    "BFloat16Storage": StorageType.BF16,
}
_MAGIC = 0x1950A86A20F9469CFC6C
_PROTOCOL = 1001
_MAX_DESCRIPTION = 256 << 20  # bytes of data.pkl
_LOCAL_HEADER = struct.Struct("<4s22xHH")  # signature, ..., length of the name, of the extra

FindStorage = Callable[[TorchStorage], Bytes]


def read_torch_zip(path: Path) -> dict[str, StoredTensor]:
    """All tensors of a file by torch.save, by name; contiguous ones are views into the map.

    Nothing in the file is run. Raises CheckpointError for a damaged file, one that asks to run
    something, and tensors other than float32, float16 and bfloat16.
    """
    buffer = map_file(path)
    try:
        with zipfile.ZipFile(path) as archive:
            members = {info.filename: info for info in archive.infolist()}
            root = _root_of(members, path)
            if members[f"{root}data.pkl"].file_size > _MAX_DESCRIPTION:
                raise CheckpointError(f"{path}: data.pkl is too large to describe tensors")
            description = archive.read(f"{root}data.pkl")
            order = f"{root}byteorder"
            if order in members and archive.read(order).strip() == b"big":
                raise CheckpointError(f"{path} was saved on a big-endian machine; save it again")
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, OSError) as error:
        raise CheckpointError(
            f"{path} is truncated or damaged ({error}); download it again"
        ) from None

    def find(storage: TorchStorage) -> Bytes:
        return _member_bytes(buffer, members.get(f"{root}data/{storage.key}"), storage.key, path)

    return _tensors(load_plain(BytesIO(description), str(path)), find, path)


def read_torch_stream(path: Path) -> dict[str, StoredTensor]:
    """All tensors of a file in torch's layout before 1.6, by name; see `read_torch_zip`."""
    buffer = map_file(path)
    with path.open("rb") as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as map_:
        file = cast(BinaryIO, map_)
        if load_plain(file, str(path)) != _MAGIC or load_plain(file, str(path)) != _PROTOCOL:
            raise CheckpointError(f"{path} is a pickle, but not one of tensors by torch.save")
        system = load_plain(file, str(path))
        if isinstance(system, dict) and system.get("little_endian") is False:
            raise CheckpointError(f"{path} was saved on a big-endian machine; save it again")
        state = load_plain(file, str(path))
        keys = load_plain(file, str(path))
        start = file.tell()
    places = _stream_storages(buffer, start, keys, _values(state, path), path)
    return _tensors(state, lambda storage: places.get(storage.key, buffer[:0]), path)


def _stream_storages(
    buffer: Bytes, start: int, keys: object, values: dict[str, TorchTensor], path: Path
) -> dict[str, Bytes]:
    """The bytes of each storage behind the pickles of the stream layout, by key."""
    users = {value.storage.key: (name, value.storage) for name, value in values.items()}
    places: dict[str, Bytes] = {}
    for key in keys if isinstance(keys, list) else []:
        if key not in users:
            raise CheckpointError(f"{path} keeps a storage {key} of no tensor; download it again")
        name, storage = users[key]
        count = int.from_bytes(buffer[start : start + 8].tobytes(), "little")
        size = packed_bytes((storage.numel,), _storage_of(storage, name, path))
        if count != storage.numel or start + 8 + size > len(buffer):
            raise CheckpointError(f"{path} is truncated or damaged at {name}; download it again")
        places[key] = buffer[start + 8 : start + 8 + size]
        start += 8 + size
    return places


def _root_of(members: dict[str, zipfile.ZipInfo], path: Path) -> str:
    """The folder of data.pkl inside the archive, with its slash."""
    roots = [name[: -len("data.pkl")] for name in members if name.endswith("/data.pkl")]
    if len(roots) != 1:
        raise CheckpointError(f"{path} is a zip file, but not one by torch.save (no data.pkl)")
    return roots[0]


def _member_bytes(buffer: Bytes, info: zipfile.ZipInfo | None, key: str, path: Path) -> Bytes:
    """The mapped bytes of an uncompressed member of the archive."""
    if info is None:
        raise CheckpointError(f"{path} lacks storage {key}; download it again")
    if info.compress_type != zipfile.ZIP_STORED:
        raise CheckpointError(f"{path} was compressed after saving; zip it again without (-0)")
    header = buffer[info.header_offset : info.header_offset + _LOCAL_HEADER.size].tobytes()
    if len(header) < _LOCAL_HEADER.size or not header.startswith(b"PK\x03\x04"):
        raise CheckpointError(f"{path} is damaged at storage {key}; download it again")
    _, name_length, extra_length = _LOCAL_HEADER.unpack(header)
    start = info.header_offset + _LOCAL_HEADER.size + name_length + extra_length
    return buffer[start : start + info.file_size]


def _values(state: object, path: Path) -> dict[str, TorchTensor]:
    """The state as a dictionary of tensors; raises CheckpointError for anything else."""
    if not isinstance(state, dict):
        raise CheckpointError(f"{path} holds a {type(state).__name__}, not a dictionary of tensors")
    values: dict[str, TorchTensor] = {}
    # dict.items: a hostile file could have put an `items` of its own on the dictionary.
    for name, value in dict.items(state):
        if not (isinstance(name, str) and isinstance(value, TorchTensor)):
            raise CheckpointError(f"{path}: {name} is a {type(value).__name__}, not a tensor")
        values[name] = value
    return values


def _tensors(state: object, find: FindStorage, path: Path) -> dict[str, StoredTensor]:
    return {
        name: _tensor(name, value, find(value.storage), path)
        for name, value in _values(state, path).items()
    }


def _storage_of(storage: TorchStorage, name: str, path: Path) -> StorageType:
    if storage.dtype.name not in _STORAGES:
        raise CheckpointError(
            f"{path}: tensor {name} is a torch {storage.dtype.name}; only float32, float16 and "
            "bfloat16 can be read"
        )
    return _STORAGES[storage.dtype.name]


def _tensor(name: str, value: TorchTensor, buffer: Bytes, path: Path) -> StoredTensor:
    """A described tensor over the bytes of its storage, copied only if not contiguous."""
    kind = _storage_of(value.storage, name, path)
    shape, stride, item = value.shape, value.stride, packed_bytes((1,), kind)
    if len(shape) != len(stride):
        raise CheckpointError(f"{path}: tensor {name} has {len(shape)} axes, {len(stride)} strides")
    count = math.prod(shape)
    reach = sum((size - 1) * step for size, step in zip(shape, stride, strict=True))
    needed = (value.offset + reach + 1) * item if count else 0
    # A stride of 0 repeats items, so a few bytes can describe a tensor of any size.
    if max(needed, count * item) > max(len(buffer), 1 << 16) or needed > len(buffer):
        raise CheckpointError(
            f"{path}: tensor {name} needs {max(needed, count * item)} bytes of a storage of "
            f"{len(buffer)}; the file is truncated or damaged, download it again"
        )
    if _is_contiguous(shape, stride) or not count:
        return tensor_at(buffer, value.offset * item, name, shape, kind)
    items = tensor_at(buffer, 0, name, (len(buffer) // item,), kind).data[value.offset :]
    strides = tuple(step * item for step in stride)
    view = np.lib.stride_tricks.as_strided(items, shape, strides, writeable=False)
    return StoredTensor(name, shape, kind, np.ascontiguousarray(view).reshape(shape))


def _is_contiguous(shape: tuple[int, ...], stride: tuple[int, ...]) -> bool:
    """Whether items lie row by row; the stride of an axis of length 1 is never used."""
    step = 1
    for size, given in zip(reversed(shape), reversed(stride), strict=True):
        if size != 1 and given != step:
            return False
        step *= size
    return True
