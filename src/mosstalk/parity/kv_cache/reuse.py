"""Cached rows used again: as a prefix, in a fork, after truncation, from a saved session."""

import numpy as np
from numpy.typing import NDArray

from mosstalk.models.row_session import RowSession
from mosstalk.parity.comparison import Comparison
from mosstalk.parity.kv_cache.subject import Subject, cached_rows, compare_cached, cut


def check_prefix(subject: Subject, comparison: Comparison) -> None:
    """A prompt over the prefix that an earlier prompt, longer or shorter, left in the cache."""
    total = len(subject.rows)
    for kept in sorted({1, total // 2, total - 1}):
        session = subject.session()
        session.prefill(_other_after(subject, kept))
        hidden = session.prefill(subject.rows, reuse_rows=kept)
        subject.compare(comparison, f"{kept} rows of another prompt", session, hidden)
    session = subject.prefilled(total // 2)
    hidden = session.prefill(subject.rows, reuse_rows=total // 2)
    subject.compare(comparison, "a prefix alone", session, hidden)


def check_fork(subject: Subject, comparison: Comparison) -> None:
    """Two forks of a prefix that go different ways; the prefix stays as it was."""
    kept = len(subject.rows) // 2
    prefix = subject.prefilled(kept)
    other, fork = prefix.fork(subject.budget), prefix.fork(subject.budget)
    rows = _other_after(subject, kept)
    other.prefill(rows, reuse_rows=kept)
    hidden = fork.prefill(subject.rows, reuse_rows=kept)
    subject.compare(comparison, "fork", fork, hidden)
    compare_cached(comparison, "prefix", cut(subject.cached, kept), cached_rows(prefix))
    other.prefill(rows, reuse_rows=kept)
    subject.compare(comparison, "fork after another", fork, hidden)
    hidden = prefix.prefill(subject.rows, reuse_rows=kept)
    subject.compare(comparison, "prefix after its forks", prefix, hidden)


def check_truncate(subject: Subject, comparison: Comparison) -> None:
    """Other rows cut off, and the prompt's put in their place by a prefill and by steps."""
    total = len(subject.rows)
    for kept in sorted({0, 1, total // 2, total - 1}):
        session = _truncated(subject, comparison, kept)
        hidden = session.prefill(subject.rows, reuse_rows=kept)
        subject.compare(comparison, f"truncated to {kept}", session, hidden)
    session = _truncated(subject, comparison, total // 2)
    steps = [session.append(row) for row in subject.rows[total // 2 :]]
    subject.compare(comparison, "truncated, then steps", session, np.stack(steps))


def check_save(subject: Subject, comparison: Comparison) -> None:
    """A session saved and loaded, after which the saved one is used for something else."""
    kept = len(subject.rows) // 2
    session = subject.prefilled(kept)
    saved = session.save()
    session.prefill(other_rows(subject))
    loaded = subject.model.session()
    loaded.load(saved)
    hidden = loaded.prefill(subject.rows, reuse_rows=kept)
    subject.compare(comparison, "loaded", loaded, hidden)


def check_changed_row(subject: Subject, comparison: Comparison) -> None:
    """Control: another text id, or another code, early in the prompt changes its last hidden."""
    for what, rows in subject.model.changed(subject.rows, len(subject.rows) // 3):
        hidden = subject.session().prefill(rows)
        comparison.add(f"changed {what}", subject.hidden[-1], hidden[-1])


def check_order(subject: Subject, comparison: Comparison) -> None:
    """Control: the same rows in another order change the last hidden: positions count."""
    rows = np.concatenate([np.roll(subject.rows[:-1], 1, axis=0), subject.rows[-1:]])
    hidden = subject.session().prefill(rows)
    comparison.add("rows in another order", subject.hidden[-1], hidden[-1])


def check_wrong_prefix(subject: Subject, comparison: Comparison) -> None:
    """Control: a prefix of other rows, taken for this prompt's, changes the last hidden."""
    kept = len(subject.rows) // 2
    session = subject.session()
    session.prefill(other_rows(subject)[:kept])
    hidden = session.prefill(subject.rows, reuse_rows=kept)
    comparison.add("wrong prefix", subject.hidden[-1], hidden[-1])


def other_rows(subject: Subject) -> NDArray[np.int32]:
    """A prompt as long as the subject's, of other rows."""
    return subject.model.random_prompt(len(subject.rows), subject.seed + 1)


def _other_after(subject: Subject, kept: int) -> NDArray[np.int32]:
    """The prompt's first `kept` rows, then other ones."""
    return np.concatenate([subject.rows[:kept], other_rows(subject)[kept:]])


def _truncated(subject: Subject, comparison: Comparison, kept: int) -> RowSession:
    """A session whose rows after the first `kept` were not the prompt's, and are cut off."""
    session = subject.session()
    session.prefill(_other_after(subject, kept))
    session.truncate(kept)
    comparison.require(session.cached_positions == kept, f"truncated to {kept} rows")
    return session
