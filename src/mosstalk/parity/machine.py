"""Where a report was made, and of which files."""

import hashlib
import os
import platform
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

from mosstalk.checkpoint.checkpoint import Checkpoint
from mosstalk.parity.opening import Opened

_LIBRARIES = ("mosstalk", "numpy")
_CPU_INFO = Path("/proc/cpuinfo")


def describe_machine(opened: Opened) -> dict[str, str]:
    """System, processor, versions, and the SHA-256 of the checkpoint's files."""
    facts = {
        "system": platform.platform(),
        "processor": _processor(),
        "logical cores": str(os.cpu_count()),
        "python": platform.python_version(),
        **{library: version(library) for library in _LIBRARIES},
        "backend": opened.backend.name,
    }
    for path in _files(opened.checkpoint):
        with path.open("rb") as file:
            facts[f"sha256 of {path.name}"] = hashlib.file_digest(file, "sha256").hexdigest()
    if opened.checkpoint.identity:
        facts["codec identity"] = opened.checkpoint.identity
    return facts


def _processor() -> str:
    if _CPU_INFO.is_file():  # Linux, where platform.processor() says little
        for line in _CPU_INFO.read_text(encoding="utf-8", errors="replace").splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "model name":
                return value.strip()
    return platform.processor() or platform.machine()


def _files(checkpoint: Checkpoint) -> Iterator[Path]:
    """The model's own files; a codec in another folder is told apart by its identity."""
    path = checkpoint.path
    if path.is_file():
        yield path
        return
    yield from sorted(
        file
        for pattern in (
            "config.json",
            "*.safetensors",
            "*.bin",
            "tokenizer.model",
            "tokenizer.json",
        )
        for file in path.glob(pattern)
        if file.is_file()
    )
