"""The requests, what each gets alone, and the order of turns."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from mosstalk.parity.comparison import Comparison
from mosstalk.parity.streams.requests import Request
from mosstalk.parity.streams.talk import Parts, Talk, Trace


@dataclass(frozen=True, slots=True)
class Subject:
    """What every check of sessions works on."""

    parts: Parts
    requests: tuple[Request, ...]
    frames: int
    seed: int
    _alone: dict[int, Trace] = field(default_factory=dict)

    def alone(self, index: int) -> Trace:
        """What a request gets when there is no other."""
        if index not in self._alone:
            self._alone[index] = self.run_alone(self.requests[index])
        return self._alone[index]

    def run_alone(self, request: Request) -> Trace:
        talk = Talk(self.parts, request, self.frames)
        for _ in range(self.frames):
            talk.next()
        return talk.trace

    def talks(self) -> list[Talk]:
        """All requests, none begun; those of one voice go on from its prefilled rows."""
        prompts = [request.prompt for request in self.requests if request.prompt is not None]
        voice = self.parts.voice(prompts)
        return [Talk(self.parts, request, self.frames, voice) for request in self.requests]

    def turns(self, indices: list[int], each: int, salt: int) -> list[int]:
        """Which request comes next: `each` turns for all of `indices`, shuffled."""
        order = np.repeat(indices, each)
        np.random.default_rng((self.seed, salt)).shuffle(order)
        return [int(index) for index in order]

    def others(self, index: int) -> list[int]:
        return [i for i in range(len(self.requests)) if i != index]

    def compare(
        self, comparison: Comparison, index: int, found: Trace, frames: int | None = None
    ) -> None:
        """What a request was given, with the first `frames` (default: all) of it alone."""
        name, alone = self.requests[index].name, self.alone(index)
        for what, expected, given in _first_frames(alone, found, frames or self.frames):
            if what == "codes":
                comparison.add_ids(f"{name}, codes", expected, given)
            else:
                comparison.add(f"{name}, {what}", expected, given)


def _first_frames(
    alone: Trace, found: Trace, frames: int
) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    yield "codes", np.stack(alone.codes[:frames]), np.stack(found.codes)
    if alone.hidden:
        yield "hidden", np.stack(alone.hidden[:frames]), np.stack(found.hidden)
    if alone.samples and found.samples:
        calls = len(found.samples)
        expected, given = (np.concatenate(trace.samples[:calls], 1) for trace in (alone, found))
        yield "samples", expected, given
