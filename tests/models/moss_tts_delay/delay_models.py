"""Golden and random models of the delay family for the tests of the language model."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from mosstalk.checkpoint.checkpoint import Checkpoint, open_checkpoint
from mosstalk.checkpoint.storage import StorageType, StoredTensor, from_float32
from mosstalk.compute.backend import Backend
from mosstalk.models.moss_tts_delay.config import parse_config
from mosstalk.models.moss_tts_delay.model import DelayModel
from mosstalk.models.moss_tts_delay.session import DelaySession
from mosstalk.models.moss_tts_delay.weights import expected_tensors

Ints = NDArray[np.int32]
Tensors = Mapping[str, StoredTensor]


@dataclass(frozen=True)
class Golden:
    """A tiny checkpoint and what the original code computed with it."""

    checkpoint: Checkpoint
    arrays: Mapping[str, NDArray[Any]]

    def model(self, backend: Backend, storage: StorageType = StorageType.NATIVE) -> DelayModel:
        return DelayModel(self.checkpoint.config, self.checkpoint.tensors, backend, storage)

    def rows(self, key: str = "prompt") -> Ints:
        """The prompt `key`, [n, 1 + n_vq]."""
        rows: Ints = self.arrays[key][0].astype(np.int32)
        return rows


def load_golden(folder: Path, name: str) -> Golden:
    """Skips the test where the checkpoint is not among the golden files."""
    path = folder / "checkpoints" / name
    if not (path / "model.safetensors").exists():
        pytest.skip(f"{name} is not in {folder}")
    return _open_golden(folder, name)


@cache
def _open_golden(folder: Path, name: str) -> Golden:
    with np.load(folder / "reference" / f"{name}.npz") as arrays:
        return Golden(open_checkpoint(folder / "checkpoints" / name), dict(arrays))


def delay_config(
    hidden: int = 64, heads: int = 4, head_dim: int = 24, inner: int = 96, layers: int = 2
) -> dict[str, Any]:
    """A small config.json as transformers 5 writes it: 4 codebooks of 32 codes, two K/V heads."""
    return {
        "architectures": ["MossTTSDelayModel"],
        "model_type": "moss_tts_delay",
        "n_vq": 4,
        "audio_vocab_size": 32,
        "audio_pad_code": 32,
        "pad_token_id": 3,
        "im_start_token_id": 4,
        "im_end_token_id": 5,
        "audio_start_token_id": 6,
        "audio_end_token_id": 7,
        "audio_user_slot_token_id": 8,
        "audio_assistant_gen_slot_token_id": 9,
        "audio_assistant_delay_slot_token_id": 10,
        "sampling_rate": 24_000,
        "hidden_size": hidden,
        "vocab_size": 128,
        "language_config": {
            "model_type": "qwen3",
            "vocab_size": 128,
            "hidden_size": hidden,
            "num_hidden_layers": layers,
            "intermediate_size": inner,
            "num_attention_heads": heads,
            "num_key_value_heads": 2,
            "head_dim": head_dim,
            "hidden_act": "silu",
            "attention_bias": False,
            "layer_types": ["full_attention"] * layers,
            "rms_norm_eps": 1e-6,
            "rope_parameters": {"rope_theta": 1e6, "rope_type": "default"},
            "max_position_embeddings": 512,
            "sliding_window": None,
            "use_sliding_window": False,
        },
    }


def random_tensors(config: dict[str, Any], storage: StorageType = StorageType.F32) -> Tensors:
    """Weights away from 0 and 1, matrices stored as `storage`."""
    generator = np.random.default_rng(1)
    tensors = {}
    for item in expected_tensors(parse_config(config)):
        values = generator.standard_normal(item.shape).astype(np.float32)
        is_matrix = len(item.shape) == 2
        if "norm" in item.name:
            values = 1 + values * np.float32(0.1)
        elif "emb" not in item.name:
            values *= np.float32(2 / math.sqrt(item.shape[1]))
        kept = storage if is_matrix else StorageType.F32
        tensors[item.name] = from_float32(item.name, values, kept)
    return tensors


def random_rows(count: int, seed: int = 5) -> Ints:
    """Text rows, then rows of codes, then text again, as a prompt with a recording has."""
    generator = np.random.default_rng(seed)
    rows = np.full((count, 5), 32, np.int32)
    rows[:, 0] = generator.integers(11, 128, count)
    voiced = count // 3
    rows[voiced : 2 * voiced, 0] = 8
    rows[voiced : 2 * voiced, 1:] = generator.integers(0, 33, (voiced, 4))
    return rows


def started(model: DelayModel, rows: Ints, budget: int, **options: Any) -> DelaySession:
    """A session that has the prompt `rows` cached."""
    session = model.session(**options)
    session.begin_generation(budget)
    session.prefill(rows)
    return session


def likeliest_rows(session: DelaySession, model: DelayModel, count: int) -> Ints:
    """`count` rows whose every part is the likeliest: a run in which each row decides the next."""
    slots = (
        model.config.audio_assistant_gen_slot_token_id,
        model.config.audio_assistant_delay_slot_token_id,
    )
    rows = []
    for _ in range(count):
        codes = session.audio_logits().argmax(axis=1)
        row = np.array([slots[session.slot_logits().argmax()], *codes], np.int32)
        session.step(row)
        rows.append(row)
    return np.array(rows)
