"""config.json of MOSS-TTS-Nano (spec nano.md 1.2)."""

from collections.abc import Mapping
from dataclasses import dataclass

from mosstalk.checkpoint.strict_config import TRANSFORMERS_KEYS, ConfigReader
from mosstalk.compute.sampling import SamplingParams
from mosstalk.errors import CheckpointError

_UNUSED = (
    "architectures", "attn_implementation", "auto_map", "dtype", "torch_dtype",
    "initializer_range", "local_transformer_attn_implementation", "transformers_version",
    "tokenizer_use_fast", "audio_tokenizer_pretrained_name_or_path",
    "bos_token_id", "eos_token_id", "_name_or_path",
)  # fmt: skip
_UNUSED_GPT2 = (
    "_name_or_path", "architectures", "dtype", "torch_dtype", "n_ctx", "n_positions",
    "attn_pdrop", "embd_pdrop", "resid_pdrop", "initializer_range", "bos_token_id",
    "eos_token_id", "pad_token_id", "summary_activation", "summary_first_dropout",
    "summary_proj_to_labels", "summary_type", "summary_use_proj", "use_cache",
    "transformers_version", "reorder_and_upcast_attn",
)  # fmt: skip

_TOKEN_IDS = (
    "im_start_token_id", "im_end_token_id", "audio_start_token_id", "audio_end_token_id",
    "audio_user_slot_token_id", "audio_assistant_slot_token_id",
)  # fmt: skip

_REFERENCE_SAMPLING = SamplingParams(temperature=0.8, top_k=25, top_p=0.95, repetition_penalty=1.2)


@dataclass(frozen=True, slots=True)
class NanoConfig:
    """Sizes and token ids of one checkpoint. Names are those of config.json.

    `needs_voice` and `audio_sampling` are keys of ours, with which a checkpoint can say that it
    speaks without a voice and how its codes are best drawn. The published checkpoints have
    neither: they clone, and are near silent without a voice.
    """

    n_vq: int  # codebooks
    audio_codebook_sizes: tuple[int, ...]
    audio_pad_token_id: int  # a code that stands for "none"
    vocab_size: int
    hidden_size: int
    n_layer: int
    n_head: int
    n_inner: int
    layer_norm_epsilon: float
    rope_base: float
    local_transformer_layers: int
    max_position_embeddings: int
    pad_token_id: int
    im_start_token_id: int
    im_end_token_id: int
    audio_start_token_id: int
    audio_end_token_id: int  # stop
    audio_user_slot_token_id: int  # text id of a reference row
    audio_assistant_slot_token_id: int  # text id of a generated row: continue
    audio_tokenizer_sample_rate: int
    needs_voice: bool
    audio_sampling: SamplingParams  # of the codes, where a request says nothing else

    @property
    def head_dim(self) -> int:
        return self.hidden_size // self.n_head


def parse_config(values: Mapping[str, object]) -> NanoConfig:
    """Raises CheckpointError for a missing, unknown or contradictory key."""
    top = ConfigReader(values, "config.json")
    top.require("model_type", "moss_tts_nano")
    top.require("model_architecture", "global_local_transformer")
    top.require("audio_tokenizer_type", "moss-audio-tokenizer-nano", "moss-audio-tokenizer")
    top.require("tie_word_embeddings", True)
    top.ignore(*_UNUSED, *TRANSFORMERS_KEYS, "audio_codebook_sizes")
    gpt2 = top.child("gpt2_config")
    gpt2.require("model_type", "gpt2")
    gpt2.require("activation_function", "gelu_new")
    gpt2.require("position_embedding_type", "rope")
    gpt2.require("scale_attn_weights", True)
    gpt2.require("scale_attn_by_inverse_layer_idx", False)
    gpt2.require("add_cross_attention", False)
    gpt2.require("tie_word_embeddings", True)
    gpt2.ignore(*_UNUSED_GPT2, *TRANSFORMERS_KEYS)
    sizes = values.get("audio_codebook_sizes")
    if not isinstance(sizes, list) or not all(type(size) is int and size > 0 for size in sizes):
        raise CheckpointError("config.json: 'audio_codebook_sizes' is not a list of sizes")
    hidden_size = top.size("hidden_size")
    config = NanoConfig(
        n_vq=top.size("n_vq"),
        audio_codebook_sizes=tuple(sizes),
        audio_pad_token_id=top.get("audio_pad_token_id", int),
        vocab_size=top.size("vocab_size"),
        hidden_size=hidden_size,
        n_layer=gpt2.size("n_layer"),
        n_head=gpt2.size("n_head"),
        n_inner=gpt2.size("n_inner") if gpt2.has("n_inner") else 4 * hidden_size,
        layer_norm_epsilon=gpt2.get("layer_norm_epsilon", float),
        rope_base=gpt2.get("rope_base", float),
        local_transformer_layers=top.size("local_transformer_layers"),
        max_position_embeddings=top.size("max_position_embeddings"),
        pad_token_id=top.get("pad_token_id", int),
        im_start_token_id=top.get("im_start_token_id", int),
        im_end_token_id=top.get("im_end_token_id", int),
        audio_start_token_id=top.get("audio_start_token_id", int),
        audio_end_token_id=top.get("audio_end_token_id", int),
        audio_user_slot_token_id=top.get("audio_user_slot_token_id", int),
        audio_assistant_slot_token_id=top.get("audio_assistant_slot_token_id", int),
        audio_tokenizer_sample_rate=top.size("audio_tokenizer_sample_rate"),
        needs_voice=top.get("needs_voice", bool, True),
        audio_sampling=_audio_sampling(top),
    )
    gpt2.require("n_embd", hidden_size)
    gpt2.require("vocab_size", config.vocab_size)
    gpt2.ignore("n_inner")
    top.require("audio_vocab_size", *range(max(sizes, default=0), config.audio_pad_token_id + 1))
    gpt2.finish()
    top.finish()
    _check(config)
    return config


def _audio_sampling(top: ConfigReader) -> SamplingParams:
    """`audio_sampling`, or what the reference's own tools use (spec 3.8)."""
    if not top.has("audio_sampling"):
        top.ignore("audio_sampling")
        return _REFERENCE_SAMPLING
    given = top.child("audio_sampling")
    sampling = SamplingParams(
        temperature=given.get("temperature", float),
        top_k=given.get("top_k", int),
        top_p=given.get("top_p", float),
        repetition_penalty=given.get("repetition_penalty", float),
    )
    given.finish()
    return sampling


def _check(config: NanoConfig) -> None:
    """Rules between keys (spec 1.2)."""
    if len(config.audio_codebook_sizes) != config.n_vq:
        raise CheckpointError(
            f"config.json: {len(config.audio_codebook_sizes)} codebook sizes for n_vq {config.n_vq}"
        )
    if config.audio_pad_token_id < max(config.audio_codebook_sizes):
        raise CheckpointError(
            f"config.json: audio_pad_token_id {config.audio_pad_token_id} is a valid code"
        )
    for name in _TOKEN_IDS:
        if not 0 <= getattr(config, name) < config.vocab_size:
            raise CheckpointError(
                f"config.json: {name} {getattr(config, name)} is outside the vocabulary of "
                f"{config.vocab_size}"
            )
    if config.hidden_size % config.n_head or config.head_dim % 2:
        raise CheckpointError(
            f"config.json: hidden_size {config.hidden_size} does not divide into "
            f"{config.n_head} heads of even size"
        )
