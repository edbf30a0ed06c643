"""JSON objects from files and strings, with errors that say where they stood."""

import json
from pathlib import Path

from mosstalk.errors import CheckpointError


def parse_object(text: str | bytes, where: str) -> dict[str, object]:
    """The JSON object in `text`; raises CheckpointError that names `where`.

    A name that stands twice in one object is an error too.
    """
    try:
        value = json.loads(text, object_pairs_hook=_without_duplicates)
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"{where} is not valid JSON: {error}") from None
    if not isinstance(value, dict):
        raise CheckpointError(f"{where} holds a JSON {type(value).__name__}, not an object")
    return value


def read_object(path: Path) -> dict[str, object]:
    """The JSON object in a file; raises CheckpointError."""
    try:
        return parse_object(path.read_bytes(), str(path))
    except OSError as error:
        raise CheckpointError(f"cannot read {path}: {error.strerror}") from None


def _without_duplicates(pairs: list[tuple[str, object]]) -> dict[str, object]:
    result = dict(pairs)
    if len(result) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"{twice!r} stands twice")
    return result
