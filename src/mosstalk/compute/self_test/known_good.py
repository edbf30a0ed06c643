"""Which devices have passed the self-test: a small JSON file in the user's cache folder.

A device is known by its backend and identity, together with the code that was tested: another
driver, processor, version or build is another device. A file that is damaged or cannot be written
costs the time of the test and nothing else.
"""

import json
import os
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import platformdirs

from mosstalk.checkpoint.atomic import replacing_file
from mosstalk.checkpoint.json_file import read_object
from mosstalk.compute.backend import Backend
from mosstalk.errors import CheckpointError, OutputError

_FILE = "self-test.json"
_MOST = 32  # devices in the file, the latest first
_CODE = Path(__file__).parents[1]  # the op table, its definition and all backends


def cache_folder() -> Path:
    """$MOSSTALK_CACHE, or the folder for cached data of this system."""
    named = os.environ.get("MOSSTALK_CACHE")
    return Path(named) if named else Path(platformdirs.user_cache_dir("mosstalk"))


def is_known_good(backend: Backend) -> bool:
    """Whether this device has passed before, with this code."""
    return _key(backend) in _passed()


def remember_good(backend: Backend) -> None:
    """Keep that the device has passed; nothing is kept where the folder cannot be written."""
    key = _key(backend)
    passed = [key, *(other for other in _passed() if other != key)]
    folder = cache_folder()
    with suppress(OSError, OutputError):
        folder.mkdir(parents=True, exist_ok=True)
        with replacing_file(folder / _FILE) as file:
            file.write_text(json.dumps({"passed": passed[:_MOST]}, indent=1), "utf-8")


def _passed() -> list[str]:
    try:
        passed = read_object(cache_folder() / _FILE).get("passed")
    except CheckpointError:  # not there, or not what it should be
        return []
    return [key for key in passed if isinstance(key, str)] if isinstance(passed, list) else []


def _key(backend: Backend) -> str:
    return f"{backend.name} {backend.identity}, code {_code_stamp():08x}"


def _code_stamp() -> int:
    """A number that changes with any file of the code: their paths, sizes and times."""
    return zlib.crc32("\n".join(sorted(_files(_CODE))).encode())


def _files(folder: str | Path) -> Iterator[str]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir():
                yield from _files(entry.path)
            elif entry.name.endswith(".py"):
                stat = entry.stat()
                yield f"{entry.path} {stat.st_size} {stat.st_mtime_ns}"
