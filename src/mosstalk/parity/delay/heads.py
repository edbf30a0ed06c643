"""`mosstalk parity heads`: the likeliest rows after a prompt, against the original's.

Heads, masks, state machine, repetition penalty and the way a drawn row is fed back decide about
them. After a difference the check goes on from the original's row, so that all rows are compared.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mosstalk.compute.sampling import SamplingParams
from mosstalk.compute.sampling import penalised as penalised_logits
from mosstalk.errors import UsageError
from mosstalk.models.moss_tts_delay.delay_state import Decision
from mosstalk.models.moss_tts_delay.model import DelayModel
from mosstalk.models.moss_tts_delay.run import DelayRun
from mosstalk.models.moss_tts_delay.sampling import CodeHistory, DelaySampling
from mosstalk.models.moss_tts_delay.session import DelaySession
from mosstalk.parity.comparison import Comparison
from mosstalk.parity.delay.choices import HEADER, Choices
from mosstalk.parity.delay.files import RowsFile, read_prompt, read_rows
from mosstalk.parity.delay.replay import replay
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


def run_heads(
    opened: Opened,
    rows_files: Sequence[Path],
    prompt_file: Path | None = None,
    tolerance: float | None = None,
) -> Report:
    """Compare the model with rows of a dump; `prompt_file` for those that hold no prompt.

    `tolerance` None: see `tolerances_for`. Raises UsageError for a model of another family, a
    tolerance that cannot be used or a prompt that is not given, CheckpointError for files that
    are damaged or of another model.
    """
    if tolerance is not None and not 0 <= tolerance < np.inf:
        raise UsageError(f"tolerance is {tolerance}, but must be 0 or more")
    model = opened.delay()
    checks: list[Check] = []
    runs: list[Choices] = []
    largest = 0.0
    for path in rows_files:
        file = read_rows(path)
        prompt = file.prompt if file.prompt is not None else _read_prompt(prompt_file, path)
        check_origin(opened, file.origin, str(path))
        for rows in (prompt, file.rows):
            check_rows(model.config, rows, str(path))
        most = tolerances_for(opened, file.origin, tolerance).language_model
        largest = max(largest, most)
        compare = partial(_compare, model, prompt, file, most, runs)
        checks.append(Check(f"likeliest rows: {file.name}", most, compare))
    results = tuple(run_checks(checks))
    settings: dict[str, Setting] = {
        **opened.settings,
        "rows": ", ".join(map(str, rows_files)),
        "tolerance": largest,
    }
    table = Table("Likeliest rows", HEADER, tuple(item.cells() for item in runs))
    return Report("heads", settings, results, (table,) if runs else ())


def _read_prompt(prompt_file: Path | None, rows_file: Path) -> NDArray[np.int32]:
    if prompt_file is None:
        raise UsageError(f"{rows_file} holds no prompt; name its file with --prompt")
    return read_prompt(prompt_file).rows


def _compare(
    model: DelayModel,
    prompt: NDArray[np.int32],
    file: RowsFile,
    tolerance: float,
    runs: list[Choices],
    comparison: Comparison,
) -> None:
    config = model.config
    session = session_for(model, len(prompt) + len(file.rows))
    session.prefill(prompt)
    choices = Choices(file.name, 2 * tolerance * (file.logit_peak or _peak(session)))
    runs.append(choices)
    greedy = SamplingParams(temperature=0.0)
    penalised = replace(greedy, repetition_penalty=file.repetition_penalty)
    sampling = DelaySampling(greedy, penalised, seed=0)
    history = CodeHistory.of(config, prompt)
    logits: list[tuple[float, float]] = []  # told, found
    for state, row in replay(config, prompt, file.rows, comparison):
        run = DelayRun(state, history)
        _, found = run.draw(session, sampling)
        for column, (values, ids) in _chosen_from(session, state.decide()).items():
            expected, got = (ids.index(int(ids_of[column])) for ids_of in (row, found))
            if file.logits is not None:
                logits.append((float(file.logits[choices.rows, column]), float(values[expected])))
            scores = values
            if column:
                counted = history.counted(sampling.penalty_scope)[column - 1, : len(values)]
                scores = penalised_logits(values, counted, penalised.row()[-1])
            name = f"codebook {column - 1}" if column else "text"
            gap = float(scores[got] - scores[expected])
            choices.note(name, int(row[column]), int(found[column]), gap)
        choices.rows += 1
        history = history.after(row)
        session.step(row)
    choices.judge(comparison)
    if logits:
        comparison.add("logits", *np.array(logits).T)


def _chosen_from(
    session: DelaySession, decision: Decision
) -> dict[int, tuple[NDArray[np.float32], Sequence[int]]]:
    """Logits of what a row is chosen from, and whose they are, by the column: 0 is the text's."""
    found: dict[int, tuple[NDArray[np.float32], Sequence[int]]] = {}
    if decision.allowed is None:
        text = session.text_logits()
        found[0] = text, range(len(text))
    elif decision.forced is None:
        found[0] = session.slot_logits(), decision.allowed
    if decision.codebooks:
        audio = session.audio_logits()[:, :-1]
        found |= {1 + q: (audio[q], range(audio.shape[1])) for q in decision.codebooks}
    return found


def _peak(session: DelaySession) -> float:
    """Largest magnitude of a logit after the prompt, for a file that does not tell."""
    audio = session.audio_logits()[:, :-1]
    return float(max(np.abs(session.text_logits()).max(), np.abs(audio).max()))
