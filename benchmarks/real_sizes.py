"""Models at their published sizes with random weights.

MOSS-TTS-Nano and its codec: spec nano.md 1.2, 1.4. MOSS-VoiceGenerator: spec voicegen.md 1.3.
"""

from collections.abc import Iterable, Mapping

import numpy as np

from mosstalk.checkpoint.mapping import Expected
from mosstalk.checkpoint.storage import StorageType, StoredTensor, from_float32
from mosstalk.codec.moss_audio_tokenizer.codec import MossAudioTokenizer
from mosstalk.codec.moss_audio_tokenizer.config import parse_config as parse_codec_config
from mosstalk.codec.moss_audio_tokenizer.weights import expected_tensors as codec_tensors
from mosstalk.compute.backend import Backend
from mosstalk.models.moss_tts_delay.config import parse_config as parse_delay_config
from mosstalk.models.moss_tts_delay.model import DelayModel
from mosstalk.models.moss_tts_delay.weights import expected_tensors as delay_tensors
from mosstalk.models.moss_tts_nano.config import parse_config
from mosstalk.models.moss_tts_nano.model import NanoModel
from mosstalk.models.moss_tts_nano.weights import expected_tensors

NANO_CONFIG: dict[str, object] = {
    "model_type": "moss_tts_nano",
    "n_vq": 16,
    "audio_codebook_sizes": [1024] * 16,
    "audio_vocab_size": 1024,
    "audio_pad_token_id": 1024,
    "vocab_size": 16384,
    "hidden_size": 768,
    "local_transformer_layers": 1,
    "max_position_embeddings": 32768,
    "pad_token_id": 3,
    "im_start_token_id": 4,
    "im_end_token_id": 5,
    "audio_start_token_id": 6,
    "audio_end_token_id": 7,
    "audio_user_slot_token_id": 8,
    "audio_assistant_slot_token_id": 9,
    "audio_tokenizer_sample_rate": 48000,
    "gpt2_config": {
        "n_layer": 12,
        "n_head": 12,
        "n_embd": 768,
        "n_inner": 3072,
        "vocab_size": 16384,
        "layer_norm_epsilon": 1e-5,
        "rope_base": 10000.0,
    },
}


def _stage(width_in: int, width_out: int, layers: int, seconds: float) -> dict[str, object]:
    return {
        "module_type": "Transformer",
        "input_dimension": width_in,
        "output_dimension": width_out,
        "d_model": 256,
        "num_heads": 4,
        "num_layers": layers,
        "dim_feedforward": 1024,
        "context_duration": seconds,
    }


def _patch(size: int) -> dict[str, object]:
    return {"module_type": "PatchedPretransform", "patch_size": size}


CODEC_CONFIG: dict[str, object] = {
    "model_type": "moss-audio-tokenizer",
    "sampling_rate": 48000,
    "downsample_rate": 3840,
    "number_channels": 2,
    "enable_channel_interleave": True,
    "quantizer_type": "rlfq",
    "quantizer_kwargs": {
        "quantizer_type": "rlfq",
        "input_dim": 768,
        "output_dim": 768,
        "rvq_dim": 512,
        "num_quantizers": 16,
        "codebook_size": 1024,
        "codebook_dim": 8,
    },
    "encoder_kwargs": [
        _patch(240),
        _stage(240, 384, 4, 4.0),
        _patch(2),
        _stage(768, 384, 2, 6.0),
        _patch(2),
        _stage(768, 384, 2, 8.0),
        _patch(2),
        _stage(768, 192, 4, 10.0),
        _patch(4),
    ],
    "decoder_kwargs": [
        _patch(4),
        _stage(192, 768, 4, 10.0),
        _patch(2),
        _stage(384, 768, 2, 8.0),
        _patch(2),
        _stage(384, 768, 2, 6.0),
        _patch(2),
        _stage(384, 240, 4, 4.0),
        _patch(240),
    ],
}


VOICE_GENERATOR_CONFIG: dict[str, object] = {
    "model_type": "moss_tts_delay",
    "n_vq": 16,
    "audio_vocab_size": 1024,
    "audio_pad_code": 1024,
    "pad_token_id": 151643,
    "im_start_token_id": 151644,
    "im_end_token_id": 151645,
    "audio_start_token_id": 151652,
    "audio_end_token_id": 151653,
    "audio_user_slot_token_id": 151654,
    "audio_assistant_gen_slot_token_id": 151656,
    "audio_assistant_delay_slot_token_id": 151662,
    "sampling_rate": 24000,
    "language_config": {
        "vocab_size": 155648,
        "hidden_size": 2048,
        "num_hidden_layers": 28,
        "intermediate_size": 6144,
        "num_attention_heads": 16,
        "num_key_value_heads": 8,
        "head_dim": 128,
        "max_position_embeddings": 40960,
    },
}
_BLOCK_ROWS = 512  # of a large matrix, after which its random rows are the same again


def random_tensors(expected: Iterable[Expected], storage: StorageType) -> dict[str, StoredTensor]:
    """Normal values of a trained model's size: 0.02 for matrices, about 1 for gains."""
    rng = np.random.default_rng(0)
    tensors = {}
    for item in expected:
        values = rng.standard_normal(item.shape, np.float32) * np.float32(0.02)
        if item.name.endswith((".scale", "norm1.weight", "norm2.weight", "original0")) or (
            ".ln_" in item.name and item.name.endswith("weight")
        ):
            values += 1
        kept = StorageType.F32 if len(item.shape) != 2 else storage
        tensors[item.name] = from_float32(item.name, values, kept)
    return tensors


def random_nano(
    backend: Backend, storage: StorageType, config: Mapping[str, object] = NANO_CONFIG
) -> NanoModel:
    tensors = random_tensors(expected_tensors(parse_config(config)), storage)
    return NanoModel(config, tensors, backend)


def random_voice_generator(
    backend: Backend, storage: StorageType, config: Mapping[str, object] = VOICE_GENERATOR_CONFIG
) -> DelayModel:
    """4.2 GB in bf16. Each matrix is a block of random rows, repeated: quickly made, all read."""
    rng = np.random.default_rng(0)
    tensors = {}
    for item in delay_tensors(parse_delay_config(config)):
        if len(item.shape) == 1:
            gains = 1 + rng.standard_normal(item.shape, np.float32) * np.float32(0.02)
            tensors[item.name] = from_float32(item.name, gains, StorageType.F32)
            continue
        rows, columns = item.shape
        values = rng.standard_normal((min(rows, _BLOCK_ROWS), columns), np.float32)
        block = from_float32(item.name, values * np.float32(0.02), storage)
        data = np.tile(block.data, (-(-rows // len(block.data)), 1))[:rows]
        tensors[item.name] = StoredTensor(item.name, item.shape, block.storage, data)
    return DelayModel(config, tensors, backend)


def random_codec(backend: Backend) -> MossAudioTokenizer:
    tensors = random_tensors(codec_tensors(parse_codec_config(CODEC_CONFIG)), StorageType.F32)
    return MossAudioTokenizer(CODEC_CONFIG, tensors, backend)
