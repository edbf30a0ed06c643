"""What a model needs of a backend, and how one is opened by name."""

from typing import Any, Protocol

from numpy.typing import NDArray

from mosstalk.compute.ops import Buffer
from mosstalk.compute.program import Program
from mosstalk.compute.reference import ReferenceProgram
from mosstalk.compute.state import State
from mosstalk.errors import UsageError

BACKENDS = ("cpu", "reference")
_MAX_THREADS = 256  # a system may refuse more, and none are faster


class RunnableProgram(Protocol):
    """A program on a backend."""

    def array(self, buffer: Buffer) -> NDArray[Any]:
        """The host's view of a buffer, [max_rows * multiple, width]."""
        ...

    def run(self, rows: int, state: State | None = None) -> None:
        """Run all ops over the first `rows` rows."""
        ...


class Backend(Protocol):
    """Something that runs programs."""

    name: str
    threads: int

    def build(self, program: Program) -> RunnableProgram: ...


class ReferenceBackend:
    """NumPy: see compute/reference.py."""

    name = "reference"
    threads = 1

    def build(self, program: Program) -> ReferenceProgram:
        return ReferenceProgram(program)


def open_backend(name: str, threads: int = 0) -> Backend:
    """The backend `name` with `threads` threads (0: its default).

    Raises UsageError for an unknown name or an impossible number of threads.
    """
    if not 0 <= threads <= _MAX_THREADS:
        raise UsageError(
            f"the number of threads is {threads}, but must be from 0 (automatic) to {_MAX_THREADS}"
        )
    if name == "cpu":
        from mosstalk.compute.cpu.backend import CpuBackend

        return CpuBackend(threads)
    if name == "reference":
        return ReferenceBackend()
    raise UsageError(f"unknown device {name!r}; choose one of {', '.join(BACKENDS)}")
