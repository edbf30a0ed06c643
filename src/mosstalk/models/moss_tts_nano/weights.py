"""The tensors of MOSS-TTS-Nano (spec nano.md 2.1) and how they are taken from a checkpoint."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from mosstalk.checkpoint.mapping import Expected, take
from mosstalk.checkpoint.storage import StorageType, StoredTensor
from mosstalk.checkpoint.weights import as_weight
from mosstalk.models.moss_tts_nano.config import NanoConfig

# Tied to embeddings that are stored too, or replaced by nothing.
IGNORABLE_TENSORS = (
    "text_lm_head.weight",
    "audio_lm_heads.*.weight",
    "local_transformer.wte.weight",
    "*.rotary_emb.inv_freq",
)


@dataclass(frozen=True, slots=True)
class BlockWeights:
    """One transformer block. Matrices are [out, in]."""

    ln_1: tuple[StoredTensor, StoredTensor]
    c_attn: tuple[StoredTensor, StoredTensor]  # rows: queries, keys, values
    c_proj: tuple[StoredTensor, StoredTensor]
    ln_2: tuple[StoredTensor, StoredTensor]
    fc_in: tuple[StoredTensor, StoredTensor]
    fc_out: tuple[StoredTensor, StoredTensor]


@dataclass(frozen=True, slots=True)
class StackWeights:
    """Blocks and their final norm: the global or the local transformer."""

    blocks: tuple[BlockWeights, ...]
    ln_f: tuple[StoredTensor, StoredTensor]


@dataclass(frozen=True, slots=True)
class NanoWeights:
    wte: StoredTensor  # [vocab_size, hidden]
    audio_embeddings: tuple[StoredTensor, ...]  # [codebook size, hidden]; also the output heads
    global_stack: StackWeights
    local_stack: StackWeights


def expected_tensors(config: NanoConfig) -> Iterator[Expected]:
    hidden, inner = config.hidden_size, config.n_inner
    yield Expected("transformer.wte.weight", (config.vocab_size, hidden))
    for q, size in enumerate(config.audio_codebook_sizes):
        yield Expected(f"audio_embeddings.{q}.weight", (size, hidden))
    layers = (
        ("ln_1", (hidden,)),
        ("attn.c_attn", (3 * hidden, hidden)),
        ("attn.c_proj", (hidden, hidden)),
        ("ln_2", (hidden,)),
        ("mlp.fc_in", (inner, hidden)),
        ("mlp.fc_out", (hidden, inner)),
    )
    for stack, count in _stacks(config):
        for i in range(count):
            for name, shape in layers:
                yield Expected(f"{stack}.h.{i}.{name}.weight", shape)
                yield Expected(f"{stack}.h.{i}.{name}.bias", shape[:1])
        yield Expected(f"{stack}.ln_f.weight", (hidden,))
        yield Expected(f"{stack}.ln_f.bias", (hidden,))


def load_weights(
    config: NanoConfig, tensors: Mapping[str, StoredTensor], storage: StorageType
) -> NanoWeights:
    """Raises CheckpointError that names what is missing, left over or of another shape."""
    found = take(
        tensors, expected_tensors(config), ignorable=IGNORABLE_TENSORS, what="MOSS-TTS-Nano"
    )
    held = {name: as_weight(tensor, storage) for name, tensor in found.items()}

    def pair(name: str) -> tuple[StoredTensor, StoredTensor]:
        return held[f"{name}.weight"], held[f"{name}.bias"]

    def stack(name: str, count: int) -> StackWeights:
        blocks = tuple(
            BlockWeights(
                ln_1=pair(f"{name}.h.{i}.ln_1"),
                c_attn=pair(f"{name}.h.{i}.attn.c_attn"),
                c_proj=pair(f"{name}.h.{i}.attn.c_proj"),
                ln_2=pair(f"{name}.h.{i}.ln_2"),
                fc_in=pair(f"{name}.h.{i}.mlp.fc_in"),
                fc_out=pair(f"{name}.h.{i}.mlp.fc_out"),
            )
            for i in range(count)
        )
        return StackWeights(blocks, pair(f"{name}.ln_f"))

    stacks = [stack(name, count) for name, count in _stacks(config)]
    return NanoWeights(
        held["transformer.wte.weight"],
        tuple(held[f"audio_embeddings.{q}.weight"] for q in range(config.n_vq)),
        *stacks,
    )


def _stacks(config: NanoConfig) -> tuple[tuple[str, int], tuple[str, int]]:
    return (
        ("transformer", config.n_layer),
        ("local_transformer", config.local_transformer_layers),
    )
