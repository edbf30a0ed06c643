"""A disk that is nearly full."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest


@contextmanager
def small_disk(num_bytes: int) -> Iterator[None]:
    """No file grows beyond `num_bytes` within the block.

    A block and not a fixture: the file that pytest's own output may go to would be limited too.
    """
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (num_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
