"""Requests that take turns on one model and one codec."""

import numpy as np
from numpy.typing import NDArray

from mosstalk.parity.comparison import Comparison
from mosstalk.parity.streams.subject import Subject
from mosstalk.parity.streams.talk import Talk, Trace

_CANCELLED = 0  # index of the request that is given up


def check_interleaved(subject: Subject, comparison: Comparison) -> None:
    """All requests from the start, turn by turn in shuffled order."""
    talks = subject.talks()
    _advance(talks, subject.turns(list(range(len(talks))), subject.turns_each, salt=1))
    for i, talk in enumerate(talks):
        subject.compare(comparison, i, talk.trace)


def check_late(subject: Subject, comparison: Comparison) -> None:
    """One request starts when the others are in the middle."""
    talks = subject.talks()
    late = len(talks) - 1
    half = subject.turns_each // 2
    others = subject.others(late)
    _advance(talks, subject.turns(others, half, salt=2))
    talks[late].next()
    rest = subject.turns(others, subject.turns_each - half, salt=3)
    _advance(talks, _mixed(rest, [late] * (subject.turns_each - 1)))
    for i, talk in enumerate(talks):
        subject.compare(comparison, i, talk.trace)


def check_cancelled(subject: Subject, comparison: Comparison) -> None:
    """One request is given up in the middle; what it has got was right, and the others go on."""
    talks = subject.talks()
    made = _until_cancelled(subject, talks)
    _advance(talks, subject.turns(subject.others(_CANCELLED), subject.turns_each - made, salt=5))
    subject.compare(comparison, _CANCELLED, talks[_CANCELLED].trace, made)
    for i in subject.others(_CANCELLED):
        subject.compare(comparison, i, talks[i].trace)


def check_used_again(subject: Subject, comparison: Comparison) -> None:
    """A new request takes over the session of one that was given up, while the others go on."""
    talks = subject.talks()
    made = _until_cancelled(subject, talks)
    session = talks[_CANCELLED].session
    assert session is not None
    last = len(talks) - 1
    again = Talk(subject.parts, subject.requests[last], subject.turns_each)
    again.take_over(session)
    rest = subject.turns(subject.others(_CANCELLED), subject.turns_each - made, salt=6)
    talks.append(again)
    _advance(talks, _mixed(rest, [len(talks) - 1] * subject.turns_each))
    subject.compare(comparison, last, again.trace)
    for i in subject.others(_CANCELLED):
        subject.compare(comparison, i, talks[i].trace)


def check_requests_differ(subject: Subject, comparison: Comparison) -> None:
    """Control: no request gets what the next one gets."""
    count = len(subject.requests)
    for i in range(count):
        expected, found = _heard(*(subject.alone(at % count) for at in (i, i + 1)))
        comparison.add(f"requests {i} and {(i + 1) % count}", expected, found)


def check_seed(subject: Subject, comparison: Comparison) -> None:
    """Control: other random numbers draw other codes."""
    drawn = []
    for seed in (subject.seed, subject.seed + 1):
        trace = subject.run_alone(subject.requests[0].drawn_anew(seed))
        drawn.append(np.stack(trace.ids) + 1)  # a model may draw nothing but code 0
    comparison.add("another seed", *drawn)


def _until_cancelled(subject: Subject, talks: list[Talk]) -> int:
    """Advance all to the middle and give one up; how many turns each has taken then."""
    half = max(1, subject.turns_each // 2)
    _advance(talks, subject.turns(list(range(len(talks))), half, salt=4))
    talks[_CANCELLED].cancel()
    return half


def _advance(talks: list[Talk], turns: list[int]) -> None:
    for index in turns:
        talks[index].next()


def _mixed(turns: list[int], more: list[int]) -> list[int]:
    """The two lists, one from each in turn, and what is left of the longer."""
    shared = min(len(turns), len(more))
    pairs = zip(turns, more, strict=False)
    return [i for pair in pairs for i in pair] + turns[shared:] + more[shared:]


def _heard(*traces: Trace) -> list[NDArray[np.float32]]:
    """The deepest of what requests have got: samples, cut to one length, or else hidden vectors."""
    if not all(trace.samples for trace in traces):
        return [np.stack(trace.hidden) for trace in traces]
    heard = [np.concatenate(trace.samples, axis=1) for trace in traces]
    shortest = min(samples.shape[1] for samples in heard)
    return [samples[:, :shortest] for samples in heard]
