"""What a file is by its first bytes, and what it is instead when it is no model file."""

from enum import StrEnum
from pathlib import Path

from mosstalk.errors import CheckpointError

SAFETENSORS_MAX_HEADER = 100_000_000  # bytes; the limit of the safetensors format
_HEAD_BYTES = 512


class FileKind(StrEnum):
    """Model file formats that can be read."""

    SAFETENSORS = "safetensors"
    TORCH_ZIP = "PyTorch zip"
    TORCH_STREAM = "PyTorch stream"
    GGUF = "GGUF"


def file_kind(path: Path) -> FileKind:
    """The format of a model file.

    Raises CheckpointError for a missing or empty file, a Git LFS pointer, a web page, and
    anything else that is no model file.
    """
    head, size = _head_of(path)
    if size == 0:
        raise CheckpointError(f"{path} is empty; download it again")
    if head.startswith(b"version https://git-lfs"):
        raise CheckpointError(
            f"{path} is a Git LFS pointer, not the weights; run `git lfs pull` in its folder "
            "or `mosstalk pull`"
        )
    if head.lstrip().lower().startswith((b"<!doctype", b"<html", b"<?xml")):
        raise CheckpointError(f"{path} is a web page, not weights; download the raw file")
    if head.startswith(b"GGUF"):
        return FileKind.GGUF
    if head.startswith(b"PK\x03\x04"):
        return FileKind.TORCH_ZIP
    if head[:1] == b"\x80" and head[1:2] in (b"\x02", b"\x03", b"\x04", b"\x05"):
        return FileKind.TORCH_STREAM
    if head[8:9] == b"{" and int.from_bytes(head[:8], "little") <= SAFETENSORS_MAX_HEADER:
        return FileKind.SAFETENSORS
    raise CheckpointError(
        f"{path} is not a safetensors, PyTorch or GGUF file (it starts with {head[:8]!r})"
    )


def _head_of(path: Path) -> tuple[bytes, int]:
    """The first bytes of a file, and its size."""
    try:
        with path.open("rb") as file:
            return file.read(_HEAD_BYTES), path.stat().st_size
    except OSError as error:
        raise CheckpointError(f"cannot read {path}: {error.strerror}") from None
