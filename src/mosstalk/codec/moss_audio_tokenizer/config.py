"""config.json of the codec (spec nano.md 1.4, 5.1, 5.2; voicegen.md 6.1, 6.2)."""

from collections.abc import Mapping
from dataclasses import dataclass

from mosstalk.checkpoint.strict_config import ConfigReader
from mosstalk.errors import CheckpointError

# The published full codec says "speech_tokenizer".
MODEL_TYPES = ("moss-audio-tokenizer", "moss-audio-tokenizer-nano", "speech_tokenizer")
_UNUSED = (
    "architectures", "auto_map", "attention_implementation", "attention_backend",
    "compute_dtype", "codec_compute_dtype", "dtype", "torch_dtype", "transformers_version",
    "version", "reversed_decoder_kwargs", "_name_or_path", "code_dim",
)  # fmt: skip
_UNUSED_QUANTIZER = (
    "quantizer_dropout", "codebook_loss_weight", "commitment_loss_weight",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Patch:
    """Folds `size` positions into one (encoder), or unfolds them (decoder)."""

    size: int


@dataclass(frozen=True, slots=True)
class Stage:
    """A transformer between an input and an output projection, where they are."""

    index: int  # of the module in the encoder or decoder, as in tensor names
    input_dimension: int
    output_dimension: int
    d_model: int
    num_heads: int
    num_layers: int
    dim_feedforward: int
    rope_base: float
    multiple: int  # positions a frame
    window: int  # positions that a query sees, itself included


Module = Patch | Stage


@dataclass(frozen=True, slots=True)
class CodecConfig:
    sample_rate: int
    num_channels: int
    frame_len: int  # samples of a channel in a frame
    encoder: tuple[Module, ...]
    decoder: tuple[Module, ...]
    code_dim: int  # width of a frame between encoder, quantiser and decoder
    rvq_dim: int
    num_codebooks: int
    codebook_size: int
    codebook_dim: int

    @property
    def frame_rate(self) -> float:
        return self.sample_rate / self.frame_len


def parse_config(values: Mapping[str, object]) -> CodecConfig:
    """Raises CheckpointError for a missing, unknown or contradictory key."""
    top = ConfigReader(values, "codec config.json")
    top.require("model_type", *MODEL_TYPES)
    top.require("quantizer_type", "rlfq")
    top.ignore(*_UNUSED)
    sample_rate = _sample_rate(top)
    channels_key = "number_channels" if top.has("number_channels") else "channels_numbers"
    channels = top.get(channels_key, int, 1)
    top.require("enable_channel_interleave", *((True,) if channels > 1 else (True, False)))
    frame_len = top.size("downsample_rate")
    context = top.get("causal_transformer_context_duration", float, 10.0)
    values_a_frame = frame_len * channels
    encoder = _modules(top, "encoder_kwargs", values_a_frame, context, sample_rate / frame_len)
    decoder = _modules(top, "decoder_kwargs", 1, context, sample_rate / frame_len)
    quantizer = top.child("quantizer_kwargs")
    quantizer.require("quantizer_type", "rlfq")
    quantizer.ignore(*_UNUSED_QUANTIZER)
    code_dim = quantizer.size("input_dim")
    quantizer.require("output_dim", code_dim)
    config = CodecConfig(
        sample_rate=sample_rate,
        num_channels=channels,
        frame_len=frame_len,
        encoder=encoder,
        decoder=decoder,
        code_dim=code_dim,
        rvq_dim=quantizer.size("rvq_dim"),
        num_codebooks=quantizer.size("num_quantizers"),
        codebook_size=quantizer.size("codebook_size"),
        codebook_dim=quantizer.size("codebook_dim"),
    )
    quantizer.finish()
    top.finish()
    _check_widths(config)
    return config


def _sample_rate(top: ConfigReader) -> int:
    """`sampling_rate`; `sample_rate` is an alias that must agree."""
    rate = top.size("sampling_rate" if top.has("sampling_rate") else "sample_rate")
    top.require("sampling_rate", rate)
    top.require("sample_rate", rate)
    return rate


def _modules(
    top: ConfigReader, key: str, multiple: int, context_seconds: float, frame_rate: float
) -> tuple[Module, ...]:
    """The modules of one side; `multiple` is the number of values a frame before the first."""
    folds = key == "encoder_kwargs"
    modules: list[Module] = []
    for index, entry in enumerate(top.children(key)):
        kind = entry.get("module_type", str)
        if kind == "PatchedPretransform":
            size = entry.size("patch_size")
            if folds and multiple % size:
                raise CheckpointError(
                    f"codec config.json: {key}[{index}] folds {size} of {multiple} positions"
                )
            multiple = multiple // size if folds else multiple * size
            modules.append(Patch(size))
        elif kind == "Transformer":
            modules.append(_stage(entry, index, multiple, context_seconds, frame_rate))
        else:
            raise CheckpointError(f"codec config.json: unknown module_type {kind!r} in {key}")
        entry.finish()
    return tuple(modules)


def _stage(
    entry: ConfigReader, index: int, multiple: int, context_seconds: float, frame_rate: float
) -> Stage:
    entry.require("causal", True)
    entry.require("conv_layout", True)
    entry.require("norm", "layer_norm")
    entry.require("gating", "none")
    entry.require("positional_embedding", "rope")
    entry.ignore("layer_scale")  # the initial value; the trained ones are tensors
    seconds = entry.get("context_duration", float, context_seconds)
    return Stage(
        index=index,
        input_dimension=entry.size("input_dimension"),
        output_dimension=entry.size("output_dimension"),
        d_model=entry.size("d_model"),
        num_heads=entry.size("num_heads"),
        num_layers=entry.size("num_layers"),
        dim_feedforward=entry.size("dim_feedforward"),
        rope_base=entry.get("max_period", float, 10000.0),
        multiple=multiple,
        window=round(frame_rate * multiple * seconds),
    )


def _check_widths(config: CodecConfig) -> None:
    """Each module must take what the one before it gives."""
    width = 1
    for module in config.encoder:
        width = _width_after(module, width, folds=True)
    if width != config.code_dim:
        raise CheckpointError(
            f"codec config.json: the encoder ends with {width} values a frame, "
            f"but the quantiser takes {config.code_dim}"
        )
    for module in config.decoder:
        width = _width_after(module, width, folds=False)
    positions = 1
    for module in config.decoder:
        positions *= module.size if isinstance(module, Patch) else 1
    if width != 1 or positions != config.frame_len * config.num_channels:
        raise CheckpointError(
            f"codec config.json: the decoder makes {positions} x {width} values a frame, "
            f"not {config.frame_len * config.num_channels}"
        )


def _width_after(module: Module, width: int, *, folds: bool) -> int:
    if isinstance(module, Stage):
        if module.input_dimension != width or module.d_model % module.num_heads:
            raise CheckpointError(
                f"codec config.json: module {module.index} takes {module.input_dimension} values, "
                f"but gets {width}; its {module.num_heads} heads must divide {module.d_model}"
            )
        return module.output_dimension
    if folds:
        return width * module.size
    if width % module.size:
        raise CheckpointError(f"codec config.json: {width} values do not unfold by {module.size}")
    return width // module.size
