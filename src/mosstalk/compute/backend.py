"""What a model needs of a backend, and how one is opened by name."""

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from mosstalk.compute.ops import Buffer
from mosstalk.compute.program import Program
from mosstalk.compute.reference import ReferenceProgram
from mosstalk.compute.state import State
from mosstalk.errors import UsageError

BACKENDS = ("cpu", "cuda", "vulkan", "reference")
_MAX_THREADS = 256  # a system may refuse more, and none are faster


class RunnableProgram(Protocol):
    """A program on a backend."""

    def array(self, buffer: Buffer) -> NDArray[Any]:
        """The host's view of a buffer, [max_rows * multiple, width], until the next run.

        For inputs and outputs. It has what the last run left; what is written to an input counts
        for the next.
        """
        ...

    def run(self, rows: int, state: State | None = None) -> None:
        """Run all ops over the first `rows` rows."""
        ...


class Backend(Protocol):
    """Something that runs programs.

    Attributes:
        name: as in BACKENDS.
        threads: on the host.
        exact_rows: whether a row's result is the same bits in whatever company it is computed.
    """

    name: str
    threads: int
    exact_rows: bool

    @property
    def identity(self) -> str:
        """Everything beside our code that results depend on: device, driver, kernels; one line."""
        ...

    def build(self, program: Program) -> RunnableProgram: ...


class ReferenceBackend:
    """NumPy: see compute/reference.py."""

    name = "reference"
    threads = 1
    exact_rows = False  # NumPy's matrix product sums in another order for other numbers of rows

    @property
    def identity(self) -> str:
        """The version of NumPy."""
        return f"NumPy {np.__version__}"

    def build(self, program: Program) -> ReferenceProgram:
        return ReferenceProgram(program)


def open_backend(name: str, threads: int = 0) -> Backend:
    """The backend `name` with `threads` threads (0: its default).

    A colon and a number choose one of several GPUs, for vulkan a part of its name as well:
    "cuda:1", "vulkan:radeon".

    Raises UsageError for an unknown name, an impossible number of threads or a package that is not
    installed, and DeviceError where there is no such device.
    """
    if not 0 <= threads <= _MAX_THREADS:
        raise UsageError(
            f"the number of threads is {threads}, but must be from 0 (automatic) to {_MAX_THREADS}"
        )
    kind, _, which = name.partition(":")
    if name == "cpu":
        from mosstalk.compute.cpu.backend import CpuBackend

        return CpuBackend(threads)
    if kind == "cuda":
        from mosstalk.compute.cuda.opening import open_cuda

        return open_cuda(which)
    if kind == "vulkan":
        from mosstalk.compute.vulkan.opening import open_vulkan

        return open_vulkan(which)
    if name == "reference":
        return ReferenceBackend()
    raise UsageError(f"unknown device {name!r}; choose one of {', '.join(BACKENDS)}")


def fallback_for(backend: Backend, threads: int = 0) -> Backend | None:
    """What computes in the place of a backend that cannot be trusted; None after the last.

    The cpu backend stands in for all others, and its slower kernels for its faster ones.
    """
    from mosstalk.compute.cpu.backend import CpuBackend

    if isinstance(backend, CpuBackend):
        return backend.plainer()
    return None if backend.name == "reference" else CpuBackend(threads)
