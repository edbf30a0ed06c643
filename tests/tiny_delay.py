"""A model of the delay family of random weights, which often begins with text instead of speech.

All its embeddings lie near one direction, so that all hidden vectors do: the rows of its text head
along it make an id about as likely as is asked.
"""

import math
from pathlib import Path
from typing import Any

import numpy as np
from byte_bpe import byte_json
from numpy.typing import NDArray
from tiny_model import random_tensors, stage, write_checkpoint

from mosstalk.codec.moss_audio_tokenizer.config import parse_config as parse_codec_config
from mosstalk.codec.moss_audio_tokenizer.weights import expected_tensors as codec_tensors
from mosstalk.models.moss_tts_delay.config import parse_config
from mosstalk.models.moss_tts_delay.weights import expected_tensors

CODES = 64
VOCABULARY = 272  # 256 bytes and the added tokens
START, END, USER_SLOT, GEN_SLOT, DELAY_SLOT, PAD, IM_START, IM_END = range(264, 272)
_ALIGNED = 0.85  # cosine of hidden vectors with the common direction, about


def write_tiny_delay(
    folder: Path, *, n_vq: int = 4, hidden: int = 32, start_logit: float = 6.0
) -> Path:
    """A model's directory with its codec (24 kHz mono) and tokeniser.

    With `start_logit` 6 about half of the runs begin with speech, which lasts some ten frames.
    `n_vq` of 32 makes it a MOSS-TTS, `hidden` of 4096 a MOSS-TTSD, else it is a VoiceGenerator.
    """
    config = _config(n_vq, hidden)
    logits = {START: start_logit, GEN_SLOT: 4.0, DELAY_SLOT: 0.0, IM_END: 14.0}
    codec_config = _codec_config(n_vq)
    write_checkpoint(
        folder,
        config,
        _tensors(config, logits),
        codec_config,
        _codec_tensors(codec_config),
        tokenizer_json=byte_json(),
    )
    return folder


def _config(n_vq: int, hidden: int) -> dict[str, Any]:
    return {
        "model_type": "moss_tts_delay",
        "n_vq": n_vq,
        "audio_vocab_size": CODES,
        "audio_pad_code": CODES,
        "pad_token_id": PAD,
        "im_start_token_id": IM_START,
        "im_end_token_id": IM_END,
        "audio_start_token_id": START,
        "audio_end_token_id": END,
        "audio_user_slot_token_id": USER_SLOT,
        "audio_assistant_gen_slot_token_id": GEN_SLOT,
        "audio_assistant_delay_slot_token_id": DELAY_SLOT,
        "sampling_rate": 24_000,
        "language_config": {
            "model_type": "qwen3",
            "vocab_size": VOCABULARY,
            "hidden_size": hidden,
            "num_hidden_layers": 2 if hidden < 4096 else 1,
            "intermediate_size": 32,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "head_dim": 8,
            "hidden_act": "silu",
            "rms_norm_eps": 1e-6,
            "rope_theta": 1e6,
            "max_position_embeddings": 2048,
        },
    }


def _tensors(config: dict[str, Any], logits: dict[int, float]) -> dict[str, NDArray[np.float32]]:
    generator = np.random.default_rng(1)
    hidden = config["language_config"]["hidden_size"]
    way = generator.standard_normal(hidden).astype(np.float32)
    way /= np.linalg.norm(way)
    tensors = {}
    for item in expected_tensors(parse_config(config)):
        values = generator.standard_normal(item.shape).astype(np.float32)
        if "norm" in item.name:
            values = 1 + values * np.float32(0.05)
        else:
            values *= np.float32(0.5 / math.sqrt(item.shape[1]))
        if "embed_tokens" in item.name:
            values += 2 * way
        if item.name == "lm_heads.0.weight":
            for token_id, logit in logits.items():
                values[token_id] = way * np.float32(logit / (_ALIGNED * math.sqrt(hidden)))
        elif item.name.startswith("lm_heads"):
            values *= 4
        tensors[item.name] = values
    return tensors


def _codec_config(n_vq: int) -> dict[str, object]:
    patches = [{"module_type": "PatchedPretransform", "patch_size": size} for size in (240, 8)]
    return {
        "model_type": "moss-audio-tokenizer",
        "sampling_rate": 24_000,
        "downsample_rate": 1_920,
        "encoder_kwargs": [patches[0], stage(240, 24), patches[1], stage(192, 32)],
        "decoder_kwargs": [stage(32, 192), patches[1], stage(24, 240), patches[0]],
        "quantizer_type": "rlfq",
        "quantizer_kwargs": {
            "quantizer_type": "rlfq",
            "input_dim": 32,
            "output_dim": 32,
            "rvq_dim": 32,
            "num_quantizers": n_vq,
            "codebook_size": CODES,
            "codebook_dim": 8,
        },
    }


def _codec_tensors(config: dict[str, object]) -> dict[str, NDArray[np.float32]]:
    codec = random_tensors(codec_tensors(parse_codec_config(config)), seed=2)
    codec["decoder.2.output_proj.weight"] *= np.float32(0.1)  # near the range of audio
    return codec
