"""Codecs of random form and weights, written as checkpoints."""

import math
from pathlib import Path
from typing import Any

import numpy as np

from mosstalk.checkpoint.checkpoint import Checkpoint
from mosstalk.checkpoint.storage import StorageType, StoredTensor, from_float32
from mosstalk.checkpoint.write import write_safetensors
from mosstalk.codec.moss_audio_tokenizer.config import parse_config
from mosstalk.codec.moss_audio_tokenizer.weights import expected_tensors

FRAME_RATE = 10


def _patch(size: int) -> dict[str, Any]:
    return {"module_type": "PatchedPretransform", "patch_size": size}


def _stage(width: tuple[int, int], heads: int, head_dim: int, **sizes: Any) -> dict[str, Any]:
    return {
        "module_type": "Transformer",
        "input_dimension": width[0],
        "output_dimension": width[1],
        "d_model": heads * head_dim,
        "num_heads": heads,
        "max_period": 10_000,
        **sizes,
    }


def codec_config(
    decoder: list[dict[str, Any]],
    encoder: list[dict[str, Any]],
    frame_values: int,
    channels: int,
    quantizer: dict[str, int],
) -> dict[str, Any]:
    """config.json in the published layout."""
    frame_len = frame_values // channels
    width = quantizer["width"]
    return {
        "model_type": "moss-audio-tokenizer",
        "sampling_rate": frame_len * FRAME_RATE,
        "downsample_rate": frame_len,
        "number_channels": channels,
        "enable_channel_interleave": True,
        "encoder_kwargs": encoder,
        "decoder_kwargs": decoder,
        "quantizer_type": "rlfq",
        "quantizer_kwargs": {
            "quantizer_type": "rlfq",
            "input_dim": width,
            "output_dim": width,
            "rvq_dim": quantizer["rvq_dim"],
            "num_quantizers": quantizer["books"],
            "codebook_size": quantizer["size"],
            "codebook_dim": quantizer["dim"],
        },
    }


def small_config() -> dict[str, Any]:
    """Stereo, two stages of two layers a side; windows of 5 and 12 frames."""
    sizes = {"num_layers": 2, "dim_feedforward": 40}
    near, far = {**sizes, "context_duration": 0.5}, {**sizes, "context_duration": 1.2}
    decoder = [
        _stage((24, 64), 2, 16, **far), _patch(8), _stage((8, 20), 2, 16, **near), _patch(20)
    ]  # fmt: skip
    encoder = [
        _patch(20), _stage((20, 8), 2, 16, **near), _patch(8), _stage((64, 24), 2, 16, **far)
    ]  # fmt: skip
    quantizer = {"width": 24, "rvq_dim": 16, "books": 4, "size": 40, "dim": 8}
    return codec_config(decoder, encoder, 160, 2, quantizer)


def random_config(seed: int) -> dict[str, Any]:
    """1 to 3 stages a side, 1 or 2 channels, 1 to 16 codebooks, windows of 2 to 30 frames."""
    generator = np.random.default_rng(seed)

    def between(low: int, high: int) -> int:
        return int(generator.integers(low, high + 1))

    def sizes(multiple: int) -> dict[str, Any]:
        window = between(2 * multiple, 30 * multiple)
        return {
            "num_layers": between(1, 3),
            "dim_feedforward": between(1, 40),
            "context_duration": window / (multiple * FRAME_RATE),
            "max_period": between(10, 20_000),
        }

    channels, stages = between(1, 2), between(1, 3)
    starts_with_patch = bool(between(0, 1))
    patches = [between(1, 4) for _ in range(stages)]
    patches[-1] = 2 * between(4, 20)
    lead = between(2, 3) if starts_with_patch else 1
    width = code_dim = lead * between(2, 20)
    decoder: list[dict[str, Any]] = [_patch(lead)] if starts_with_patch else []
    encoder: list[dict[str, Any]] = [_patch(lead)] if starts_with_patch else []
    multiple, width = lead, width // lead
    for i, size in enumerate(patches):
        out = size * (1 if i == stages - 1 else between(1, 12))
        shape = between(1, 4), 2 * between(1, 12)
        decoder += [_stage((width, out), *shape, **sizes(multiple)), _patch(size)]
        shape = between(1, 4), 2 * between(1, 12)
        encoder += [_stage((out, width), *shape, **sizes(multiple)), _patch(size)]
        multiple, width = multiple * size, out // size
    quantizer = {
        "width": code_dim,
        "rvq_dim": between(2, 24),
        "books": between(1, 16),
        "size": between(16, 70),
        "dim": between(2, 10),
    }
    return codec_config(decoder, encoder[::-1], multiple, channels, quantizer)


def write_codec(folder: Path, config: dict[str, Any], seed: int = 0) -> Path:
    """A codec's directory; its layers matter as much as what they add to."""
    generator = np.random.default_rng(seed)
    tensors: dict[str, StoredTensor] = {}
    for item in expected_tensors(parse_config(config)):
        values = generator.standard_normal(item.shape).astype(np.float32)
        is_gain = item.name.endswith(("original0", "scale", "norm1.weight", "norm2.weight"))
        if is_gain:
            values = 1 + np.float32(0.2) * values
        elif len(item.shape) == 2:
            values /= np.float32(math.sqrt(item.shape[1]))
        tensors[item.name] = from_float32(item.name, values, StorageType.F32)
    checkpoint = Checkpoint(folder, "directory", {}, {}, config, tensors, None, "")
    write_safetensors(checkpoint, folder, StorageType.NATIVE)
    return folder
