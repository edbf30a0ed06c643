"""A dump of MOSS-TTS-Nano: its questions, its file, and what the command tells of it."""

from pathlib import Path

from mosstalk.checkpoint.checkpoint import Checkpoint
from mosstalk.errors import UsageError
from mosstalk.parity.comparison import CheckResult, Comparison
from mosstalk.parity.opening import Setting
from mosstalk.parity.reference.dump_file import (
    DumpFile,
    check_suffix,
    read_dump_file,
    write_dump_file,
)
from mosstalk.parity.reference.dump_nano import dump_nano
from mosstalk.parity.reference.nano_probe import read_nano_dump
from mosstalk.parity.reference.original import NANO_LIBRARIES, original_code
from mosstalk.parity.reference.request import DumpOptions, Source
from mosstalk.parity.report import Report

DEFAULT_TEXTS = (
    "Rain fell on the roof all night, and by morning the garden was green.",
    "今天下午三点，我们在公园门口见面。",
)


def write_nano_dump(source: Source, out: Path, options: DumpOptions) -> Report:
    """Write one file, named .npz or .json; see `write_dump`."""
    check_suffix(out)
    if options.instruction is not None or options.language is not None:
        raise UsageError(
            f"{source.folder}: the model is told no instruction or language; leave them out"
        )
    texts = _texts(source.checkpoint, options)
    with original_code(NANO_LIBRARIES) as original:
        dump, results = dump_nano(
            original, source.checkpoint, source.codec_folder, texts, options.seed
        )
    file = dump.as_file()
    write_dump_file(out, file)
    results.append(_read_again(out, file))
    settings: dict[str, Setting] = {
        "reference": str(source.folder),
        "out": str(out),
        "bytes": out.stat().st_size,
        "codec": "no" if source.codec_folder is None else "yes",
        "texts": len(texts),
        "seed": options.seed,
        "torch": original.versions["torch"],
        "transformers": original.versions["transformers"],
    }
    return Report("dump", settings, tuple(results))


def _texts(checkpoint: Checkpoint, options: DumpOptions) -> tuple[str, ...]:
    if checkpoint.tokenizer_model is None:
        if options.texts:
            raise UsageError(f"{checkpoint.path} has no tokenizer.model; leave the texts out")
        return ()
    return DEFAULT_TEXTS if options.texts is None else options.texts


def _read_again(out: Path, dump: DumpFile) -> CheckResult:
    """Whether the file holds what was written, and can be used."""
    comparison = Comparison("written and read again", 0.0)
    found = read_dump_file(out)
    read_nano_dump(found, str(out))
    comparison.require(dict(found.meta) == dict(dump.meta), "meta differs")
    for name, array in dump.arrays.items():
        comparison.add_ids(name, array, found.arrays[name])
    return comparison.result()
