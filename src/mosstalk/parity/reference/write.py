"""`mosstalk parity dump`: asks the original and writes its answers."""

from collections.abc import Callable
from pathlib import Path

from mosstalk.checkpoint.checkpoint import open_checkpoint
from mosstalk.checkpoint.directory import CODEC_FOLDER
from mosstalk.errors import UsageError
from mosstalk.models.registry import family_for
from mosstalk.parity.delay.run import FAMILY as DELAY
from mosstalk.parity.delay.write import write_delay_dump
from mosstalk.parity.reference.nano_probe import FAMILY as NANO
from mosstalk.parity.reference.original import require_code
from mosstalk.parity.reference.request import DumpOptions, Source
from mosstalk.parity.reference.write_nano import write_nano_dump
from mosstalk.parity.report import Report

_WRITERS: dict[str, Callable[[Source, Path, DumpOptions], Report]] = {
    NANO: write_nano_dump,
    DELAY: write_delay_dump,
}


def write_dump(reference: Path, out: Path, codec: Path | None, options: DumpOptions) -> Report:
    """Run the original code in `reference` on its checkpoint and write a dump to `out`: a file of
    MOSS-TTS-Nano, a folder of the delay family.

    `codec` is the directory of the codec, if it is not `audio_tokenizer` in `reference`. The
    report says whether the original agrees with itself; the dump is written where it does not,
    too. Raises UsageError, CheckpointError for files that are missing, damaged or fail to run,
    and OutputError.
    """
    if not reference.is_dir():
        raise UsageError(f"{reference} is no directory; give the one that holds the original code")
    checkpoint = open_checkpoint(reference, codec)
    if not checkpoint.config:
        raise UsageError(f"{reference} is a codec alone; give a language model")
    family = str(checkpoint.config["model_type"])
    if family not in _WRITERS:
        name = family_for(checkpoint.config).name
        raise UsageError(f"{reference}: parity dump cannot run the original code of {name}")
    folder = (codec or reference / CODEC_FOLDER) if checkpoint.codec_config is not None else None
    for part in (reference, folder):
        if part is not None:
            require_code(part)
    return _WRITERS[family](Source(reference, checkpoint, folder), out, options)
