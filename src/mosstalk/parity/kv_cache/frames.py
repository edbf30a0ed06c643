"""Rows of codes: over the caches, and with all rows computed from the start for each of them."""

import numpy as np

from mosstalk.compute.sampling import SamplingParams
from mosstalk.models.row_session import RowSession
from mosstalk.parity.comparison import Comparison
from mosstalk.parity.family.language_model import Drawing
from mosstalk.parity.kv_cache.subject import Subject, cached_rows, compare_cached

_GREEDY = SamplingParams(temperature=0.0)
_GREEDY_NEW = SamplingParams(temperature=0.0, repetition_penalty=1.5)
_TEXT = SamplingParams(temperature=1.0, top_k=50)
_SAMPLED = SamplingParams(temperature=0.8, top_k=25, top_p=0.95, repetition_penalty=1.2)


def check_greedy(subject: Subject, comparison: Comparison) -> None:
    """The likeliest codes, without and with a repetition penalty."""
    for what, audio in (("greedy", _GREEDY), ("greedy with penalty", _GREEDY_NEW)):
        _compare_rows(subject, comparison, what, Drawing(_GREEDY, audio, subject.seed))


def check_sampled(subject: Subject, comparison: Comparison) -> None:
    """Codes drawn with a fixed seed."""
    _compare_rows(subject, comparison, "sampled", Drawing(_TEXT, _SAMPLED, subject.seed))


def check_second_generation(subject: Subject, comparison: Comparison) -> None:
    """A session, and forks of it, that have generated before give the same rows again."""
    drawing = Drawing(_GREEDY, _GREEDY_NEW, subject.seed)
    prefix = subject.prefilled()
    first = subject.model.start(prefix.fork(), subject.rows, drawing)
    rows = [first.next().row for _ in range(subject.generated)]
    again = first.session
    again.prefill(subject.rows, reuse_rows=len(subject.rows) - 1)
    for what, session in (("same session", again), ("another fork", prefix.fork())):
        run = subject.model.start(session, subject.rows, drawing)
        found = [run.next().row for _ in range(subject.generated)]
        comparison.add_ids(f"{what}, rows", np.stack(rows), np.stack(found))
    hidden = again.prefill(subject.rows)
    subject.compare(comparison, "prompt after frames", again, hidden)


def _compare_rows(subject: Subject, comparison: Comparison, what: str, drawing: Drawing) -> None:
    """Each row over the caches of a fork, against one whose past is all computed anew."""
    session = subject.prefilled().fork(subject.budget)
    run = subject.model.start(session, subject.rows, drawing)
    rows = subject.rows
    for index in range(subject.generated):
        at = f"{what} row {index}"
        whole = subject.session()
        whole.prefill(rows)
        _compare_last(comparison, at, whole, run.session)
        expected = run.expected(whole)
        found = run.next()
        comparison.add_ids(f"{at}, ids", expected.row, found.row)
        comparison.require(expected.stops == found.stops, f"{at}: one goes on, the other stops")
        if expected.frame is not None and found.frame is not None:
            comparison.add_ids(f"{at}, frame", expected.frame, found.frame)
        else:
            comparison.require(expected.frame is found.frame, f"{at}: one has no frame")
        rows = np.concatenate([rows, found.row[None]])
    whole = subject.session()
    whole.prefill(rows)
    _compare_last(comparison, f"after {what} rows", whole, run.session)


def _compare_last(comparison: Comparison, what: str, whole: RowSession, found: RowSession) -> None:
    if found.cached_positions != whole.cached_positions:
        comparison.fail(
            f"{what}: {found.cached_positions} rows are cached, not {whole.cached_positions}"
        )
        return
    assert whole.hidden is not None and found.hidden is not None
    comparison.add(f"{what}, hidden", whole.hidden, found.hidden)
    compare_cached(comparison, what, cached_rows(whole), cached_rows(found))
