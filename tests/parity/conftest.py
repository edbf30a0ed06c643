"""A MOSS-TTS-Nano checkpoint of random weights, wide enough for whole q8_0 blocks."""

from pathlib import Path

import pytest
from random_nano import NanoSizes, write_random_nano


@pytest.fixture(scope="session")
def random_nano(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A language model's directory in the published layout, without codec and tokeniser."""
    return write_random_nano(tmp_path_factory.mktemp("nano"), NanoSizes())
