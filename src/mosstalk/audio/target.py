"""A file that takes its name only when it is complete."""

import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from mosstalk.errors import OutputError


def write_failure(name: object, error: OSError) -> OutputError:
    """What a user is told when writing `name` fails."""
    return OutputError(f"cannot write {name}: {error.strerror or error}")


def check_target(path: Path) -> None:
    """Raise OutputError where `path` is a folder or something odd, or its folder is missing."""
    real = Path(os.path.realpath(path))
    if real.is_dir():
        raise OutputError(f"cannot write {path}: it is a folder; name a file in it")
    if real.exists() and not real.is_file():
        raise OutputError(f"cannot write {path}: it is not a regular file; use - to pipe")
    if not real.parent.is_dir():
        raise OutputError(f"cannot write {path}: the folder {path.parent} does not exist")


class TargetFile:
    """A file being written under a temporary name in the folder of its own.

    Attributes:
        path: the file's name, as given.
        file: the temporary file, open for writing.

    Raises:
        OutputError: the folder is missing or cannot be written, or `path` is a folder.
    """

    def __init__(self, path: Path) -> None:
        check_target(path)
        self.path = path
        self._real = Path(os.path.realpath(path))
        self._temporary = self._real.with_name(f".{secrets.token_hex(8)}{self._real.suffix}")
        try:
            self.file: BinaryIO = self._temporary.open("x+b")
        except OSError as error:
            raise write_failure(path, error) from error

    def commit(self) -> None:
        """Give the file its name; one that stood there passes on its permissions."""
        try:
            self.file.close()
            if self._real.exists():
                self._temporary.chmod(stat.S_IMODE(self._real.stat().st_mode))
            self._temporary.replace(self._real)
        except OSError as error:
            raise write_failure(self.path, error) from error

    def discard(self) -> None:
        """Remove the temporary file."""
        with suppress(OSError):
            self.file.close()
        with suppress(OSError):
            self._temporary.unlink()
