"""`mosstalk parity all`: every check that applies to a model, and the report of it."""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from mosstalk.checkpoint.atomic import replacing_file
from mosstalk.checkpoint.storage import StorageType
from mosstalk.errors import OutputError
from mosstalk.parity.codec.run import Options as CodecOptions
from mosstalk.parity.codec.run import run_codec
from mosstalk.parity.delay.run import FAMILY as DELAY
from mosstalk.parity.delay.run import run_delay
from mosstalk.parity.document.full_report import FullReport, Skipped
from mosstalk.parity.document.html import as_html
from mosstalk.parity.document.markdown import as_markdown
from mosstalk.parity.kv_cache.run import Options as KvCacheOptions
from mosstalk.parity.kv_cache.run import run_kv_cache
from mosstalk.parity.machine import describe_machine
from mosstalk.parity.opening import ModelChoice, Opened
from mosstalk.parity.reference.run import run_reference
from mosstalk.parity.report import Report
from mosstalk.parity.storage.run import Options as StorageOptions
from mosstalk.parity.storage.run import run_storage
from mosstalk.parity.streams.run import Options as StreamsOptions
from mosstalk.parity.streams.run import run_streams

Outcome = Report | Skipped
_NO_MODEL = "the checkpoint is a codec alone"
_NO_CODEC = "the checkpoint has no codec"
_NO_DUMP = "no dump of the original was given with --dump"


def run_all(choice: ModelChoice, dump: Path | None, tell: Callable[[str], None]) -> FullReport:
    """Run every check; `tell` hears what is being run. Without a `dump` of the original's numbers
    the check against them is left out.

    Raises UsageError and CheckpointError where the model or the dump cannot be opened.
    """
    started = time.monotonic()
    opened = choice.open()
    reports: list[Report] = []
    skipped: list[Skipped] = []
    for outcome in _outcomes(opened, dump, tell):
        if isinstance(outcome, Report):
            reports.append(outcome)
        else:
            skipped.append(outcome)
    return FullReport(
        model=choice.model,
        machine=describe_machine(opened),
        reports=tuple(reports),
        skipped=tuple(skipped),
        seconds=time.monotonic() - started,
    )


def write_documents(full: FullReport, folder: Path) -> FullReport:
    """Write `parity.md` and `parity.html` into `folder`; the report that knows of them.

    Raises OutputError where the folder cannot be made or written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"cannot make the folder {folder}: {error.strerror}") from None
    documents = {"parity.md": as_markdown(full), "parity.html": as_html(full)}
    for name, text in documents.items():
        with replacing_file(folder / name) as path:
            path.write_text(text, encoding="utf-8")
    return replace(full, files=tuple(str(folder / name) for name in documents))


def _outcomes(opened: Opened, dump: Path | None, tell: Callable[[str], None]) -> Iterator[Outcome]:
    if opened.has_language_model:
        for storage in StorageType:
            tell(f"kv-cache, {storage} weights")
            yield run_kv_cache(replace(opened, storage=storage), KvCacheOptions())
    else:
        yield Skipped("kv-cache", _NO_MODEL)
    if opened.checkpoint.config.get("model_type") == DELAY:
        tell("delay")
        yield run_delay(opened)
    if opened.has_codec:
        tell("codec")
        yield run_codec(opened, CodecOptions())
    else:
        yield Skipped("codec", _NO_CODEC)
    tell("streams")
    yield run_streams(opened, StreamsOptions())
    tell("storage")
    yield run_storage(opened, StorageOptions())
    if dump is None:
        yield Skipped("reference", _NO_DUMP)
    else:
        tell("reference")
        yield run_reference(opened, dump)
