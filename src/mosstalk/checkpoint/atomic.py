"""Writes a file or a folder whole or not at all: beside its place first, then renamed."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from mosstalk.errors import OutputError


@contextmanager
def replacing_file(out: Path) -> Iterator[Path]:
    """A path to write to, which takes the place of `out` on success and is removed on failure.

    Raises OutputError for whatever the system refuses: no such folder, no permission, disk full.
    """
    if out.is_dir():
        raise OutputError(f"cannot write {out}: it is a folder; name a file")
    temporary = _beside(out)
    try:
        yield temporary
        os.replace(temporary, out)
    except OSError as error:
        raise _refused(out, error) from None
    finally:
        with suppress(OSError):  # not there: after success, or where it could not be made
            temporary.unlink()


@contextmanager
def new_folder(out: Path) -> Iterator[Path]:
    """A folder to fill, which becomes `out` on success and is removed on failure.

    `out` must not exist, or be empty. Raises OutputError like `replacing_file`.
    """
    temporary = _beside(out)
    try:
        if out.exists() and (not out.is_dir() or any(out.iterdir())):
            raise OutputError(f"{out} exists and is not an empty folder; name another or remove it")
        temporary.mkdir(parents=True)
        yield temporary
        if out.exists():
            out.rmdir()
        os.replace(temporary, out)
    except OSError as error:
        raise _refused(out, error) from None
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _beside(out: Path) -> Path:
    return out.parent / f".{out.name}.{os.getpid()}.part"


def _refused(out: Path, error: OSError) -> OutputError:
    reason = error.strerror or str(error)
    return OutputError(f"cannot write {out}: {reason}; free space or choose another place")
