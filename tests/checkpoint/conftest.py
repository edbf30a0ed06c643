"""Fixtures of the checkpoint tests."""

from collections.abc import Iterator

import pytest


@pytest.fixture
def small_disk() -> Iterator[None]:
    """Files cannot grow beyond 2,000 bytes, as on a full disk."""
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2000, hard))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
