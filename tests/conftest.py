"""Fixtures that every layer's tests share."""

import os
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def golden_dir() -> Path:
    """The folder of golden vectors; a test skips when the file it needs is not there."""
    named = os.environ.get("MOSSTALK_GOLDEN")
    if named:
        return Path(named)
    beside = REPOSITORY.parent / "shared" / "golden"
    return beside if beside.is_dir() else REPOSITORY / "tests" / "golden"
