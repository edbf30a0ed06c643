"""A whole folder of a dump of the delay family: `mosstalk parity reference`."""

from pathlib import Path

from mosstalk.errors import CheckpointError
from mosstalk.parity.delay import files
from mosstalk.parity.delay.backbone import run_backbone
from mosstalk.parity.delay.codec import codec_check
from mosstalk.parity.delay.heads import run_heads
from mosstalk.parity.delay.run import row_checks
from mosstalk.parity.delay.subject import run_checks
from mosstalk.parity.opening import Opened, Setting
from mosstalk.parity.report import Report


def run_dump_folder(opened: Opened, folder: Path, tolerance: float | None = None) -> Report:
    """Compare with every file of the folder; raises UsageError and CheckpointError as each does."""
    rows = [folder / name for name in (files.ROWS, files.PENALISED_ROWS)]
    rows = [path for path in rows if path.is_file()]
    if not rows:
        raise CheckpointError(f"{folder} has no {files.ROWS}; make it with `mosstalk parity dump`")
    backbone = run_backbone(opened, folder / files.PROMPT, folder / files.HIDDEN, tolerance)
    heads = run_heads(opened, rows, folder / files.PROMPT, tolerance)
    checks = row_checks(opened, rows)
    codec = folder / files.CODEC
    if codec.is_file():
        checks.append(codec_check(opened, codec, tolerance))
    settings: dict[str, Setting] = {
        **opened.settings,
        "dump": str(folder),
        "rows": backbone.settings["rows"],
        "codec": "yes" if codec.is_file() else "no",
        "tolerance": backbone.settings["tolerance"],
    }
    results = (*backbone.results, *heads.results, *run_checks(checks))
    return Report("reference", settings, results, (*backbone.tables, *heads.tables))
