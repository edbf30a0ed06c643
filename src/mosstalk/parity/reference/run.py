"""`mosstalk parity reference`: this machine's results against a dump."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from mosstalk.errors import CheckpointError, UsageError
from mosstalk.models.identity import language_model_identity
from mosstalk.parity.comparison import CheckResult, Comparison
from mosstalk.parity.delay.reference import run_dump_folder
from mosstalk.parity.figure import Table
from mosstalk.parity.opening import Opened, Setting
from mosstalk.parity.reference.check_codec import check_decoding, check_encoding
from mosstalk.parity.reference.check_nano import check_greedy, check_hidden, check_prompts
from mosstalk.parity.reference.decisions import AGREEMENT_HEADER, Agreement
from mosstalk.parity.reference.dump_file import read_dump_file
from mosstalk.parity.reference.nano_probe import NanoDump, read_nano_dump
from mosstalk.parity.reference.origin import Origin
from mosstalk.parity.reference.tolerance import Tolerances, tolerances_for
from mosstalk.parity.report import Report

# Fills a comparison; where it was about choices, says how they agreed.
_Check = Callable[[Comparison], Agreement | None]


def run_reference(opened: Opened, dump: Path, tolerance: float | None = None) -> Report:
    """Compare what an opened model computes with a dump: a file, or a folder of the delay family.

    `tolerance` None: by the device and by how weights are rounded. Raises UsageError for a
    tolerance or a model that cannot be used, CheckpointError for a dump that is damaged or of
    another checkpoint.
    """
    if tolerance is not None and not 0 <= tolerance < np.inf:
        raise UsageError(f"tolerance is {tolerance}, but must be 0 or more")
    if dump.is_dir():
        return run_dump_folder(opened, dump, tolerance)
    reference = read_nano_dump(read_dump_file(dump), str(dump))
    _check_origin(opened, reference.origin, dump)
    tolerances = tolerances_for(opened, reference.origin, tolerance)
    results: list[CheckResult] = []
    agreements: list[Agreement] = []
    for comparison, check in _checks(opened, reference, tolerances):
        try:
            agreement = check(comparison)
        except Exception as error:  # an engine that breaks down under a check has failed it
            comparison.fail(f"{type(error).__name__}: {error}")
        else:
            agreements += [agreement] if agreement else []
        results.append(comparison.result())
    settings: dict[str, Setting] = {
        **opened.settings,
        "dump": str(dump),
        "torch": reference.origin.versions.get("torch", "unknown"),
        "prompts": len(reference.prompts),
        "codec": "no" if reference.codec is None else "yes",
        "tolerance": tolerances.language_model,
        "codec_tolerance": tolerances.codec,
    }
    table = Table("Choices", AGREEMENT_HEADER, tuple(item.row() for item in agreements))
    return Report("reference", settings, tuple(results), tables=(table,) if table.rows else ())


def _check_origin(opened: Opened, origin: Origin, dump: Path) -> None:
    """Raise unless the dump is of this model and, if it is of a codec too, of this codec."""
    checkpoint = opened.checkpoint
    if not opened.has_language_model:
        raise UsageError(f"{checkpoint.path} is a codec alone; give a language model")
    found = language_model_identity(checkpoint)
    if found != origin.model_identity:
        raise CheckpointError(
            f"{dump} is of another checkpoint ({origin.model_identity}) than {checkpoint.path} "
            f"({found}); make a dump of this one"
        )
    if not origin.codec_identity:
        return
    if not opened.has_codec:
        raise UsageError(f"{dump} is of a model with its codec; name the codec with --codec")
    if checkpoint.identity != origin.codec_identity:
        raise CheckpointError(
            f"{dump} is of another codec ({origin.codec_identity}) than that of "
            f"{checkpoint.path} ({checkpoint.identity}); make a dump of this one"
        )


def _checks(
    opened: Opened, reference: NanoDump, tolerances: Tolerances
) -> list[tuple[Comparison, _Check]]:
    """In the order of the table."""
    model, tokenizer = opened.nano(), opened.checkpoint.tokenizer_model
    tolerance = tolerances.language_model
    checks: list[tuple[Comparison, _Check]] = []

    def add(name: str, tolerance: float, check: _Check) -> None:
        checks.append((Comparison(name, tolerance), check))

    texts = [probe for probe in reference.prompts if probe.kind != "rows"]
    if texts:
        add("prompt ids", 0.0, partial(check_prompts, model, tokenizer, texts))
    for probe in reference.prompts:
        add(f"hidden: {probe.name}", tolerance, partial(check_hidden, model, probe))
    for probe in reference.prompts:
        add(f"greedy: {probe.name}", tolerance, partial(check_greedy, model, probe))
    if reference.codec is not None:
        codec = opened.codec()
        decoding = partial(check_decoding, codec, reference.codec)
        encoding = partial(check_encoding, codec, reference.codec)
        add("codec: codes to audio", tolerances.codec, decoding)
        add("codec: audio to codes", tolerances.codec, encoding)
    return checks
