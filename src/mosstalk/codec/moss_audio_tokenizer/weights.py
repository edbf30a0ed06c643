"""The codec's tensors: names, aliases, and what is derived at load.

Specification: spec nano.md 2.2 for Nano, spec voicegen.md 6.2 to 6.4 for the full size.
"""

from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mosstalk.checkpoint.mapping import Expected, take
from mosstalk.checkpoint.storage import StorageType, StoredTensor
from mosstalk.codec.moss_audio_tokenizer.config import CodecConfig, Module, Stage

# Tensors that only encoding uses.
_ENCODING_ONLY = ("encoder.*", "quantizer.input_proj.*", "quantizer.quantizers.*.in_proj.*")


@dataclass(frozen=True, slots=True)
class LayerWeights:
    """One transformer layer. Matrices are [out, in], without bias."""

    norm1: tuple[StoredTensor, StoredTensor]
    in_proj: StoredTensor  # rows: queries, keys, values
    out_proj: StoredTensor
    scale_1: StoredTensor
    norm2: tuple[StoredTensor, StoredTensor]
    ffn_in: StoredTensor
    ffn_out: StoredTensor
    scale_2: StoredTensor


@dataclass(frozen=True, slots=True)
class StageWeights:
    """A stage; without a projection its values pass as they are."""

    input_proj: StoredTensor | None
    layers: tuple[LayerWeights, ...]
    output_proj: StoredTensor | None


@dataclass(frozen=True, slots=True)
class CodebookWeights:
    """One residual codebook as it is looked up (weight norm multiplied out)."""

    out_proj: tuple[StoredTensor, StoredTensor]  # [rvq_dim, codebook_dim], bias
    codebook: StoredTensor  # [size, codebook_dim]


@dataclass(frozen=True, slots=True)
class SearchWeights:
    """One residual codebook as it is searched."""

    in_proj: tuple[StoredTensor, StoredTensor]  # [codebook_dim, rvq_dim], bias
    directions: StoredTensor  # the codebook's rows at unit length


@dataclass(frozen=True, slots=True)
class EncoderWeights:
    """What only encoding uses."""

    stages: dict[int, StageWeights]  # by module index
    quantizer_in: tuple[StoredTensor, StoredTensor]
    searches: tuple[SearchWeights, ...]


@dataclass(frozen=True, slots=True)
class CodecWeights:
    encoder: EncoderWeights | None  # None: decodes only
    decoder: dict[int, StageWeights]  # by module index
    quantizer_out: tuple[StoredTensor, StoredTensor]
    codebooks: tuple[CodebookWeights, ...]


def expected_tensors(
    config: CodecConfig, present: Container[str] = (), *, decode_only: bool = False
) -> Iterator[Expected]:
    """The tensors of a codec of this config, in Nano's names.

    A projection between equal widths is expected where it is among the names `present`: Nano's
    layout has one, the full codec leaves it out. `decode_only` leaves out what encoding uses.
    """
    sides = {"encoder": config.encoder, "decoder": config.decoder}
    if decode_only:
        del sides["encoder"]
    for side, modules in sides.items():
        for module in modules:
            if isinstance(module, Stage):
                yield from _stage_tensors(f"{side}.{module.index}", module, present)
    rvq, code = config.rvq_dim, config.codebook_dim
    if not decode_only:
        yield from _normed("quantizer.input_proj", rvq, config.code_dim)
    yield from _normed("quantizer.output_proj", config.code_dim, rvq)
    for i in range(config.num_codebooks):
        name = f"quantizer.quantizers.{i}"
        if not decode_only:
            yield from _normed(f"{name}.in_proj", code, rvq)
        yield from _normed(f"{name}.out_proj", rvq, code)
        yield Expected(f"{name}.codebook.weight", (config.codebook_size, code))


def load_weights(
    config: CodecConfig, tensors: Mapping[str, StoredTensor], *, decode_only: bool = False
) -> CodecWeights:
    """The weights by their places; `decode_only` neither needs nor reads those of the encoder.

    Raises CheckpointError that names what is missing, left over or of another shape.
    """
    found = take(
        tensors,
        expected_tensors(config, tensors.keys(), decode_only=decode_only),
        ignorable=_ENCODING_ONLY if decode_only else (),
        what="MOSS audio tokenizer",
    )
    return CodecWeights(
        encoder=None if decode_only else _encoder(config, found),
        decoder=_stages(found, "decoder", config.decoder),
        quantizer_out=_folded(found, "quantizer.output_proj"),
        codebooks=tuple(
            CodebookWeights(
                _folded(found, f"quantizer.quantizers.{i}.out_proj"),
                found[f"quantizer.quantizers.{i}.codebook.weight"],
            )
            for i in range(config.num_codebooks)
        ),
    )


def _encoder(config: CodecConfig, found: Mapping[str, StoredTensor]) -> EncoderWeights:
    def search(i: int) -> SearchWeights:
        name = f"quantizer.quantizers.{i}"
        rows = found[f"{name}.codebook.weight"].to_float32().astype(np.float64)
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        directions = _tensor(f"{name}.directions", rows / np.maximum(lengths, 1e-12))
        return SearchWeights(_folded(found, f"{name}.in_proj"), directions)

    return EncoderWeights(
        stages=_stages(found, "encoder", config.encoder),
        quantizer_in=_folded(found, "quantizer.input_proj"),
        searches=tuple(search(i) for i in range(config.num_codebooks)),
    )


def _stage_tensors(name: str, stage: Stage, present: Container[str]) -> Iterator[Expected]:
    width, inner = stage.d_model, stage.dim_feedforward
    projections = (
        Expected(f"{name}.input_proj.weight", (width, stage.input_dimension)),
        Expected(f"{name}.output_proj.weight", (stage.output_dimension, width)),
    )
    for item in projections:
        if item.shape != (width, width) or item.name in present:
            yield item
    for j in range(stage.num_layers):
        layer = f"{name}.transformer.layers.{j}"
        attn = f"{layer}.self_attn"
        for norm in ("norm1", "norm2"):
            yield Expected(f"{layer}.{norm}.weight", (width,))
            yield Expected(f"{layer}.{norm}.bias", (width,))
        in_names = (f"{attn}.in_proj_weight", f"{attn}.in_projs.0.weight")
        yield Expected(f"{attn}.in_proj.weight", (3 * width, width), in_names)
        out_names = (f"{attn}.out_projs.0.weight",)
        yield Expected(f"{attn}.out_proj.weight", (width, width), out_names)
        yield Expected(f"{layer}.ffn.0.weight", (inner, width), (f"{layer}.linear1.weight",))
        yield Expected(f"{layer}.ffn.2.weight", (width, inner), (f"{layer}.linear2.weight",))
        yield Expected(f"{layer}.layer_scale_1.scale", (width,))
        yield Expected(f"{layer}.layer_scale_2.scale", (width,))


def _normed(name: str, out: int, width: int) -> Iterator[Expected]:
    """A weight-normalised 1x1 convolution: gains, directions, bias."""
    gain = f"{name}.parametrizations.weight.original0"
    direction = f"{name}.parametrizations.weight.original1"
    yield Expected(gain, (out, 1, 1), (f"{name}.weight_g",))
    yield Expected(direction, (out, width, 1), (f"{name}.weight_v",))
    yield Expected(f"{name}.bias", (out,))


def _stages(
    found: Mapping[str, StoredTensor], side: str, modules: tuple[Module, ...]
) -> dict[int, StageWeights]:
    def layer(name: str) -> LayerWeights:
        return LayerWeights(
            norm1=(found[f"{name}.norm1.weight"], found[f"{name}.norm1.bias"]),
            in_proj=found[f"{name}.self_attn.in_proj.weight"],
            out_proj=found[f"{name}.self_attn.out_proj.weight"],
            scale_1=found[f"{name}.layer_scale_1.scale"],
            norm2=(found[f"{name}.norm2.weight"], found[f"{name}.norm2.bias"]),
            ffn_in=found[f"{name}.ffn.0.weight"],
            ffn_out=found[f"{name}.ffn.2.weight"],
            scale_2=found[f"{name}.layer_scale_2.scale"],
        )

    return {
        stage.index: StageWeights(
            found.get(f"{side}.{stage.index}.input_proj.weight"),
            tuple(
                layer(f"{side}.{stage.index}.transformer.layers.{j}")
                for j in range(stage.num_layers)
            ),
            found.get(f"{side}.{stage.index}.output_proj.weight"),
        )
        for stage in modules
        if isinstance(stage, Stage)
    }


def _folded(found: Mapping[str, StoredTensor], name: str) -> tuple[StoredTensor, StoredTensor]:
    """gain * direction / |direction| for each output row, and the bias."""
    gain = found[f"{name}.parametrizations.weight.original0"].to_float32()[:, :, 0]
    direction = found[f"{name}.parametrizations.weight.original1"].to_float32()[:, :, 0]
    wide = direction.astype(np.float64)
    folded = gain * wide / np.linalg.norm(wide, axis=1, keepdims=True)
    return _tensor(f"{name}.weight", folded), found[f"{name}.bias"]


def _tensor(name: str, values: NDArray[np.float64]) -> StoredTensor:
    flat = np.ascontiguousarray(values, dtype=np.float32)
    return StoredTensor(name, flat.shape, StorageType.F32, flat)
