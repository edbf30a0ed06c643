"""Golden and random MOSS-TTS-Nano models for the tests of the language model."""

import copy
import json
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
from mosstalk.compute.sampling import SamplingParams
from mosstalk.models.moss_tts_nano.config import parse_config
from mosstalk.models.moss_tts_nano.frame_decoder import FrameSampling
from mosstalk.models.moss_tts_nano.model import NanoModel
from mosstalk.models.moss_tts_nano.session import NanoSession
from mosstalk.models.moss_tts_nano.weights import expected_tensors

Ints = NDArray[np.int32]
Tensors = Mapping[str, StoredTensor]

GREEDY = SamplingParams(temperature=0)
# What the reference's own tools use (spec nano.md 3.8).
USUAL = FrameSampling(SamplingParams(top_k=50), SamplingParams(0.8, 25, 0.95, 1.2), seed=11)


@dataclass(frozen=True)
class Golden:
    """A tiny checkpoint and what the original code computed with it."""

    checkpoint: Checkpoint
    arrays: Mapping[str, NDArray[Any]]

    def model(self, backend: Backend, storage: StorageType = StorageType.NATIVE) -> NanoModel:
        return NanoModel(self.checkpoint.config, self.checkpoint.tensors, backend, storage)

    def rows(self, key: str = "prompt_rows") -> Ints:
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
    return Golden(open_checkpoint(folder / "checkpoints" / name), load_arrays(folder, name))


def load_arrays(folder: Path, name: str) -> Mapping[str, NDArray[Any]]:
    with np.load(folder / "reference" / f"{name}.npz") as arrays:
        return dict(arrays)


def nano_config(folder: Path, hidden: int = 64, heads: int = 4, inner: int = 160) -> dict[str, Any]:
    """The config.json of nano_a with other sizes."""
    text = (folder / "checkpoints" / "nano_a" / "config.json").read_text()
    config: dict[str, Any] = copy.deepcopy(json.loads(text))
    config["hidden_size"] = hidden
    config["gpt2_config"].update(n_embd=hidden, n_head=heads, n_inner=inner)
    return config


def random_tensors(config: dict[str, Any], storage: StorageType = StorageType.F32) -> Tensors:
    """Weights of every kind away from 0 and 1, matrices stored as `storage`."""
    generator = np.random.default_rng(1)
    tensors = {}
    for item in expected_tensors(parse_config(config)):
        values = generator.standard_normal(item.shape).astype(np.float32)
        is_matrix = len(item.shape) == 2
        values *= np.float32(1 / math.sqrt(item.shape[1]) if is_matrix else 0.1)
        if "ln_" in item.name and item.name.endswith("weight"):
            values += 1
        if "embeddings" in item.name or "wte" in item.name:
            values *= 4
        kept = storage if is_matrix else StorageType.F32
        tensors[item.name] = from_float32(item.name, values, kept)
    return tensors


def random_rows(count: int, codes: int = 32, codebooks: int = 4, seed: int = 5) -> Ints:
    """Text rows, then rows of codes, as a prompt with a voice has."""
    generator = np.random.default_rng(seed)
    rows = np.full((count, 1 + codebooks), codes, np.int32)
    rows[:, 0] = generator.integers(10, 100, count)
    voiced = count // 3
    rows[voiced : 2 * voiced, 0] = 8
    rows[voiced : 2 * voiced, 1:] = generator.integers(0, codes, (voiced, codebooks))
    return rows


def started(model: NanoModel, rows: Ints, budget: int, **options: Any) -> NanoSession:
    """A session that has the prompt `rows` cached."""
    session = model.session(**options)
    session.begin_generation(budget)
    session.prefill(rows)
    return session


def frames_of(session: NanoSession, sampling: FrameSampling, limit: int) -> tuple[Ints, bool]:
    """Up to `limit` frames [frames, n_vq], and whether the model stopped by itself."""
    frames: list[Ints] = []
    while len(frames) < limit:
        codes = session.next_frame(sampling)
        if codes is None:
            return _stack(frames, session), True
        frames.append(codes)
    return _stack(frames, session), False


def _stack(frames: list[Ints], session: NanoSession) -> Ints:
    width = len(session.state.spec.seen_sizes)
    return np.array(frames, np.int32).reshape(-1, width)
