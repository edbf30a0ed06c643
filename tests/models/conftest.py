"""Fixtures of the language model's tests."""

from pathlib import Path

import pytest
from nano_models import Golden, load_golden


@pytest.fixture
def golden(golden_dir: Path, request: pytest.FixtureRequest) -> Golden:
    """The golden model that the test's parameter names."""
    return load_golden(golden_dir, request.param)


@pytest.fixture
def nano_a(golden_dir: Path) -> Golden:
    return load_golden(golden_dir, "nano_a")
