"""`mosstalk parity delay`: the rows of the delay family against its specification.

No model is needed. With one, and rows of a dump, those rows are taken through the state machine.
"""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np

from mosstalk.checkpoint.checkpoint import Checkpoint
from mosstalk.errors import UsageError
from mosstalk.models.moss_tts_delay.config import DelayConfig, parse_config
from mosstalk.models.moss_tts_delay.tokenizer import load_tokenizer
from mosstalk.parity.comparison import Comparison
from mosstalk.parity.delay import draws, traces
from mosstalk.parity.delay.files import RowsFile, read_rows
from mosstalk.parity.delay.replay import replay
from mosstalk.parity.delay.subject import Check, check_origin, check_rows, run_checks
from mosstalk.parity.opening import Opened, Setting
from mosstalk.parity.report import Report

FAMILY = "moss_tts_delay"
_CHECKS = (
    Check("trace of a generation", 0.0, traces.check_generation),
    Check("trace of a continuation", 0.0, traces.check_continuation),
    Check("trace after a bare start", 0.0, traces.check_bare_start),
    Check("delay pattern", 0.0, traces.check_pattern),
    Check("what may be drawn", 0.0, draws.check_masks),
    Check("pads are not drawn", 0.0, draws.check_pad),
    Check("scope of the penalty", 1e-6, draws.check_penalty),
    Check("text ids", 0.0, draws.check_text),
)


def run_delay(opened: Opened | None = None, rows_files: Sequence[Path] = ()) -> Report:
    """Run every check; with a model those of its own ids too, which `rows_files` need.

    Raises UsageError for rows without a model or a model of another family, CheckpointError for
    files that are damaged or of another model.
    """
    settings: dict[str, Setting] = {"codebooks": ", ".join(map(str, traces.CODEBOOKS))}
    checks = list(_CHECKS)
    if opened is not None:
        settings["model"] = opened.choice.model
        config = config_of(opened.checkpoint)
        generation = partial(traces.check_generation_of, config)
        checks += [
            Check("trace with the model's ids", 0.0, generation),
            Check("draws with the model's ids", 0.0, partial(draws.check_masks_of, config)),
            *row_checks(opened, rows_files),
        ]
    elif rows_files:
        raise UsageError(f"{rows_files[0]} is of a model; name it with --model")
    return Report("delay", settings, tuple(run_checks(checks)))


def row_checks(opened: Opened, rows_files: Sequence[Path]) -> list[Check]:
    """Rows of a dump through the state machine; raises as `run_delay`."""
    config, checks = config_of(opened.checkpoint), []
    for path in rows_files:
        file = read_rows(path)
        check_origin(opened, file.origin, str(path))
        check_rows(config, file.rows, str(path))
        checks.append(Check(f"drawable rows: {file.name}", 0.0, partial(_compare, config, file)))
    return checks


def config_of(checkpoint: Checkpoint) -> DelayConfig:
    """The model's, without its weights; raises UsageError for a model of another family."""
    if checkpoint.config.get("model_type") != FAMILY:
        raise UsageError(f"{checkpoint.path}: this check knows models of type {FAMILY} only")
    special_ids = None
    if checkpoint.tokenizer_json is not None:
        special_ids = load_tokenizer(checkpoint).special_ids
    return parse_config(checkpoint.config, special_ids)


def _compare(config: DelayConfig, file: RowsFile, comparison: Comparison) -> None:
    """Each row of the original could have been drawn here, with codes where it has them."""
    prompt = file.prompt
    if prompt is None:  # speech that begins by itself
        prompt = np.array([[config.im_start_token_id]], np.int32)
    rows = [row for _, row in replay(config, prompt, file.rows, comparison)]
    comparison.add_ids("rows", file.rows, np.array(rows, np.int32).reshape(-1, 1 + config.n_vq))
