"""The real tokeniser, as most tests of text need it."""

from pathlib import Path

import pytest

from mosstalk.text.tokenizer import Tokenizer


@pytest.fixture(scope="session")
def nano_proto(golden_dir: Path) -> bytes:
    """The content of MOSS-TTS-Nano's `tokenizer.model`."""
    path = golden_dir / "checkpoints" / "nano_c" / "tokenizer.model"
    if not path.exists():
        pytest.skip("no golden tokeniser")
    return path.read_bytes()


@pytest.fixture(scope="session")
def nano_tokenizer(nano_proto: bytes) -> Tokenizer:
    return Tokenizer(nano_proto)
