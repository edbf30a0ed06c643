"""A model of random weights in the real layout, small enough to be made for each test run.

Its final bias decides whether it goes on (`talks`) or stops at once, so that tests know which.
"""

import json
import math
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mosstalk.checkpoint.checkpoint import Checkpoint
from mosstalk.checkpoint.mapping import Expected
from mosstalk.checkpoint.storage import StorageType, StoredTensor, from_float32
from mosstalk.checkpoint.write import write_safetensors
from mosstalk.codec.moss_audio_tokenizer.config import parse_config as parse_codec_config
from mosstalk.codec.moss_audio_tokenizer.weights import expected_tensors as codec_tensors
from mosstalk.models.moss_tts_nano.config import parse_config
from mosstalk.models.moss_tts_nano.weights import expected_tensors

TOKENIZER = Path(__file__).parent / "golden" / "checkpoints" / "nano_c" / "tokenizer.model"
HIDDEN = 32
CODEBOOKS = 4
CODES = 64
SAMPLE_RATE = 16_000
CHANNELS = 2
FRAME_LEN = 1_280
_GO_ON, _STOP = 9, 7
_PUSH = 8.0  # of the final bias towards one of the two

CONFIG: dict[str, object] = {
    "model_type": "moss_tts_nano",
    "model_architecture": "global_local_transformer",
    "audio_tokenizer_type": "moss-audio-tokenizer-nano",
    "n_vq": CODEBOOKS,
    "audio_codebook_sizes": [CODES] * CODEBOOKS,
    "audio_vocab_size": CODES,
    "audio_pad_token_id": CODES,
    "vocab_size": 16_384,
    "hidden_size": HIDDEN,
    "local_transformer_layers": 1,
    "max_position_embeddings": 1_024,
    "pad_token_id": 3,
    "im_start_token_id": 4,
    "im_end_token_id": 5,
    "audio_start_token_id": 6,
    "audio_end_token_id": _STOP,
    "audio_user_slot_token_id": 8,
    "audio_assistant_slot_token_id": _GO_ON,
    "audio_tokenizer_sample_rate": SAMPLE_RATE,
    "gpt2_config": {
        "model_type": "gpt2",
        "activation_function": "gelu_new",
        "position_embedding_type": "rope",
        "n_layer": 2,
        "n_head": 2,
        "n_embd": HIDDEN,
        "n_inner": 64,
        "vocab_size": 16_384,
        "layer_norm_epsilon": 1e-5,
        "rope_base": 10_000.0,
    },
}


def stage(input_dimension: int, output_dimension: int) -> dict[str, object]:
    return {
        "module_type": "Transformer",
        "input_dimension": input_dimension,
        "output_dimension": output_dimension,
        "d_model": 32,
        "num_heads": 2,
        "num_layers": 1,
        "dim_feedforward": 64,
        "context_duration": 2.0,
        "max_period": 10_000,
    }


def _patch(size: int) -> dict[str, object]:
    return {"module_type": "PatchedPretransform", "patch_size": size}


CODEC_CONFIG: dict[str, object] = {
    "model_type": "moss-audio-tokenizer",
    "sampling_rate": SAMPLE_RATE,
    "downsample_rate": FRAME_LEN,
    "number_channels": CHANNELS,
    "enable_channel_interleave": True,
    "encoder_kwargs": [_patch(160), stage(160, 24), _patch(16), stage(384, 32)],
    "decoder_kwargs": [stage(32, 384), _patch(16), stage(24, 160), _patch(160)],
    "quantizer_type": "rlfq",
    "quantizer_kwargs": {
        "quantizer_type": "rlfq",
        "input_dim": 32,
        "output_dim": 32,
        "rvq_dim": 32,
        "num_quantizers": CODEBOOKS,
        "codebook_size": CODES,
        "codebook_dim": 8,
    },
}


def write_tiny_model(
    folder: Path, *, talks: bool = True, needs_voice: bool = True, push: float = _PUSH
) -> Path:
    """A model's directory with its codec; `talks` until max_frames, or else never begins.

    With less of a `push` chance decides when it ends.
    """
    config = {**CONFIG, "needs_voice": needs_voice}
    tensors = random_tensors(expected_tensors(parse_config(config)), seed=1)
    _make_decided(tensors, talks, push)
    codec = random_tensors(codec_tensors(parse_codec_config(CODEC_CONFIG)), seed=2)
    codec["decoder.2.output_proj.weight"] *= np.float32(0.1)  # near the range of audio
    write_checkpoint(folder, config, tensors, CODEC_CONFIG, codec, TOKENIZER.read_bytes())
    return folder


def write_other_codec(folder: Path) -> Path:
    """A codec of the same form with other weights."""
    codec = random_tensors(codec_tensors(parse_codec_config(CODEC_CONFIG)), seed=3)
    write_checkpoint(folder, {}, {}, CODEC_CONFIG, codec)
    return folder


def write_checkpoint(
    folder: Path,
    config: Mapping[str, object],
    tensors: Mapping[str, NDArray[np.float32]],
    codec_config: Mapping[str, object],
    codec: Mapping[str, NDArray[np.float32]],
    tokenizer_model: bytes | None = None,
    tokenizer_json: bytes | None = None,
) -> None:
    """A model's directory as published, or a codec's where `config` is empty."""
    checkpoint = Checkpoint(
        path=folder,
        kind="directory",
        config=config,
        tensors=_stored(tensors),
        codec_config=codec_config,
        codec_tensors=_stored(codec),
        tokenizer_model=tokenizer_model,
        identity="",
        tokenizer_json=tokenizer_json,
    )
    write_safetensors(checkpoint, folder, StorageType.NATIVE)


def _stored(tensors: Mapping[str, NDArray[np.float32]]) -> dict[str, StoredTensor]:
    return {name: from_float32(name, data, StorageType.F32) for name, data in tensors.items()}


def random_tensors(expected: Iterable[Expected], seed: int) -> dict[str, NDArray[np.float32]]:
    generator = np.random.default_rng(seed)
    tensors = {}
    for item in expected:
        values = generator.standard_normal(item.shape).astype(np.float32)
        is_gain = len(item.shape) == 1 and not item.name.endswith("bias")
        is_gain = is_gain or item.name.endswith("original0")
        if is_gain:
            tensors[item.name] = 1 + np.float32(0.1) * values
        elif len(item.shape) == 1:
            tensors[item.name] = np.float32(0.1) * values
        else:
            width = 4 if "embeddings" in item.name or "wte" in item.name else item.shape[1]
            tensors[item.name] = values / np.float32(math.sqrt(width))
    return tensors


def _make_decided(tensors: dict[str, NDArray[np.float32]], talks: bool, push: float) -> None:
    """Set the embeddings of "go on" and "stop" apart along the final bias."""
    way = np.random.default_rng(4).standard_normal(HIDDEN).astype(np.float32)
    way *= np.float32(push) / np.linalg.norm(way)
    likely, unlikely = (_GO_ON, _STOP) if talks else (_STOP, _GO_ON)
    tensors["local_transformer.ln_f.bias"] += way
    tensors["transformer.wte.weight"][likely] += way
    tensors["transformer.wte.weight"][unlikely] -= way


def edit_json(path: Path, change: Callable[[dict[str, object]], None]) -> None:
    """Change a JSON file in place."""
    values = json.loads(path.read_text())
    change(values)
    path.write_text(json.dumps(values))
