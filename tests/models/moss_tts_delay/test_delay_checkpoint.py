"""Strictness: a config or tensors that this code does not understand fully are refused."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from delay_models import Golden, delay_config, load_golden, random_rows, random_tensors, started

from mosstalk.checkpoint.storage import StorageType, from_float32
from mosstalk.compute.cpu.backend import CpuBackend
from mosstalk.errors import CheckpointError
from mosstalk.models.moss_tts_delay.config import parse_config
from mosstalk.models.moss_tts_delay.model import DelayModel
from mosstalk.models.moss_tts_delay.weights import expected_tensors, load_weights

CHAT_IDS = ("pad_token_id", "im_start_token_id", "im_end_token_id")


@pytest.fixture
def config() -> dict[str, Any]:
    return delay_config()


@pytest.fixture
def tensors(config: dict[str, Any]) -> dict[str, Any]:
    return dict(random_tensors(config))


@pytest.fixture
def delay_small(golden_dir: Path) -> Golden:
    return load_golden(golden_dir, "delay_small")


def test_the_golden_config_is_read(delay_small: Golden) -> None:
    config = parse_config(delay_small.checkpoint.config)
    assert (config.n_vq, config.audio_vocab_size, config.audio_table_size) == (4, 32, 33)
    assert (config.hidden_size, config.num_hidden_layers, config.intermediate_size) == (64, 2, 160)
    assert (config.num_attention_heads, config.num_key_value_heads) == (4, 2)
    assert (config.head_dim, config.rms_norm_eps, config.rope_theta) == (32, 1e-6, 1e6)
    assert config.audio_assistant_delay_slot_token_id == 10


def test_a_flat_config_of_transformers_4_is_read(config: dict[str, Any]) -> None:
    qwen3 = config["language_config"]
    del qwen3["rope_parameters"], qwen3["layer_types"], config["vocab_size"]
    qwen3.update(rope_theta=500_000, rope_scaling=None, torch_dtype="bfloat16", top_k=50)
    config.update(torch_dtype="bfloat16", use_cache=True, temperature=1.0)
    assert parse_config(config).rope_theta == 500_000.0


def test_rope_theta_and_epsilon_are_qwen3s_where_they_are_not_given(
    config: dict[str, Any],
) -> None:
    del config["language_config"]["rope_parameters"], config["language_config"]["rms_norm_eps"]
    parsed = parse_config(config)
    assert (parsed.rope_theta, parsed.rms_norm_eps) == (1e6, 1e-6)


@pytest.mark.parametrize("absent", ["missing", "null"])
@pytest.mark.parametrize(
    ("special_ids", "wanted"),
    [
        ({"<|endoftext|>": 60, "<|im_start|>": 61, "<|im_end|>": 62}, (60, 61, 62)),
        ({"<|im_start|>": 151_700}, (151_643, 151_700, 151_645)),
        (None, (151_643, 151_644, 151_645)),
    ],
)
def test_chat_ids_that_a_config_leaves_out(
    config: dict[str, Any],
    absent: str,
    special_ids: Mapping[str, int] | None,
    wanted: tuple[int, ...],
) -> None:
    """The tokeniser's, or else those of the published checkpoints."""
    config["vocab_size"] = config["language_config"]["vocab_size"] = 155_648
    for key in CHAT_IDS:
        config[key] = None
        if absent == "missing":
            del config[key]
    parsed = parse_config(config, special_ids)
    assert tuple(getattr(parsed, key) for key in CHAT_IDS) == wanted


def test_chat_ids_of_the_config_come_before_the_tokenisers(config: dict[str, Any]) -> None:
    assert parse_config(config, {"<|im_end|>": 62}).im_end_token_id == 5


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"use_flux": True}, "unknown key 'use_flux'"),
        ({"model_type": "moss_tts_nano"}, "'model_type' is 'moss_tts_nano'"),
        ({"n_vq": "4"}, "'n_vq' is '4', not of type int"),
        ({"n_vq": 0}, "'n_vq' is 0, but must be at least 1"),
        ({"audio_pad_code": 31}, "audio_pad_code is 31, but the row after the 32 codes is 32"),
        ({"audio_pad_code": 33}, "audio_pad_code is 33"),
        ({"hidden_size": 65}, "'hidden_size' is 65"),
        ({"vocab_size": 127}, "'vocab_size' is 127"),
        ({"audio_start_token_id": 128}, "audio_start_token_id 128 is outside the vocabulary"),
        ({"im_end_token_id": -1}, "im_end_token_id -1 is outside the vocabulary of 128"),
        ({"audio_end_token_id": 6}, "audio_start_token_id and audio_end_token_id are both 6"),
        ({"language_config": None}, "'language_config' is missing or not an object"),
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
        ({"alibi": True}, "config.json, language_config: unknown key 'alibi'"),
        ({"model_type": "llama"}, "'model_type' is 'llama'"),
        ({"hidden_act": "gelu"}, "'hidden_act' is 'gelu'"),
        ({"attention_bias": True}, "'attention_bias' is True"),
        ({"use_sliding_window": True}, "'use_sliding_window' is True"),
        ({"sliding_window": 4096}, "'sliding_window' is 4096"),
        ({"layer_types": ["full_attention", "sliding_attention"]}, "'layer_types' is"),
        ({"rope_scaling": {"type": "yarn"}}, "'rope_scaling' is"),
        ({"rope_parameters": {"rope_theta": 1e6, "rope_type": "yarn"}}, "'rope_type' is 'yarn'"),
        ({"rope_parameters": {"rope_theta": 1e6, "factor": 4}}, "unknown key 'factor'"),
        ({"rope_theta": 10_000.0}, "'rope_theta' is 10000.0"),
        ({"num_key_value_heads": 3}, "4 attention heads do not divide among 3"),
        ({"head_dim": 15}, "head_dim 15 is not even"),
    ],
)
def test_backbone_contradictions_are_named(
    config: dict[str, Any], changes: dict[str, Any], named: str
) -> None:
    config["language_config"].update(changes)
    with pytest.raises(CheckpointError, match=named):
        parse_config(config)


@pytest.mark.parametrize(
    "key", ["n_vq", "audio_vocab_size", "audio_end_token_id", "sampling_rate", "language_config"]
)
def test_missing_keys_are_named(config: dict[str, Any], key: str) -> None:
    del config[key]
    with pytest.raises(CheckpointError, match=f"'{key}' is missing"):
        parse_config(config)


@pytest.mark.parametrize("key", ["head_dim", "num_key_value_heads", "max_position_embeddings"])
def test_missing_sizes_of_the_backbone_are_named(config: dict[str, Any], key: str) -> None:
    del config["language_config"][key]
    with pytest.raises(CheckpointError, match=f"language_config: '{key}' is missing"):
        parse_config(config)


def _load(config: dict[str, Any], tensors: dict[str, Any]) -> None:
    load_weights(parse_config(config), tensors, StorageType.NATIVE)


def test_missing_surplus_and_misshapen_tensors_are_named(
    config: dict[str, Any], tensors: dict[str, Any]
) -> None:
    del tensors["language_model.layers.1.self_attn.k_norm.weight"]
    tensors["emb_ext.4.weight"] = tensors["emb_ext.3.weight"]
    name = "lm_heads.2.weight"
    tensors[name] = from_float32(name, np.zeros((32, 64), np.float32), StorageType.F32)
    with pytest.raises(CheckpointError) as caught:
        _load(config, tensors)
    for part in (
        "1 tensor missing (language_model.layers.1.self_attn.k_norm.weight)",
        "1 tensor of another shape (lm_heads.2.weight is [32, 64], not [33, 64])",
        "1 tensor not part of the model (emb_ext.4.weight)",
    ):
        assert part in str(caught.value)


def _hidden_and_text_logits(config: dict[str, Any], tensors: dict[str, Any]) -> tuple[Any, Any]:
    session = started(DelayModel(config, tensors, CpuBackend(1)), random_rows(20), 20)
    return session.hidden, session.text_logits()


def test_names_with_a_level_between_are_accepted(
    config: dict[str, Any], tensors: dict[str, Any]
) -> None:
    renamed = {
        name.replace("language_model.", "language_model.model."): tensor
        for name, tensor in tensors.items()
    }
    assert renamed.keys() != tensors.keys()
    found, wanted = (_hidden_and_text_logits(config, held) for held in (renamed, tensors))
    assert all(np.array_equal(a, b) for a, b in zip(found, wanted, strict=True))


def test_a_text_head_that_is_not_there_is_the_embedding(
    config: dict[str, Any], tensors: dict[str, Any]
) -> None:
    """And one that is there is used, whatever tie_word_embeddings says."""
    config["tie_word_embeddings"] = True
    _, own = _hidden_and_text_logits(config, tensors)
    embedding = tensors["language_model.embed_tokens.weight"]
    del tensors["lm_heads.0.weight"]
    hidden, tied = _hidden_and_text_logits(config, tensors)
    assert np.allclose(tied, embedding.to_float32() @ hidden, atol=1e-4)
    assert not np.allclose(own, tied, atol=1)


@pytest.mark.parametrize("zero", [True, False])
def test_the_pads_row_counts_unless_it_is_zero(
    config: dict[str, Any], tensors: dict[str, Any], zero: bool
) -> None:
    """Against an embedding without codes: text rows, all of whose codes are the pad."""
    rows = random_rows(20)
    rows[:, 1:] = 32
    without = {}
    for q in range(4):
        name = f"emb_ext.{q}.weight"
        values = tensors[name].to_float32().copy()
        if zero:
            values[32] = 0
        tensors[name] = replace(tensors[name], data=values)
        without[name] = replace(tensors[name], data=np.zeros_like(values))
    found = started(DelayModel(config, tensors, CpuBackend(1)), rows, 20).hidden
    plain = started(DelayModel(config, {**tensors, **without}, CpuBackend(1)), rows, 20).hidden
    assert np.array_equal(found, plain) == zero


@pytest.mark.parametrize("storage", list(StorageType))
def test_only_matrices_are_packed(
    config: dict[str, Any], tensors: dict[str, Any], storage: StorageType
) -> None:
    weights = DelayModel(config, tensors, CpuBackend(1), storage).weights
    packed = StorageType.F32 if storage is StorageType.NATIVE else storage
    block = weights.blocks[0]
    for matrix in (
        *(block.q_proj, block.k_proj, block.v_proj, block.o_proj),
        *(block.gate_proj, block.up_proj, block.down_proj),
        *(weights.embed_tokens, weights.text_head, *weights.emb_ext, *weights.audio_heads),
    ):
        assert matrix.storage is packed
    vectors = (block.input_layernorm, block.post_attention_layernorm, block.q_norm, block.k_norm)
    assert all(tensor.storage is StorageType.F32 for tensor in (*vectors, weights.norm))


def test_stored_weights_are_used_where_they_lie(config: dict[str, Any]) -> None:
    """A checkpoint of 4 GB is not copied: each matrix is the checkpoint's own memory."""
    tensors = random_tensors(config, StorageType.BF16)
    weights = load_weights(parse_config(config), tensors, StorageType.NATIVE)
    own = {id(tensor) for tensor in tensors.values()}
    held = [weights.embed_tokens, weights.text_head, *weights.emb_ext, *weights.audio_heads]
    for block in weights.blocks:
        held += [getattr(block, name) for name in block.__dataclass_fields__]
    assert all(id(tensor) in own for tensor in held)


def test_tensors_of_the_real_size_are_those_of_the_original(golden_dir: Path) -> None:
    """Names and shapes of MOSS-VoiceGenerator, as the original classes make them: 343."""
    path = golden_dir / "lists" / "tensors_vg_real.txt"
    lines = (line.split(" ", 1) for line in path.read_text().splitlines())
    original = {name: tuple(map(int, shape.strip("[]").split(","))) for name, shape in lines}
    config = delay_config(hidden=2048, heads=16, head_dim=128, inner=6144, layers=28)
    config.update(n_vq=16, audio_vocab_size=1024, audio_pad_code=1024, vocab_size=155_648)
    config["language_config"].update(num_key_value_heads=8, vocab_size=155_648)
    expected = {item.name: item.shape for item in expected_tensors(parse_config(config))}
    assert expected == original
    assert len(expected) == 343
