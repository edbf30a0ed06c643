"""Fixtures of the delay family's tests."""

from pathlib import Path

import pytest
from delay_models import Golden, load_golden


@pytest.fixture
def golden(golden_dir: Path, request: pytest.FixtureRequest) -> Golden:
    """The golden model that the test's parameter names."""
    return load_golden(golden_dir, request.param)
