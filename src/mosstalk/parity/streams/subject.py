"""The requests, what each gets alone, and the order of turns."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosstalk.parity.comparison import Comparison
from mosstalk.parity.streams.requests import Request
from mosstalk.parity.streams.talk import Parts, Talk, Trace


@dataclass(frozen=True, slots=True)
class Subject:
    """What every check of sessions works on."""

    parts: Parts
    requests: tuple[Request, ...]
    turns_each: int
    seed: int
    _alone: dict[int, Trace] = field(default_factory=dict)

    def alone(self, index: int) -> Trace:
        """What a request gets when there is no other."""
        if index not in self._alone:
            self._alone[index] = self.run_alone(self.requests[index])
        return self._alone[index]

    def run_alone(self, request: Request) -> Trace:
        talk = Talk(self.parts, request, self.turns_each)
        for _ in range(self.turns_each):
            talk.next()
        return talk.trace

    def talks(self) -> list[Talk]:
        """All requests, none begun; those of one voice go on from its prefilled rows."""
        prompts = [request.prompt for request in self.requests if request.prompt is not None]
        voice = self.parts.voice(prompts)
        return [Talk(self.parts, request, self.turns_each, voice) for request in self.requests]

    def turns(self, indices: list[int], each: int, salt: int) -> list[int]:
        """Which request comes next: `each` turns for all of `indices`, shuffled."""
        order = np.repeat(indices, each)
        np.random.default_rng((self.seed, salt)).shuffle(order)
        return [int(index) for index in order]

    def others(self, index: int) -> list[int]:
        return [i for i in range(len(self.requests)) if i != index]

    def compare(
        self, comparison: Comparison, index: int, found: Trace, turns: int | None = None
    ) -> None:
        """What a request was given, with the first `turns` (default: all) of it alone."""
        name, alone = self.requests[index].name, self.alone(index)
        for what, expected, given in _first_turns(alone, found, turns or self.turns_each):
            if what == "ids":
                comparison.add_ids(f"{name}, ids", expected, given)
            else:
                comparison.add(f"{name}, {what}", expected, given)


def _first_turns(
    alone: Trace, found: Trace, turns: int
) -> Iterator[tuple[str, NDArray[Any], NDArray[Any]]]:
    yield "ids", np.stack(alone.ids[:turns]), np.stack(found.ids)
    if alone.hidden:
        yield "hidden", np.stack(alone.hidden[:turns]), np.stack(found.hidden)
    if alone.samples and found.samples:
        calls = len(found.samples)
        expected, given = (np.concatenate(trace.samples[:calls], 1) for trace in (alone, found))
        yield "samples", expected, given
