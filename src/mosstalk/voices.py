"""Voices on disk: one small safetensors file each, in a folder of the user's.

A file holds `codes` (int16 [frames, codebooks]) and, as metadata, the format's version, the
codec's sample rate and identity, the hash of the recording, and, where known, its transcript and
(as JSON) its origin.
"""

import json
import os
import re
from collections.abc import Iterator
from dataclasses import asdict
from importlib import resources
from pathlib import Path

import numpy as np
import platformdirs
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from mosstalk.audio.target import TargetFile, write_failure
from mosstalk.errors import CheckpointError, OutputError, UsageError
from mosstalk.types import Voice, VoiceOrigin

_FORMAT = "mosstalk-voice-1"
_SUFFIX = ".voice.safetensors"
_NAME = re.compile(r"[\w][\w.-]{0,63}")
NO_VOICE = "none"  # asks for speech without a voice


def voices_folder() -> Path:
    """$MOSSTALK_VOICES, or the folder for user data of this system."""
    named = os.environ.get("MOSSTALK_VOICES")
    return Path(named) if named else Path(platformdirs.user_data_dir("mosstalk")) / "voices"


class VoiceStore:
    """The voices of one folder, and those that come with the package."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder or voices_folder()
        self._built_in = Path(str(resources.files("mosstalk") / "data" / "voices"))

    def names(self) -> list[str]:
        """All voices' names, sorted; a voice of the user's hides a built-in one."""
        found = {
            path.name.removesuffix(_SUFFIX)
            for folder in (self.folder, self._built_in)
            for path in folder.glob(f"*{_SUFFIX}")
        }
        return sorted(found)

    def load(self, name: str) -> Voice:
        """The voice called `name`; raises UsageError that lists the names if there is none."""
        _check_name(name)
        for folder in (self.folder, self._built_in):
            path = folder / f"{name}{_SUFFIX}"
            if path.is_file():
                return read_voice(path, name)
        known = ", ".join(self.names()) or "none yet"
        raise UsageError(
            f"unknown voice {name!r}; voices here: {known}; "
            "add one with `mosstalk voices add NAME CLIP`"
        )

    def check_free(self, name: str, *, replace: bool = False) -> Path:
        """Where a voice of this name goes; raises UsageError if it is taken, unless `replace`."""
        _check_name(name)
        path = self.folder / f"{name}{_SUFFIX}"
        if path.exists() and not replace:
            raise UsageError(
                f"there is a voice {name!r} already; remove it first, or give --replace"
            )
        return path

    def save(self, voice: Voice, *, replace: bool = False) -> Path:
        """Write a voice; raises UsageError if the name is taken, unless `replace`."""
        path = self.check_free(voice.name, replace=replace)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            target = TargetFile(path)
        except OSError as error:
            raise write_failure(path, error) from error
        try:
            target.file.write(_pack(voice))
            target.commit()
        except OSError as error:
            target.discard()
            raise write_failure(path, error) from error
        except OutputError:  # of the commit, which writes what is still in the buffer
            target.discard()
            raise
        return path

    def remove(self, name: str) -> None:
        """Delete a voice of the user's; raises UsageError if there is none of that name."""
        _check_name(name)
        path = self.folder / f"{name}{_SUFFIX}"
        if not path.is_file():
            if (self._built_in / path.name).is_file():
                raise UsageError(f"voice {name!r} is part of mosstalk and cannot be removed")
            self.load(name)  # raises: unknown
        try:
            path.unlink()
        except OSError as error:
            raise write_failure(path, error) from error

    def __iter__(self) -> Iterator[Voice]:
        return (self.load(name) for name in self.names())


def read_voice(path: Path, name: str) -> Voice:
    """A voice file; raises CheckpointError if it is damaged or something else."""
    try:
        with safe_open(path, framework="numpy") as file:
            about = file.metadata() or {}
            if about.get("format") != _FORMAT:
                raise CheckpointError(f"{path} is not a voice file of this version; add it again")
            codes = file.get_tensor("codes")
        sample_rate = int(about["sample_rate"])
        origin = VoiceOrigin(**json.loads(about["origin"])) if "origin" in about else None
    except (SafetensorError, OSError, KeyError, ValueError, TypeError) as error:
        raise CheckpointError(f"{path} is not a readable voice file; add it again") from error
    if codes.ndim != 2 or not codes.size or codes.dtype.kind not in "iu" or codes.min() < 0:
        raise CheckpointError(f"{path} holds no usable codes; add it again")
    return Voice(
        name=name,
        codes=codes.astype(np.int32),
        sample_rate=sample_rate,
        source_hash=about.get("source_hash", ""),
        codec_identity=about.get("codec_identity", ""),
        transcript=about.get("transcript"),
        origin=origin,
    )


def _pack(voice: Voice) -> bytes:
    about = {
        "format": _FORMAT,
        "sample_rate": str(voice.sample_rate),
        "source_hash": voice.source_hash,
        "codec_identity": voice.codec_identity,
    }
    if voice.transcript:
        about["transcript"] = voice.transcript
    if voice.origin:
        about["origin"] = json.dumps(asdict(voice.origin))
    return save({"codes": voice.codes.astype(np.int16)}, about)


def _check_name(name: str) -> None:
    if not _NAME.fullmatch(name) or name == NO_VOICE:
        raise UsageError(
            f"{name!r} cannot be a voice's name; use letters, digits, '-', '_' and '.'"
        )
