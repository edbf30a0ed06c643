"""Arrays in host memory, of which a backend may hold the newest values in its device's memory.

The values are in one place or in both. `read` and `write` bring them to the host where a run has
left newer ones on the device; after `write` the device's copy no longer counts. So owners of a
state and backends of any kind share it without knowing of each other, and nothing is copied that
nobody asks for.
"""

from collections.abc import Sequence
from typing import Any, Protocol

from numpy.typing import NDArray


class DeviceCopy(Protocol):
    """A backend's copy of some arrays in the memory of its device."""

    def fetch(self, arrays: Sequence[NDArray[Any]]) -> None:
        """Copy the device's values into the arrays that it was made of."""
        ...


class HostArrays:
    """Arrays, and perhaps a device's copy of them with the same values or newer ones.

    Attributes:
        is_blank: whether they still are as they were made; a state's are zeros then.
    """

    def __init__(self, arrays: Sequence[NDArray[Any]]) -> None:
        self._arrays = tuple(arrays)
        self.is_blank = True
        self._copy: DeviceCopy | None = None
        self._is_behind = False

    @property
    def copy(self) -> DeviceCopy | None:
        """The device's copy, while it counts."""
        return self._copy

    def read(self) -> tuple[NDArray[Any], ...]:
        """The arrays with the newest values, for reading only, until the next run."""
        if self._is_behind:
            assert self._copy is not None
            self._copy.fetch(self._arrays)
            self._is_behind = self.is_blank = False
        return self._arrays

    def write(self) -> tuple[NDArray[Any], ...]:
        """The arrays with the newest values, for reading and writing until the next run."""
        arrays = self.read()
        self._copy, self.is_blank = None, False
        return arrays

    def run_on(self, copy: DeviceCopy) -> None:
        """A run is about to change `copy`, which has the newest values; the arrays fall behind."""
        assert self._copy in (None, copy) or not self._is_behind
        self._copy, self._is_behind = copy, True
