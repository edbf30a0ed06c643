"""The instruction sets that the cpu backend has kernels for and this processor can run."""

from mosstalk.compute.cpu import _native


def _runs(kernels: str) -> bool:
    try:
        _native.kernels(kernels)
    except ValueError:
        return False
    return True


KERNELS = tuple(name for name in ("avx512", "avx2", "neon", "plain") if _runs(name))
