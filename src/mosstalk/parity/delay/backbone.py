"""`mosstalk parity backbone`: a prompt and its hidden vectors, against the original's.

The same rows are computed by one prefill, and by a prefill of all but the last and a step, so the
second proves the cache too. Vectors are compared relative to their largest value, which is how the
original's own runs in different orders are known to agree: to some 1e-6 in float32.
"""

from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mosstalk.errors import CheckpointError, UsageError
from mosstalk.models.moss_tts_delay.config import DelayConfig
from mosstalk.models.moss_tts_delay.members import member_of
from mosstalk.models.moss_tts_delay.model import DelayModel
from mosstalk.models.moss_tts_delay.requests import prompt_maker
from mosstalk.models.moss_tts_delay.tokenizer import load_tokenizer
from mosstalk.parity.comparison import Comparison
from mosstalk.parity.delay.choices import HEADER, Choices
from mosstalk.parity.delay.files import HiddenFile, PromptFile, read_hidden, read_prompt
from mosstalk.parity.delay.subject import (
    Check,
    check_origin,
    check_rows,
    run_checks,
    session_for,
)
from mosstalk.parity.figure import Table
from mosstalk.parity.opening import Opened, Setting
from mosstalk.parity.reference.tolerance import tolerances_for
from mosstalk.parity.report import Report
from mosstalk.text.bpe_tokenizer import BpeTokenizer
from mosstalk.types import SpeechOptions


def run_backbone(
    opened: Opened, prompt_file: Path, hidden_file: Path, tolerance: float | None = None
) -> Report:
    """Compare the model with two files of a dump.

    `tolerance` None: see `tolerances_for`. Raises UsageError for a model of another family or a
    tolerance that cannot be used, CheckpointError for files that are damaged or of another model.
    """
    if tolerance is not None and not 0 <= tolerance < np.inf:
        raise UsageError(f"tolerance is {tolerance}, but must be 0 or more")
    prompt, hidden = read_prompt(prompt_file), read_hidden(hidden_file)
    if hidden.num_rows != len(prompt.rows):
        raise CheckpointError(
            f"{hidden_file} is of {hidden.num_rows} rows, but {prompt_file} has "
            f"{len(prompt.rows)}; they do not belong together"
        )
    model = opened.delay()
    check_origin(opened, prompt.origin, str(prompt_file))
    check_origin(opened, hidden.origin, str(hidden_file))
    check_rows(model.config, prompt.rows, str(prompt_file))
    if len(hidden.last_hidden) != model.config.hidden_size:
        raise CheckpointError(
            f"{hidden_file} has vectors of {len(hidden.last_hidden)} values, but the model's have "
            f"{model.config.hidden_size}"
        )
    most = tolerances_for(opened, hidden.origin, tolerance).language_model
    choices: list[Choices] = []
    checks = [
        Check("hidden, one prefill", most, partial(_compare_prefill, model, prompt, hidden)),
        Check("hidden, prefill and step", most, partial(_compare_step, model, prompt, hidden)),
        Check("text head", 0.0, partial(_compare_text, model, prompt, hidden, most, choices)),
    ]
    if prompt.text is not None:
        tokenizer = load_tokenizer(opened.checkpoint)
        ids = partial(_compare_prompt, model.config, tokenizer, prompt)
        checks.insert(0, Check("prompt ids", 0.0, ids))
    results = tuple(run_checks(checks))
    settings: dict[str, Setting] = {
        **opened.settings,
        "prompt": str(prompt_file),
        "hidden": str(hidden_file),
        "rows": len(prompt.rows),
        "hidden_size": len(hidden.last_hidden),
        "tolerance": most,
    }
    table = Table("Likeliest text id", HEADER, tuple(item.cells() for item in choices))
    return Report("backbone", settings, results, (table,) if choices else ())


def built_rows(
    config: DelayConfig, tokenizer: BpeTokenizer, prompt: PromptFile
) -> NDArray[np.int32]:
    """The rows that the prompt's text becomes here.

    Raises UsageError for a text or a language that the model does not take.
    """
    assert prompt.text is not None
    make = prompt_maker(member_of(config), config, tokenizer)
    options = SpeechOptions(instruction=prompt.instruction, language=prompt.language)
    return make(prompt.text, (), options).rows


def _compare_prompt(
    config: DelayConfig, tokenizer: BpeTokenizer, prompt: PromptFile, comparison: Comparison
) -> None:
    """Text, instruction and language to rows: template, tokeniser and pads."""
    found = built_rows(config, tokenizer, prompt)
    comparison.require(len(found) == len(prompt.rows), f"{len(found)} rows, not {len(prompt.rows)}")
    comparison.add_ids("rows", prompt.rows, found)


def _compare_prefill(
    model: DelayModel, prompt: PromptFile, hidden: HiddenFile, comparison: Comparison
) -> None:
    found = session_for(model, len(prompt.rows)).prefill(prompt.rows)
    comparison.add("last hidden", hidden.last_hidden, found[-1])
    for position, expected in zip(hidden.probe_positions, hidden.probe_hidden, strict=True):
        comparison.add(f"hidden of row {position}", expected, found[position])


def _compare_step(
    model: DelayModel, prompt: PromptFile, hidden: HiddenFile, comparison: Comparison
) -> None:
    session = session_for(model, len(prompt.rows))
    if len(prompt.rows) > 1:
        session.prefill(prompt.rows[:-1])
    comparison.add("last hidden", hidden.last_hidden, session.step(prompt.rows[-1]))


def _compare_text(
    model: DelayModel,
    prompt: PromptFile,
    hidden: HiddenFile,
    tolerance: float,
    choices: list[Choices],
    comparison: Comparison,
) -> None:
    """The likeliest text id after the original's last vector and after ours."""
    expected = model.heads.text(hidden.last_hidden)
    session = session_for(model, len(prompt.rows))
    session.prefill(prompt.rows)
    found = session.text_logits()
    allowed = 2 * tolerance * float(np.abs(expected).max())
    wanted, got = int(expected.argmax()), int(found.argmax())
    likeliest = Choices("after the prompt", allowed)
    likeliest.note("text", wanted, got, float(found[got] - found[wanted]))
    likeliest.rows = 1
    choices.append(likeliest)
    likeliest.judge(comparison)
    comparison.require(bool(np.isfinite(found).all()), "logits are not finite")
