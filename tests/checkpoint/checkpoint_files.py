"""Writers of small checkpoint files for the tests, independent of the code under test."""

import json
import pickle
import struct
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

TORCH_NAMES = {"float32": "FloatStorage", "float16": "HalfStorage", "uint16": "BFloat16Storage"}
SAFETENSORS_NAMES = {"float32": "F32", "float16": "F16", "uint16": "BF16", "int64": "I64"}


def bf16(values: NDArray[np.float32]) -> NDArray[np.uint16]:
    """The upper halves of float32 values, without rounding."""
    return (values.view(np.uint32) >> 16).astype(np.uint16)


def widen(bits: NDArray[np.uint16]) -> NDArray[np.float32]:
    return (bits.astype(np.uint32) << 16).view(np.float32)


def write_safetensors_file(path: Path, arrays: Mapping[str, NDArray[np.generic]]) -> None:
    """A safetensors file; uint16 arrays become BF16."""
    header, data = {}, b""
    for name, array in arrays.items():
        raw = array.tobytes()
        header[name] = {
            "dtype": SAFETENSORS_NAMES[array.dtype.name],
            "shape": array.shape,
            "data_offsets": [len(data), len(data) + len(raw)],
        }
        data += raw
    write_raw_safetensors(path, json.dumps(header).encode(), data)


def write_raw_safetensors(path: Path, header: bytes, data: bytes) -> None:
    path.write_bytes(len(header).to_bytes(8, "little") + header + data)


@dataclass
class View:
    """A tensor as torch describes it: a view of storage number `storage`."""

    storage: int
    shape: Sequence[int]
    stride: Sequence[int]
    offset: int = 0


def torch_pickle(
    views: Mapping[str, View], storages: Sequence[NDArray[np.generic]], *, stream: bool = False
) -> bytes:
    """The pickle by which torch.save describes a dictionary of tensors (protocol 2)."""

    def text(value: str) -> bytes:
        return b"X" + struct.pack("<I", len(value.encode())) + value.encode()

    def numbers(values: Sequence[int]) -> bytes:
        return b"(" + b"".join(b"J" + struct.pack("<i", value) for value in values) + b"t"

    def one(view: View) -> bytes:
        array = storages[view.storage]
        storage_class = f"ctorch\n{TORCH_NAMES[array.dtype.name]}\n".encode()
        key = text("storage") + storage_class + text(str(view.storage)) + text("cpu")
        count = b"J" + struct.pack("<i", array.size) + (b"N" if stream else b"")
        arguments = b"((" + key + count + b"tQ" + b"J" + struct.pack("<i", view.offset)
        arguments += numbers(view.shape) + numbers(view.stride) + b"\x89" + ordered + b"t"
        return b"ctorch._utils\n_rebuild_tensor_v2\n" + arguments + b"R"

    ordered = b"ccollections\nOrderedDict\n)R"
    items = b"".join(text(name) + one(view) for name, view in views.items())
    return b"\x80\x02" + ordered + b"(" + items + b"u."


def write_torch_zip(
    path: Path,
    description: bytes,
    storages: Sequence[NDArray[np.generic]] = (),
    *,
    byteorder: bytes = b"little",
    compression: int = zipfile.ZIP_STORED,
) -> None:
    """A file in the layout of torch.save, with storages aligned to 64 bytes as torch has them."""
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("archive/data.pkl", description)
        archive.writestr("archive/byteorder", byteorder)
        for number, array in enumerate(storages):
            info = zipfile.ZipInfo(f"archive/data/{number}")
            info.compress_type = compression
            start = archive.fp.tell() + 30 + len(info.filename) + 4
            padding = -start % 64
            info.extra = b"FB" + struct.pack("<H", padding) + b"Z" * padding
            archive.writestr(info, array.tobytes())
        archive.writestr("archive/version", b"3\n")


def write_torch_stream(
    path: Path, description: bytes, storages: Sequence[NDArray[np.generic]]
) -> None:
    """A file in the layout of torch.save before version 1.6."""
    system = {"protocol_version": 1001, "little_endian": True, "type_sizes": {"int": 4}}
    parts = [pickle.dumps(value, 2) for value in (0x1950A86A20F9469CFC6C, 1001, system)]
    parts += [description, pickle.dumps([str(number) for number in range(len(storages))], 2)]
    parts += [struct.pack("<q", array.size) + array.tobytes() for array in storages]
    path.write_bytes(b"".join(parts))


def write_model(
    directory: Path,
    arrays: Mapping[str, NDArray[np.generic]],
    model_type: str = "moss_tts_nano",
    **config: object,
) -> Path:
    """A model directory with config.json and model.safetensors."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "config.json").write_text(json.dumps({"model_type": model_type, **config}))
    write_safetensors_file(directory / "model.safetensors", arrays)
    return directory
