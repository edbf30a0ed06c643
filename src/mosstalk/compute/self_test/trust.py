"""Decides which backend to compute with: the one asked for, or one that stands in for it."""

from mosstalk.compute.backend import Backend, fallback_for
from mosstalk.compute.self_test.known_good import is_known_good, remember_good
from mosstalk.errors import DeviceError


def trusted(
    backend: Backend, threads: int = 0, *, strict: bool = False
) -> tuple[Backend, tuple[str, ...]]:
    """`backend` if it computes right, else what stands in for it, and warnings that say so.

    A device that has passed is tested again only when its driver, the processor or our code is
    another. `threads` is for the cpu backend where it stands in; 0: its default.

    Raises:
        DeviceError: the device computes wrong, and `strict` is set or nothing can stand in.
    """
    warnings: list[str] = []
    while not is_known_good(backend):
        problem = _problem(backend)
        if not problem:
            remember_good(backend)
            break
        fallback = fallback_for(backend, threads)
        if strict or fallback is None:
            raise DeviceError(f"{problem}; {_way_out(backend, fallback)}")
        stands_in = "slower kernels stand" if backend.name == fallback.name else "the cpu stands"
        warnings.append(f"{problem}; {stands_in} in for it")
        backend = fallback
    return backend, tuple(warnings)


def _problem(backend: Backend) -> str:
    """The first fault in full, the other ops by name; "" for a healthy backend."""
    from mosstalk.compute.self_test.check import find_faults  # not needed at most starts

    faults = find_faults(backend)
    if not faults:
        return ""
    others = sorted({fault.op for fault in faults} - {faults[0].op})
    more = f" (and {', '.join(others)})" if others else ""
    return f"{backend.name} fails its self-test: {faults[0]}{more}, on {backend.identity}"


def _way_out(backend: Backend, fallback: Backend | None) -> str:
    if fallback is None:
        return "no other kernels are left, so nothing can be computed; install mosstalk again"
    if backend.name == fallback.name:
        return "leave out --strict to compute with slower kernels"
    return "update its driver, give another --device, or leave out --strict to compute on the cpu"
