"""The prompt computed in other portions than whole."""

import numpy as np

from mosstalk.compute.backend import open_backend
from mosstalk.compute.state import State
from mosstalk.parity.comparison import Comparison
from mosstalk.parity.kv_cache.subject import Subject

_CHUNKS = (1, 2, 3, 7, 16)
_THREADS = (1, 2, 3)
_ROOM = 300  # rows of a budget that is larger than needed


def check_chunks(subject: Subject, comparison: Comparison) -> None:
    """Prefill in chunks, each over what the chunks before it cached."""
    total, most = len(subject.rows), subject.model.spec.max_rows
    for size in (*_CHUNKS, most - 1, most, most + 1):
        if size >= total:
            break
        session = subject.session()
        hidden = [
            session.prefill(subject.rows[: start + size], reuse_rows=start)
            for start in range(0, total, size)
        ]
        subject.compare(comparison, f"chunks of {size}", session, np.concatenate(hidden))


def check_steps(subject: Subject, comparison: Comparison) -> None:
    """Prefill of the first rows, then a step for each of the others."""
    total = len(subject.rows)
    for steps in sorted({1, 2, total // 2, total - 1}):
        session = subject.prefilled(total - steps)
        hidden = [session.append(row) for row in subject.rows[-steps:]]
        subject.compare(comparison, f"last {steps} rows by steps", session, np.stack(hidden))


def check_single_rows(subject: Subject, comparison: Comparison) -> None:
    """Prefill mode "single_row"."""
    session = subject.session(prefill_mode="single_row")
    subject.compare(comparison, "one by one", session, session.prefill(subject.rows))


def check_capacity(subject: Subject, comparison: Comparison) -> None:
    """Caches that just hold the prompt, and caches with room to spare."""
    total = len(subject.rows)
    longest = subject.model.max_positions
    for budget in sorted({total, min(total + _ROOM, longest)}):
        session = subject.session(budget)
        subject.compare(comparison, f"room for {budget}", session, session.prefill(subject.rows))


def check_threads(subject: Subject, comparison: Comparison) -> None:
    """The same weights on other numbers of threads."""
    model = subject.model
    for threads in _THREADS:
        if threads == model.backend.threads:
            continue
        transformer = model.transformer(open_backend(model.backend.name, threads))
        state = State(model.spec, len(subject.rows))
        hidden = transformer.run(state, subject.rows, model.spec.max_rows)
        positions = range(len(hidden))
        comparison.add(f"{threads} threads", subject.hidden, hidden, positions=positions)
