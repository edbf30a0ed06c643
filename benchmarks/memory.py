"""How fast this machine reads memory, measured beside what it bounds."""

import time

import numpy as np

from mosstalk.compute.cpu.backend import CpuBackend


class MemorySpeed:
    """Reads an array of `num_bytes` with a backend's threads."""

    def __init__(self, backend: CpuBackend, num_bytes: int) -> None:
        self._pool = backend.pool
        self._data = np.ones(num_bytes // 256 * 64, np.float32)

    def read_ms(self) -> float:
        """Milliseconds of one pass over the array."""
        started = time.perf_counter()
        self._pool.read(self._data)
        return 1000 * (time.perf_counter() - started)
