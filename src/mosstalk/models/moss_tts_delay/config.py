"""config.json of the MOSS-TTS delay family (spec voicegen.md 1.3)."""

from collections.abc import Mapping
from dataclasses import dataclass

from mosstalk.checkpoint.strict_config import TRANSFORMERS_KEYS, ConfigReader
from mosstalk.errors import CheckpointError

_UNUSED = (
    "architectures", "attn_implementation", "auto_map", "bos_token_id", "dtype", "eos_token_id",
    "initializer_range", "tie_word_embeddings", "torch_dtype",
    "transformers_version", "use_cache", "_attn_implementation", "_name_or_path",
)  # fmt: skip
# tie_word_embeddings: the text head is a tensor of its own, or else the embedding (spec 2.2).
_UNUSED_QWEN3 = (
    "architectures", "attention_dropout", "bos_token_id", "dtype", "eos_token_id",
    "initializer_range", "max_window_layers", "pad_token_id", "tie_word_embeddings",
    "torch_dtype", "transformers_version", "use_cache", "_attn_implementation", "_name_or_path",
)  # fmt: skip

# Ids that some checkpoints leave to the tokeniser: its token, and the id in the published ones.
_CHAT_TOKENS = {
    "pad_token_id": ("<|endoftext|>", 151643),
    "im_start_token_id": ("<|im_start|>", 151644),
    "im_end_token_id": ("<|im_end|>", 151645),
}
_ROPE_THETA, _RMS_NORM_EPS = 1e6, 1e-6  # of Qwen3, where a config says nothing


@dataclass(frozen=True, slots=True)
class DelayConfig:
    """Sizes and token ids of one checkpoint. Names are those of config.json.

    Sizes from `vocab_size` on are those of `language_config`, the Qwen3 backbone.
    """

    n_vq: int  # codebooks
    audio_vocab_size: int  # codes of each codebook
    audio_pad_code: int  # a code that stands for "none"; the row after the last code's
    pad_token_id: int
    im_start_token_id: int
    im_end_token_id: int  # stop
    audio_start_token_id: int
    audio_end_token_id: int
    audio_user_slot_token_id: int  # text id of a reference row
    audio_assistant_gen_slot_token_id: int  # text id of a generated row
    audio_assistant_delay_slot_token_id: int  # text id of a row that drains the staircase
    sampling_rate: int  # of the codec, in Hz
    vocab_size: int
    hidden_size: int
    num_hidden_layers: int
    intermediate_size: int
    num_attention_heads: int
    num_key_value_heads: int
    head_dim: int
    rms_norm_eps: float
    rope_theta: float
    max_position_embeddings: int

    @property
    def audio_table_size(self) -> int:
        """Rows of each codebook's embedding and head: its codes and the pad."""
        return self.audio_vocab_size + 1


def parse_config(
    values: Mapping[str, object], special_ids: Mapping[str, int] | None = None
) -> DelayConfig:
    """`special_ids`: the tokeniser's special tokens by their text.

    They stand for `pad_token_id`, `im_start_token_id` and `im_end_token_id` where the config has
    none; where the tokeniser has none either, the ids of the published checkpoints do. Raises
    CheckpointError for a missing, unknown or contradictory key.
    """
    top = ConfigReader(values, "config.json")
    top.require("model_type", "moss_tts_delay")
    top.ignore(*_UNUSED, *TRANSFORMERS_KEYS)
    qwen3 = top.child("language_config")
    qwen3.require("model_type", "qwen3")
    qwen3.require("hidden_act", "silu")
    qwen3.require("attention_bias", False)
    qwen3.require("use_sliding_window", False)
    qwen3.require("sliding_window", None)
    qwen3.require("rope_scaling", None)
    qwen3.require("add_cross_attention", False)
    qwen3.ignore(*_UNUSED_QWEN3, *TRANSFORMERS_KEYS)
    chat_ids = {key: _chat_id(top, key, special_ids or {}) for key in _CHAT_TOKENS}
    config = DelayConfig(
        n_vq=top.size("n_vq"),
        audio_vocab_size=top.size("audio_vocab_size"),
        audio_pad_code=top.get("audio_pad_code", int),
        **chat_ids,
        audio_start_token_id=top.get("audio_start_token_id", int),
        audio_end_token_id=top.get("audio_end_token_id", int),
        audio_user_slot_token_id=top.get("audio_user_slot_token_id", int),
        audio_assistant_gen_slot_token_id=top.get("audio_assistant_gen_slot_token_id", int),
        audio_assistant_delay_slot_token_id=top.get("audio_assistant_delay_slot_token_id", int),
        sampling_rate=top.size("sampling_rate"),
        vocab_size=qwen3.size("vocab_size"),
        hidden_size=qwen3.size("hidden_size"),
        num_hidden_layers=qwen3.size("num_hidden_layers"),
        intermediate_size=qwen3.size("intermediate_size"),
        num_attention_heads=qwen3.size("num_attention_heads"),
        num_key_value_heads=qwen3.size("num_key_value_heads"),
        head_dim=qwen3.size("head_dim"),
        rms_norm_eps=qwen3.get("rms_norm_eps", float, _RMS_NORM_EPS),
        rope_theta=_rope_theta(qwen3),
        max_position_embeddings=qwen3.size("max_position_embeddings"),
    )
    qwen3.require("layer_types", ["full_attention"] * config.num_hidden_layers, None)
    top.require("hidden_size", config.hidden_size)
    top.require("vocab_size", config.vocab_size)
    qwen3.finish()
    top.finish()
    _check(config)
    return config


def _chat_id(top: ConfigReader, key: str, special_ids: Mapping[str, int]) -> int:
    if top.has(key):
        return top.get(key, int)
    top.ignore(key)
    token, published = _CHAT_TOKENS[key]
    return special_ids.get(token, published)


def _rope_theta(qwen3: ConfigReader) -> float:
    """`rope_theta`, flat or in `rope_parameters` as transformers 5 writes it."""
    if not qwen3.has("rope_parameters"):
        qwen3.ignore("rope_parameters")
        return qwen3.get("rope_theta", float, _ROPE_THETA)
    nested = qwen3.child("rope_parameters")
    nested.require("rope_type", "default")
    theta = nested.get("rope_theta", float)
    nested.finish()
    qwen3.require("rope_theta", theta)
    return theta


def _check(config: DelayConfig) -> None:
    """Rules between keys (spec voicegen.md 1.3, 2.1)."""
    if config.audio_pad_code != config.audio_vocab_size:
        raise CheckpointError(
            f"config.json: audio_pad_code is {config.audio_pad_code}, but the row after the "
            f"{config.audio_vocab_size} codes is {config.audio_vocab_size}"
        )
    names = [name for name in DelayConfig.__dataclass_fields__ if name.endswith("_token_id")]
    owners: dict[int, str] = {}
    for name in names:
        token_id = getattr(config, name)
        if not 0 <= token_id < config.vocab_size:
            raise CheckpointError(
                f"config.json: {name} {token_id} is outside the vocabulary of {config.vocab_size}"
            )
        if token_id in owners:
            raise CheckpointError(f"config.json: {owners[token_id]} and {name} are both {token_id}")
        owners[token_id] = name
    if config.num_attention_heads % config.num_key_value_heads:
        raise CheckpointError(
            f"config.json: {config.num_attention_heads} attention heads do not divide among "
            f"{config.num_key_value_heads} key and value heads"
        )
    if config.head_dim % 2:
        raise CheckpointError(f"config.json: head_dim {config.head_dim} is not even")
