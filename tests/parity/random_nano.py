"""MOSS-TTS-Nano checkpoints of random weights in the published layout, of any sizes."""

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from tiny_model import CONFIG

from mosstalk.checkpoint.checkpoint import Checkpoint
from mosstalk.checkpoint.storage import StorageType, StoredTensor, from_float32
from mosstalk.checkpoint.write import write_safetensors
from mosstalk.models.moss_tts_nano.config import parse_config
from mosstalk.models.moss_tts_nano.weights import expected_tensors


@dataclass(frozen=True, slots=True)
class NanoSizes:
    """The defaults are wide enough for whole q8_0 blocks."""

    heads: int = 4
    head_dim: int = 16
    inner: int = 128
    layers: int = 2
    local_layers: int = 1
    texts: int = 96
    codebook_sizes: tuple[int, ...] = (48, 48, 48)
    positions: int = 320


def draw_sizes(generator: np.random.Generator) -> NanoSizes:
    """Anything the architecture allows, from 8 values wide: fewer leave a norm too little."""
    heads = int(generator.integers(1, 6))
    n_vq = int(generator.integers(1, 17))
    return NanoSizes(
        heads=heads,
        head_dim=2 * int(generator.integers(-(-4 // heads), 17)),
        inner=int(generator.integers(8, 150)),
        layers=int(generator.integers(1, 4)),
        local_layers=int(generator.integers(1, 3)),
        texts=int(generator.integers(16, 300)),
        codebook_sizes=tuple(generator.integers(4, 80, n_vq).tolist()),
        positions=int(generator.integers(48, 400)),
    )


def write_random_nano(folder: Path, sizes: NanoSizes, seed: int = 7) -> Path:
    """A language model's directory, without codec and tokeniser."""
    width = sizes.heads * sizes.head_dim
    codes = max(sizes.codebook_sizes)
    gpt2 = dict(CONFIG["gpt2_config"])  # type: ignore[call-overload]
    gpt2 |= {
        "n_embd": width,
        "n_inner": sizes.inner,
        "n_layer": sizes.layers,
        "n_head": sizes.heads,
        "vocab_size": sizes.texts,
    }
    config = CONFIG | {
        "gpt2_config": gpt2,
        "hidden_size": width,
        "vocab_size": sizes.texts,
        "local_transformer_layers": sizes.local_layers,
        "n_vq": len(sizes.codebook_sizes),
        "audio_codebook_sizes": list(sizes.codebook_sizes),
        "audio_vocab_size": codes,
        "audio_pad_token_id": codes,
        "max_position_embeddings": sizes.positions,
    }
    tensors = _weights(config, seed)
    checkpoint = Checkpoint(folder, "directory", config, tensors, None, None, None, "")
    write_safetensors(checkpoint, folder, StorageType.NATIVE)
    return folder


def _weights(config: dict[str, object], seed: int) -> dict[str, StoredTensor]:
    generator = np.random.default_rng(seed)
    tensors = {}
    for item in expected_tensors(parse_config(config)):
        values = generator.standard_normal(item.shape).astype(np.float32)
        if len(item.shape) == 2:
            values *= np.float32(1.5 / math.sqrt(item.shape[1]))
        else:
            values = values * np.float32(0.2) + np.float32(item.name.endswith("weight"))
        tensors[item.name] = from_float32(item.name, values, StorageType.F32)
    return tensors
