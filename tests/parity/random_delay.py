"""Models of the delay family of random weights in the published layout, of any sizes."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mosstalk.checkpoint.checkpoint import Checkpoint
from mosstalk.checkpoint.storage import StorageType, StoredTensor, from_float32
from mosstalk.checkpoint.write import write_safetensors
from mosstalk.models.moss_tts_delay.config import parse_config
from mosstalk.models.moss_tts_delay.weights import expected_tensors


@dataclass(frozen=True, slots=True)
class DelaySizes:
    """The defaults are wide enough for whole q8_0 blocks."""

    hidden: int = 64
    key_value_heads: int = 2
    group: int = 2  # query heads for each of them
    head_dim: int = 16
    inner: int = 96
    layers: int = 2
    texts: int = 128
    n_vq: int = 4
    codes: int = 32
    positions: int = 320


def draw_delay_sizes(generator: np.random.Generator) -> DelaySizes:
    """Anything the architecture allows, from 8 values wide: fewer leave a norm too little."""
    return DelaySizes(
        hidden=int(generator.integers(8, 100)),
        key_value_heads=int(generator.integers(1, 4)),
        group=int(generator.integers(1, 4)),
        head_dim=2 * int(generator.integers(2, 17)),
        inner=int(generator.integers(8, 150)),
        layers=int(generator.integers(1, 4)),
        texts=int(generator.integers(16, 300)),
        n_vq=int(generator.integers(1, 18)),
        codes=int(generator.integers(16, 80)),
        positions=int(generator.integers(96, 400)),
    )


def write_random_delay(folder: Path, sizes: DelaySizes, seed: int = 7) -> Path:
    """A language model's directory, without codec and tokeniser."""
    config = _config(sizes)
    generator = np.random.default_rng(seed)
    tensors: dict[str, StoredTensor] = {}
    for item in expected_tensors(parse_config(config)):
        values = generator.standard_normal(item.shape).astype(np.float32)
        if len(item.shape) == 1:
            values = 1 + values * np.float32(0.2)
        elif "emb" not in item.name:
            values *= np.float32(1.5 / math.sqrt(item.shape[1]))
        tensors[item.name] = from_float32(item.name, values, StorageType.F32)
    checkpoint = Checkpoint(folder, "directory", config, tensors, None, None, None, "")
    write_safetensors(checkpoint, folder, StorageType.NATIVE)
    return folder


def _config(sizes: DelaySizes) -> dict[str, Any]:
    return {
        "model_type": "moss_tts_delay",
        "n_vq": sizes.n_vq,
        "audio_vocab_size": sizes.codes,
        "audio_pad_code": sizes.codes,
        "pad_token_id": 3,
        "im_start_token_id": 4,
        "im_end_token_id": 5,
        "audio_start_token_id": 6,
        "audio_end_token_id": 7,
        "audio_user_slot_token_id": 8,
        "audio_assistant_gen_slot_token_id": 9,
        "audio_assistant_delay_slot_token_id": 10,
        "sampling_rate": 24_000,
        "language_config": {
            "model_type": "qwen3",
            "vocab_size": sizes.texts,
            "hidden_size": sizes.hidden,
            "num_hidden_layers": sizes.layers,
            "intermediate_size": sizes.inner,
            "num_attention_heads": sizes.key_value_heads * sizes.group,
            "num_key_value_heads": sizes.key_value_heads,
            "head_dim": sizes.head_dim,
            "hidden_act": "silu",
            "rms_norm_eps": 1e-6,
            "rope_theta": 1e6,
            "max_position_embeddings": sizes.positions,
        },
    }
