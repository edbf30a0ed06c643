"""Checkpoints of random weights, wide enough for whole q8_0 blocks."""

from pathlib import Path

import pytest
from random_delay import DelaySizes, write_random_delay
from random_nano import NanoSizes, write_random_nano


@pytest.fixture(scope="session")
def random_nano(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A MOSS-TTS-Nano in the published layout, without codec and tokeniser."""
    return write_random_nano(tmp_path_factory.mktemp("nano"), NanoSizes())


@pytest.fixture(scope="session")
def random_delay(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same of the delay family."""
    return write_random_delay(tmp_path_factory.mktemp("delay"), DelaySizes())
