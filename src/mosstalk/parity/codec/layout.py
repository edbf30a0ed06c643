"""A codec's config.json, read a second time and by other code than the codec's own.

What the checks expect of windows comes from here, so that a codec which reads its config wrongly
does not agree with itself. Source: spec nano.md 5.1 and 5.2, spec voicegen.md 6.2.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Patch:
    size: int


@dataclass(frozen=True, slots=True)
class Transformer:
    """`window` positions are seen by a query, itself included; a frame has `multiple` of them."""

    name: str  # in tensor names
    layers: int
    heads: int
    head_dim: int
    rope_base: float
    multiple: int
    window: int


Module = Patch | Transformer


@dataclass(frozen=True, slots=True)
class Layout:
    sample_rate: int
    channels: int
    frame_len: int  # samples of a channel
    codebooks: int
    codebook_size: int
    encoder: tuple[Module, ...]
    decoder: tuple[Module, ...]

    @property
    def frame_values(self) -> int:
        """Samples of all channels in a frame."""
        return self.frame_len * self.channels

    @property
    def decoder_layers(self) -> tuple[Transformer, ...]:
        """Each layer of the decoder, as its transformer, in the order of the caches."""
        return tuple(m for m in self.decoder if isinstance(m, Transformer) for _ in range(m.layers))

    @property
    def reach(self) -> int:
        """Frames before a frame, itself included, on which its samples may depend."""
        far = 10 * sum(layer.window for layer in self.decoder_layers)
        return far + 1 - first_inputs(self.decoder, far, self.frame_values)[0]


def read_layout(config: Mapping[str, object]) -> Layout:
    """The layout of a config.json that the codec itself has accepted."""
    values: Any = config
    sample_rate = values.get("sampling_rate", values.get("sample_rate"))
    channels = values.get("number_channels", values.get("channels_numbers", 1))
    frame_len = values["downsample_rate"]
    seconds = values.get("causal_transformer_context_duration", 10.0)
    frame_rate = sample_rate / frame_len
    quantizer = values["quantizer_kwargs"]
    encoder, decoder = (
        _modules(side, values[f"{side}_kwargs"], multiple, frame_rate, seconds)
        for side, multiple in (("encoder", frame_len * channels), ("decoder", 1))
    )
    return Layout(
        sample_rate=sample_rate,
        channels=channels,
        frame_len=frame_len,
        codebooks=quantizer["num_quantizers"],
        codebook_size=quantizer["codebook_size"],
        encoder=encoder,
        decoder=decoder,
    )


def longest_window(modules: tuple[Module, ...]) -> int:
    """Frames after which every window is full."""
    return max(-(-m.window // m.multiple) for m in modules if isinstance(m, Transformer))


def first_inputs(
    decoder: tuple[Module, ...], first_frame: int, frame_values: int
) -> tuple[int, list[int]]:
    """What the samples from `first_frame` on depend on.

    Returns the first frame of codes, and for each layer the first position whose output is needed.
    """
    needed = first_frame * frame_values
    cuts: list[int] = []
    for module in reversed(decoder):
        if isinstance(module, Patch):
            needed //= module.size
            continue
        for _ in range(module.layers):
            cuts.append(needed)
            needed = max(0, needed - module.window + 1)
    return needed, cuts[::-1]


def _modules(
    side: str, entries: Any, multiple: int, frame_rate: float, seconds: float
) -> tuple[Module, ...]:
    """`multiple`: values a frame before the first module."""
    modules: list[Module] = []
    for index, entry in enumerate(entries):
        if entry["module_type"] == "PatchedPretransform":
            size = entry["patch_size"]
            multiple = multiple // size if side == "encoder" else multiple * size
            modules.append(Patch(size))
            continue
        positions_a_second = frame_rate * multiple
        modules.append(
            Transformer(
                name=f"{side}.{index}",
                layers=entry["num_layers"],
                heads=entry["num_heads"],
                head_dim=entry["d_model"] // entry["num_heads"],
                rope_base=entry.get("max_period", 10000.0),
                multiple=multiple,
                window=round(positions_a_second * entry.get("context_duration", seconds)),
            )
        )
    return tuple(modules)
