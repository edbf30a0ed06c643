"""Strictness: a config or tensors that this code does not understand fully are refused."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from nano_models import Golden, Tensors, nano_config, random_tensors

from mosstalk.checkpoint.mapping import matches_any
from mosstalk.checkpoint.storage import StorageType, from_float32
from mosstalk.compute.cpu.backend import CpuBackend
from mosstalk.errors import CheckpointError
from mosstalk.models.moss_tts_nano.config import parse_config
from mosstalk.models.moss_tts_nano.model import NanoModel
from mosstalk.models.moss_tts_nano.weights import (
    IGNORABLE_TENSORS,
    expected_tensors,
    load_weights,
)
from mosstalk.models.registry import family_for


@pytest.fixture
def config(golden_dir: Path) -> dict[str, Any]:
    return nano_config(golden_dir)


@pytest.fixture
def tensors(config: dict[str, Any]) -> dict[str, Any]:
    return dict(random_tensors(config))


def test_the_golden_config_is_read(nano_a: Golden) -> None:
    config = parse_config(nano_a.checkpoint.config)
    assert (config.hidden_size, config.n_layer, config.n_head, config.n_inner) == (64, 2, 4, 256)
    assert config.audio_codebook_sizes == (32,) * 4 and config.head_dim == 16
    assert config.needs_voice


def test_inner_size_is_four_times_the_width_where_it_is_not_given(config: dict[str, Any]) -> None:
    for absent in (lambda: config["gpt2_config"].update(n_inner=None), _drop(config, "n_inner")):
        absent()
        assert parse_config(config).n_inner == 256


def _drop(config: dict[str, Any], key: str) -> Callable[[], None]:
    return lambda: config["gpt2_config"].pop(key)


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"use_flux": True}, "unknown key 'use_flux'"),
        ({"model_type": "moss_tts_delay"}, "'model_type' is 'moss_tts_delay'"),
        ({"model_architecture": "local"}, "'model_architecture' is 'local'"),
        ({"tie_word_embeddings": False}, "'tie_word_embeddings' is False"),
        ({"audio_tokenizer_type": "encodec"}, "'audio_tokenizer_type' is 'encodec'"),
        ({"n_vq": 5}, "4 codebook sizes for n_vq 5"),
        ({"n_vq": "4"}, "'n_vq' is '4', not of type int"),
        ({"n_vq": 0}, "'n_vq' is 0, but must be at least 1"),
        ({"n_vq": True}, "'n_vq' is True, not of type int"),
        ({"audio_codebook_sizes": 32}, "'audio_codebook_sizes' is not a list of sizes"),
        ({"audio_codebook_sizes": [32, 32, 32, 0]}, "'audio_codebook_sizes' is not a list"),
        ({"audio_pad_token_id": 31, "audio_vocab_size": 32}, "'audio_vocab_size' is 32|valid code"),
        ({"audio_vocab_size": 40}, "'audio_vocab_size' is 40"),
        ({"hidden_size": 65}, "'n_embd' is 64"),
        ({"vocab_size": 127}, "'vocab_size' is 128"),
        ({"gpt2_config": None}, "'gpt2_config' is missing or not an object"),
    ],
)
def test_config_contradictions_are_named(
    config: dict[str, Any], changes: dict[str, Any], named: str
) -> None:
    with pytest.raises(CheckpointError, match=named):
        parse_config({**config, **changes})


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"alibi": True}, "config.json, gpt2_config: unknown key 'alibi'"),
        ({"activation_function": "relu"}, "'activation_function' is 'relu'"),
        ({"position_embedding_type": "absolute"}, "'position_embedding_type' is 'absolute'"),
        ({"scale_attn_weights": False}, "'scale_attn_weights' is False"),
        ({"scale_attn_by_inverse_layer_idx": True}, "'scale_attn_by_inverse_layer_idx' is True"),
        ({"n_head": 5}, "64 does not divide into 5 heads"),
        ({"n_head": 64}, "64 does not divide into 64 heads of even size"),
        ({"rope_base": "10000"}, "'rope_base' is '10000'"),
    ],
)
def test_backbone_contradictions_are_named(
    config: dict[str, Any], changes: dict[str, Any], named: str
) -> None:
    config["gpt2_config"].update(changes)
    with pytest.raises(CheckpointError, match=named):
        parse_config(config)


@pytest.mark.parametrize("key", ["n_vq", "hidden_size", "audio_end_token_id", "gpt2_config"])
def test_missing_keys_are_named(config: dict[str, Any], key: str) -> None:
    del config[key]
    with pytest.raises(CheckpointError, match=f"'{key}' is missing"):
        parse_config(config)


def test_an_unknown_family_is_refused() -> None:
    with pytest.raises(CheckpointError, match="'llama'; known are moss_tts_nano"):
        family_for({"model_type": "llama"})
    assert family_for({"model_type": "moss_tts_nano"}).name == "MOSS-TTS-Nano"


def _load(config: dict[str, Any], tensors: Tensors) -> None:
    load_weights(parse_config(config), tensors, StorageType.NATIVE)


def test_a_missing_tensor_is_named(config: dict[str, Any], tensors: dict[str, Any]) -> None:
    del tensors["transformer.h.1.attn.c_proj.bias"]
    with pytest.raises(CheckpointError, match=r"1 tensor missing \(transformer.h.1.attn.c_proj.b"):
        _load(config, tensors)


def test_a_surplus_tensor_is_named(config: dict[str, Any], tensors: dict[str, Any]) -> None:
    tensors["transformer.wpe.weight"] = tensors["transformer.wte.weight"]
    with pytest.raises(CheckpointError, match=r"not part of the model \(transformer.wpe.weight\)"):
        _load(config, tensors)


def test_a_tensor_of_another_shape_is_named(
    config: dict[str, Any], tensors: dict[str, Any]
) -> None:
    name = "local_transformer.h.0.mlp.fc_in.weight"
    tensors[name] = from_float32(name, np.zeros((64, 160), np.float32), StorageType.F32)
    with pytest.raises(CheckpointError, match=rf"{name} is \[64, 160\], not \[160, 64\]"):
        _load(config, tensors)


def test_tied_heads_are_ignored(config: dict[str, Any], tensors: dict[str, Any]) -> None:
    wte = tensors["transformer.wte.weight"]
    for name in ("text_lm_head.weight", "audio_lm_heads.3.weight", "local_transformer.wte.weight"):
        tensors[name] = replace(wte, name=name)
    _load(config, tensors)


def test_tensors_of_the_real_size_are_those_of_the_original(golden_dir: Path) -> None:
    """Names and shapes of the published checkpoint, as the original classes make them."""
    path = golden_dir / "reference" / "tensors_nano_real.json"
    original = {name: tuple(shape) for name, shape, _ in json.loads(path.read_text())}
    config = nano_config(golden_dir, hidden=768, heads=12, inner=3072)
    config["gpt2_config"].update(n_layer=12, vocab_size=16_384)
    sizes = {"audio_codebook_sizes": [1024] * 16, "audio_vocab_size": 1024, "n_vq": 16}
    config.update(sizes, audio_pad_token_id=1024, vocab_size=16_384)
    expected = {item.name: item.shape for item in expected_tensors(parse_config(config))}
    ignored = {name for name in original if matches_any(name, IGNORABLE_TENSORS)}
    assert expected == {name: original[name] for name in original.keys() - ignored}


@pytest.mark.parametrize("storage", list(StorageType))
def test_only_matrices_are_packed(
    config: dict[str, Any], tensors: dict[str, Any], storage: StorageType
) -> None:
    model = NanoModel(config, tensors, CpuBackend(1), storage)
    block = model.weights.global_stack.blocks[0]
    packed = StorageType.F32 if storage is StorageType.NATIVE else storage
    for matrix, vector in (block.c_attn, block.c_proj, block.fc_in, block.fc_out):
        assert (matrix.storage, vector.storage) == (packed, StorageType.F32)
    assert all(tensor.storage is StorageType.F32 for tensor in (*block.ln_1, *block.ln_2))
    assert model.weights.wte.storage is packed
