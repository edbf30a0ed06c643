"""A MOSS-TTS-Nano checkpoint of random weights, wide enough for whole q8_0 blocks."""

import math
from pathlib import Path

import numpy as np
import pytest
from tiny_model import CONFIG

from mosstalk.checkpoint.checkpoint import Checkpoint
from mosstalk.checkpoint.storage import StorageType, StoredTensor, from_float32
from mosstalk.checkpoint.write import write_safetensors
from mosstalk.models.moss_tts_nano.config import parse_config
from mosstalk.models.moss_tts_nano.weights import expected_tensors

WIDTH, TEXTS, CODEBOOKS, CODES = 64, 96, 3, 48


@pytest.fixture(scope="session")
def random_nano(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A language model's directory in the published layout, without codec and tokeniser."""
    gpt2 = dict(CONFIG["gpt2_config"])  # type: ignore[call-overload]
    gpt2 |= {"n_embd": WIDTH, "n_inner": 128, "n_layer": 2, "n_head": 4, "vocab_size": TEXTS}
    config = CONFIG | {
        "gpt2_config": gpt2,
        "hidden_size": WIDTH,
        "vocab_size": TEXTS,
        "n_vq": CODEBOOKS,
        "audio_codebook_sizes": [CODES] * CODEBOOKS,
        "audio_vocab_size": CODES,
        "audio_pad_token_id": CODES,
        "max_position_embeddings": 320,
    }
    folder = tmp_path_factory.mktemp("nano")
    checkpoint = Checkpoint(folder, "directory", config, _weights(config), None, None, None, "")
    write_safetensors(checkpoint, folder, StorageType.NATIVE)
    return folder


def _weights(config: dict[str, object]) -> dict[str, StoredTensor]:
    generator = np.random.default_rng(7)
    tensors = {}
    for item in expected_tensors(parse_config(config)):
        values = generator.standard_normal(item.shape).astype(np.float32)
        if len(item.shape) == 2:
            values *= np.float32(1.5 / math.sqrt(item.shape[1]))
        else:
            values = values * np.float32(0.2) + np.float32(item.name.endswith("weight"))
        tensors[item.name] = from_float32(item.name, values, StorageType.F32)
    return tensors
