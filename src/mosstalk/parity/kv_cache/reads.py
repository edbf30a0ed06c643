"""What only reads a session must leave its cached rows as they were."""

from mosstalk.parity.comparison import Comparison
from mosstalk.parity.kv_cache.reuse import other_rows
from mosstalk.parity.kv_cache.subject import Subject, cached_rows, compare_cached


def check_reads(subject: Subject, comparison: Comparison) -> None:
    """A fork and saved arrays that are overwritten, and a choice that is not kept."""
    session = subject.prefilled()
    before = cached_rows(session)
    for array in session.save().values():
        array[...] = 0
    session.fork().prefill(other_rows(subject))
    subject.model.start_greedy(session, subject.rows).choose()
    comparison.require(session.cached_positions == len(subject.rows), "rows were added")
    compare_cached(comparison, "after reads", before, cached_rows(session))
    assert session.hidden is not None
    comparison.add("after reads, hidden", subject.hidden[-1], session.hidden)
