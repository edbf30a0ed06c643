"""Fixtures that every layer's tests share."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session", autouse=True)
def cache_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """What the package keeps between runs is kept for these tests alone."""
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MOSSTALK_CACHE", str(folder))
        yield folder


@pytest.fixture(scope="session")
def golden_dir() -> Path:
    """The folder of golden vectors; a test skips when the file it needs is not there."""
    named = os.environ.get("MOSSTALK_GOLDEN")
    if named:
        return Path(named)
    beside = REPOSITORY.parent / "shared" / "golden"
    return beside if beside.is_dir() else REPOSITORY / "tests" / "golden"
