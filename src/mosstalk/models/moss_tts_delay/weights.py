"""The tensors of the delay family (spec voicegen.md 2) and how they are taken from a checkpoint."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from mosstalk.checkpoint.mapping import Expected, take
from mosstalk.checkpoint.storage import StorageType, StoredTensor
from mosstalk.checkpoint.weights import as_weight
from mosstalk.models.moss_tts_delay.config import DelayConfig

IGNORABLE_TENSORS = ("*.rotary_emb.inv_freq",)

_TEXT_HEAD = "lm_heads.0.weight"
_EMBEDDING = "language_model.embed_tokens.weight"


@dataclass(frozen=True, slots=True)
class BlockWeights:
    """One Qwen3 block. Matrices are [out, in]; there are no biases."""

    input_layernorm: StoredTensor
    q_proj: StoredTensor
    k_proj: StoredTensor
    v_proj: StoredTensor
    q_norm: StoredTensor  # [head_dim], shared by the heads
    k_norm: StoredTensor
    o_proj: StoredTensor
    post_attention_layernorm: StoredTensor
    gate_proj: StoredTensor
    up_proj: StoredTensor
    down_proj: StoredTensor


@dataclass(frozen=True, slots=True)
class DelayWeights:
    """Each matrix lies where the checkpoint has it: none is joined with another.

    The pad has a row in each codebook's embedding, which counts as the codes' do; in published
    checkpoints it is zero (spec 2.2).
    """

    embed_tokens: StoredTensor  # [vocab_size, hidden]
    emb_ext: tuple[StoredTensor, ...]  # of each codebook, [audio_table_size, hidden]
    blocks: tuple[BlockWeights, ...]
    norm: StoredTensor
    text_head: StoredTensor  # [vocab_size, hidden]; embed_tokens where the checkpoint has no other
    audio_heads: tuple[StoredTensor, ...]  # of each codebook, [audio_table_size, hidden]


def expected_tensors(config: DelayConfig, *, text_head: bool = True) -> Iterator[Expected]:
    """What a checkpoint holds, with or without a text head of its own."""
    hidden, vocab = config.hidden_size, config.vocab_size
    yield _backbone("embed_tokens.weight", vocab, hidden)
    for i in range(config.num_hidden_layers):
        for name, shape in _block_shapes(config).items():
            yield _backbone(f"layers.{i}.{name}.weight", *shape)
    yield _backbone("norm.weight", hidden)
    if text_head:
        yield Expected(_TEXT_HEAD, (vocab, hidden))
    for q in range(config.n_vq):
        yield Expected(f"emb_ext.{q}.weight", (config.audio_table_size, hidden))
        yield Expected(f"lm_heads.{q + 1}.weight", (config.audio_table_size, hidden))


def load_weights(
    config: DelayConfig, tensors: Mapping[str, StoredTensor], storage: StorageType
) -> DelayWeights:
    """Raises CheckpointError that names what is missing, left over or of another shape."""
    expected = expected_tensors(config, text_head=_TEXT_HEAD in tensors)
    found = take(tensors, expected, ignorable=IGNORABLE_TENSORS, what="MOSS-TTS delay model")
    held = {name: as_weight(tensor, storage) for name, tensor in found.items()}

    def block(layer: int) -> BlockWeights:
        names = {path.rpartition(".")[2]: path for path in _block_shapes(config)}
        return BlockWeights(
            **{
                field: held[f"language_model.layers.{layer}.{path}.weight"]
                for field, path in names.items()
            }
        )

    codebooks = range(config.n_vq)
    return DelayWeights(
        embed_tokens=held[_EMBEDDING],
        emb_ext=tuple(held[f"emb_ext.{q}.weight"] for q in codebooks),
        blocks=tuple(block(layer) for layer in range(config.num_hidden_layers)),
        norm=held["language_model.norm.weight"],
        text_head=held.get(_TEXT_HEAD, held[_EMBEDDING]),
        audio_heads=tuple(held[f"lm_heads.{q + 1}.weight"] for q in codebooks),
    )


def _backbone(name: str, *shape: int) -> Expected:
    """A tensor of the Qwen3 model, with or without the level that some writers put between."""
    return Expected(f"language_model.{name}", shape, (f"language_model.model.{name}",))


def _block_shapes(config: DelayConfig) -> dict[str, tuple[int, ...]]:
    """Of each tensor of a block, by its path in the checkpoint; the last part names its field."""
    hidden, inner, head_dim = config.hidden_size, config.intermediate_size, config.head_dim
    queries, keys = config.num_attention_heads * head_dim, config.num_key_value_heads * head_dim
    return {
        "input_layernorm": (hidden,),
        "self_attn.q_proj": (queries, hidden),
        "self_attn.k_proj": (keys, hidden),
        "self_attn.v_proj": (keys, hidden),
        "self_attn.q_norm": (head_dim,),
        "self_attn.k_norm": (head_dim,),
        "self_attn.o_proj": (hidden, queries),
        "post_attention_layernorm": (hidden,),
        "mlp.gate_proj": (inner, hidden),
        "mlp.up_proj": (inner, hidden),
        "mlp.down_proj": (hidden, inner),
    }
