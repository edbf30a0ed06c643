"""`mosstalk parity dump`: asks the original and writes its answers."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from mosstalk.checkpoint.checkpoint import Checkpoint, open_checkpoint
from mosstalk.checkpoint.directory import CODEC_FOLDER
from mosstalk.errors import UsageError
from mosstalk.models.registry import family_for
from mosstalk.parity.comparison import CheckResult, Comparison
from mosstalk.parity.opening import Setting
from mosstalk.parity.reference.dump_file import (
    DumpFile,
    check_suffix,
    read_dump_file,
    write_dump_file,
)
from mosstalk.parity.reference.dump_nano import dump_nano
from mosstalk.parity.reference.nano_probe import FAMILY as NANO
from mosstalk.parity.reference.nano_probe import read_nano_dump
from mosstalk.parity.reference.original import Original, original_code, require_code
from mosstalk.parity.report import Report

DEFAULT_TEXTS = (
    "Rain fell on the roof all night, and by morning the garden was green.",
    "今天下午三点，我们在公园门口见面。",
)

# From the libraries, an opened checkpoint, its codec's folder, texts and a seed.
_Dump = Callable[
    [Original, Checkpoint, Path | None, Sequence[str], int], tuple[DumpFile, list[CheckResult]]
]


@dataclass(frozen=True, slots=True)
class DumpOptions:
    """What the user can choose. `texts` None: DEFAULT_TEXTS, if there is a tokeniser.

    Raises UsageError for a value that cannot be used.
    """

    texts: tuple[str, ...] | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.seed < 2**63:
            raise UsageError(f"the seed is {self.seed}, but must be from 0 to 2^63 - 1")
        if self.texts is not None and not all(text.strip() for text in self.texts):
            raise UsageError("a text is empty; leave it out or give one with words")


def write_dump(reference: Path, out: Path, codec: Path | None, options: DumpOptions) -> Report:
    """Run the original code in `reference` on its checkpoint and write a dump to `out`.

    `codec` is the directory of the codec, if it is not `audio_tokenizer` in `reference`. The
    report says whether the original agrees with itself; the dump is written where it does not,
    too. Raises UsageError, CheckpointError for files that are missing, damaged or fail to run,
    and OutputError.
    """
    check_suffix(out)
    if not reference.is_dir():
        raise UsageError(f"{reference} is no directory; give the one that holds the original code")
    checkpoint = open_checkpoint(reference, codec)
    if not checkpoint.config:
        raise UsageError(f"{reference} is a codec alone; give a language model")
    family = str(checkpoint.config["model_type"])
    if family not in _DUMPS:
        name = family_for(checkpoint.config).name
        raise UsageError(f"{reference}: parity dump cannot run the original code of {name}")
    folder = (codec or reference / CODEC_FOLDER) if checkpoint.codec_config is not None else None
    for part in (reference, folder):
        if part is not None:
            require_code(part)
    texts = _texts(checkpoint, options)
    with original_code() as original:
        dump, results = _DUMPS[family](original, checkpoint, folder, texts, options.seed)
    write_dump_file(out, dump)
    results.append(_read_again(out, dump))
    settings: dict[str, Setting] = {
        "reference": str(reference),
        "out": str(out),
        "bytes": out.stat().st_size,
        "codec": "yes" if folder is not None else "no",
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


def _nano(
    original: Original,
    checkpoint: Checkpoint,
    codec: Path | None,
    texts: Sequence[str],
    seed: int,
) -> tuple[DumpFile, list[CheckResult]]:
    dump, results = dump_nano(original, checkpoint, codec, texts, seed)
    return dump.as_file(), results


def _read_again(out: Path, dump: DumpFile) -> CheckResult:
    """Whether the file holds what was written, and can be used."""
    comparison = Comparison("written and read again", 0.0)
    found = read_dump_file(out)
    read_nano_dump(found, str(out))
    comparison.require(dict(found.meta) == dict(dump.meta), "meta differs")
    for name, array in dump.arrays.items():
        comparison.add_ids(name, array, found.arrays[name])
    return comparison.result()


_DUMPS: dict[str, _Dump] = {NANO: _nano}
