"""The streams of one state, lent one by one to those who advance together."""

from dataclasses import dataclass

from mosstalk.compute.state import State


@dataclass(frozen=True, slots=True)
class Seat:
    """One stream of a state, its holder's alone until it is given back."""

    state: State
    stream: int = 0


class Seats:
    """Lends the streams of `state`. A seat that is taken holds nothing."""

    def __init__(self, state: State) -> None:
        self.state = state
        self._free = list(reversed(range(state.num_streams)))

    @property
    def num_free(self) -> int:
        return len(self._free)

    def take(self, rows: int = 0) -> Seat | None:
        """A seat with room for `rows` rows; None where none is free or the state is shorter."""
        if not self._free or rows > self.state.capacity:
            return None
        return Seat(self.state, self._free.pop())

    def give_back(self, seat: Seat) -> None:
        """What the seat holds is forgotten."""
        assert seat.state is self.state and seat.stream not in self._free
        self.state.reset(seat.stream)
        self._free.append(seat.stream)
