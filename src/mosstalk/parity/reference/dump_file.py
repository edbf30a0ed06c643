"""The file of a dump: a JSON object and named arrays, as .npz or .json (docs/parity_dump.md).

What the arrays mean is the business of each family's module. This one sees to it that a file
which is not whole is never read as if it were.
"""

import hashlib
import json
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosstalk.checkpoint.atomic import replacing_file
from mosstalk.checkpoint.json_file import parse_object, read_object
from mosstalk.errors import CheckpointError, UsageError

FORMAT = "mosstalk-reference-dump"
VERSION = 1
SUFFIXES = (".npz", ".json")

_META, _ARRAYS, _DIGEST = "meta", "arrays", "digest"
_DTYPES = (np.dtype(np.int32), np.dtype(np.float32))
# What NumPy and zipfile raise for a file that is cut off or altered.
_DAMAGE = (
    OSError, EOFError, ValueError, KeyError, NotImplementedError, MemoryError,
    zipfile.BadZipFile, zlib.error,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class DumpFile:
    """`meta` is plain JSON; arrays are int32 or float32."""

    meta: Mapping[str, object]
    arrays: Mapping[str, NDArray[Any]]


class ArrayReader:
    """Takes arrays out of a dump and remembers which were asked for.

    All methods raise CheckpointError that names the file and the array.
    """

    def __init__(self, arrays: Mapping[str, NDArray[Any]], where: str) -> None:
        self._arrays = arrays
        self._where = where
        self._known: set[str] = set()

    def ids(self, name: str, shape: Sequence[int | None]) -> NDArray[np.int32]:
        """An array of ids, none below 0.

        `shape` has None where any size but 0 will do. An array that has a size of 0 in it is not
        in the file.
        """
        ids: NDArray[np.int32] = self._take(name, np.dtype(np.int32), shape)
        if ids.size and ids.min() < 0:
            raise CheckpointError(f"{self._where}: {name!r} has ids below 0; make the dump again")
        return ids

    def reals(
        self, name: str, shape: Sequence[int | None], low: float = -np.inf, high: float = np.inf
    ) -> NDArray[np.float32]:
        """An array of finite numbers from `low` to `high`; `shape` as in `ids`."""
        values: NDArray[np.float32] = self._take(name, np.dtype(np.float32), shape)
        if not np.isfinite(values).all():
            raise CheckpointError(
                f"{self._where}: {name!r} has values that are not finite; make the dump again"
            )
        if values.size and not low <= values.min() <= values.max() <= high:
            raise CheckpointError(
                f"{self._where}: {name!r} has values outside {low:g} to {high:g}; make the dump "
                "again"
            )
        return values

    def finish(self) -> None:
        """Raise for arrays that nobody asked for."""
        if left := sorted(self._arrays.keys() - self._known):
            raise CheckpointError(
                f"{self._where} has {len(left)} unknown arrays, such as {left[0]!r}; it is of "
                "another version of mosstalk, or damaged"
            )

    def _take(self, name: str, dtype: np.dtype[Any], shape: Sequence[int | None]) -> NDArray[Any]:
        self._known.add(name)
        found = self._arrays.get(name)
        if found is None and 0 in shape:
            return np.empty([size or 0 for size in shape], dtype)
        if found is None:
            raise CheckpointError(f"{self._where}: {name!r} is missing; make the dump again")
        wanted = [size if size is not None else "n" for size in shape]
        fits = found.ndim == len(shape) and all(
            size == has if size is not None else has
            for size, has in zip(shape, found.shape, strict=True)
        )
        if found.dtype != dtype or not fits:
            raise CheckpointError(
                f"{self._where}: {name!r} is {found.dtype} {list(found.shape)}, not {dtype} "
                f"{wanted}; make the dump again"
            )
        return found


def check_suffix(path: Path) -> None:
    """Raise UsageError unless the name ends as one of the two forms does."""
    if path.suffix.lower() not in SUFFIXES:
        raise UsageError(f"{path}: a dump's name ends in {' or '.join(SUFFIXES)}")


def write_dump_file(path: Path, dump: DumpFile) -> None:
    """Write `dump` in the form that the name asks for; raises UsageError and OutputError."""
    check_suffix(path)
    meta = {**dump.meta, _DIGEST: _digest(dump)}
    with replacing_file(path) as temporary:
        if path.suffix.lower() == ".json":
            arrays = {name: _as_json(array) for name, array in dump.arrays.items()}
            text = json.dumps({_META: meta, _ARRAYS: arrays}, allow_nan=False, ensure_ascii=False)
            temporary.write_text(text + "\n", encoding="utf-8")
            return
        named: dict[str, Any] = {**dump.arrays, _META: np.array(_canonical(meta))}
        with temporary.open("wb") as file:
            np.savez_compressed(file, **named)


def read_dump_file(path: Path) -> DumpFile:
    """Read a dump; raises UsageError for another kind of name.

    Raises CheckpointError for a file that is missing, damaged, of another format or version, or
    changed since it was written.
    """
    check_suffix(path)
    if not path.is_file():
        raise CheckpointError(f"{path} does not exist; make it with `mosstalk parity dump`")
    meta, arrays = (_read_json if path.suffix.lower() == ".json" else _read_npz)(path)
    if meta.get("format") != FORMAT:
        raise CheckpointError(f"{path} is not a dump of `mosstalk parity dump`")
    if meta.get("version") != VERSION:
        raise CheckpointError(
            f"{path} is a dump of version {meta.get('version')!r}; this mosstalk reads {VERSION}; "
            "make it again"
        )
    if wrong := [name for name, array in arrays.items() if array.dtype not in _DTYPES]:
        raise CheckpointError(f"{path}: {wrong[0]!r} is {arrays[wrong[0]].dtype}; make it again")
    digest = meta.pop(_DIGEST, None)
    dump = DumpFile(meta, arrays)
    if digest != _digest(dump):
        raise CheckpointError(f"{path} was changed or damaged after it was made; make it again")
    return dump


def _read_npz(path: Path) -> tuple[dict[str, object], dict[str, NDArray[Any]]]:
    try:
        with path.open("rb") as file:
            archive = np.load(file, allow_pickle=False)
            if not isinstance(archive, np.lib.npyio.NpzFile):
                raise ValueError("not a zip archive")
            arrays = {name: archive[name] for name in archive.files}
        if not all(isinstance(array, np.ndarray) for array in arrays.values()):
            raise ValueError("not an archive of arrays")
        meta = arrays.pop(_META)
    except _DAMAGE as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise CheckpointError(f"{path} is damaged, or no dump ({reason}); make it again") from None
    return parse_object(str(meta), f"{path}, {_META}"), arrays


def _read_json(path: Path) -> tuple[dict[str, object], dict[str, NDArray[Any]]]:
    values = read_object(path)
    meta, arrays = values.get(_META), values.get(_ARRAYS)
    if not isinstance(meta, dict) or not isinstance(arrays, dict):
        raise CheckpointError(f"{path} is not a dump of `mosstalk parity dump`")
    return meta, {name: _from_json(name, array, path) for name, array in arrays.items()}


def _as_json(array: NDArray[Any]) -> dict[str, object]:
    """float32 values are written as the float64 they are, so they come back the same."""
    return {
        "dtype": str(array.dtype),
        "shape": list(array.shape),
        "values": array.reshape(-1).tolist(),
    }


def _from_json(name: str, value: object, path: Path) -> NDArray[Any]:
    try:
        if not isinstance(value, dict):
            raise ValueError("not an object")
        with np.errstate(over="ignore"):
            flat = np.array(value["values"], np.dtype(value["dtype"]))
        return flat.reshape(value["shape"])
    except (ValueError, KeyError, TypeError, OverflowError) as error:
        raise CheckpointError(
            f"{path}: array {name!r} is damaged ({type(error).__name__}: {error}); make it again"
        ) from None


def _digest(dump: DumpFile) -> str:
    """A SHA-256 over everything but itself."""
    digest = hashlib.sha256(_canonical(dump.meta).encode())
    for name in sorted(dump.arrays):
        array = np.ascontiguousarray(dump.arrays[name])
        digest.update(f"\n{name} {array.dtype} {array.shape}\n".encode())
        digest.update(array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes())
    return digest.hexdigest()


def _canonical(meta: Mapping[str, object]) -> str:
    return json.dumps(dict(meta), sort_keys=True, allow_nan=False, ensure_ascii=True)
