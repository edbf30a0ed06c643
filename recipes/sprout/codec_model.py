"""The MOSS audio tokenizer in PyTorch, for training at small size.

Module names and shapes are those of the published codec, so that a state dict is a checkpoint.
The codebooks are not learnt here: they are those of `quantiser.py`, put into the published form.
"""

from dataclasses import dataclass

import torch
from codec_quantizer import CODEBOOK_DIM, NUM_BOOKS, RVQ_DIM, ResidualQuantizer
from quantiser import BOOK_LEN
from torch import Tensor, nn

SAMPLE_RATE = 16_000
FRAME_LEN = 1280


@dataclass(frozen=True)
class StageSize:
    """One transformer stage of the encoder or decoder."""

    width: int
    heads: int
    inner: int
    layers: int
    context_seconds: float


@dataclass(frozen=True)
class CodecSize:
    patches: tuple[int, ...] = (80, 4, 4)  # encoder order; their product is a frame
    encoder: tuple[StageSize, ...] = (
        StageSize(width=128, heads=2, inner=512, layers=2, context_seconds=0.64),
        StageSize(width=128, heads=2, inner=512, layers=2, context_seconds=1.28),
    )
    decoder: tuple[StageSize, ...] = (
        StageSize(width=192, heads=3, inner=768, layers=4, context_seconds=1.28),
        StageSize(width=192, heads=3, inner=768, layers=3, context_seconds=0.64),
    )
    code_dim: int = 256


def _rope(x: Tensor) -> Tensor:
    """Rotate pairs (2i, 2i+1) of [batch, time, heads, dim] by position; base 10,000."""
    time, dim = x.shape[1], x.shape[3]
    inverse = 10_000 ** (-torch.arange(0, dim, 2, dtype=torch.float32) / dim)
    angle = torch.arange(time, dtype=torch.float32)[:, None, None] * inverse
    turn = torch.polar(torch.ones_like(angle), angle)  # real arithmetic takes three times as long
    pairs = torch.view_as_complex(x.float().unflatten(-1, (-1, 2)))
    return torch.view_as_real(pairs * turn).flatten(-2).to(x.dtype)


class LayerScale(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.full((width,), 0.3))


class SelfAttention(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.in_proj = nn.Linear(width, 3 * width, bias=False)
        self.out_proj = nn.Linear(width, width, bias=False)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """`mask` [time, time] is added to the scores."""
        batch, time, width = x.shape
        qkv = self.in_proj(x).view(batch, time, 3, self.heads, -1)
        q, k = _rope(qkv[:, :, :2].flatten(2, 3)).unflatten(2, (2, -1)).permute(2, 0, 3, 1, 4)
        # written out: on the CPU the fused kernel's gradient is slower
        scores = q @ k.transpose(2, 3) * q.shape[-1] ** -0.5 + mask.to(q.dtype)
        weights = torch.softmax(scores, -1, torch.float32).to(q.dtype)
        y = weights @ qkv[:, :, 2].transpose(1, 2)
        return self.out_proj(y.transpose(1, 2).reshape(batch, time, width))


class Layer(nn.Module):
    def __init__(self, size: StageSize) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(size.width), nn.LayerNorm(size.width)
        self.self_attn = SelfAttention(size.width, size.heads)
        self.ffn = nn.Sequential(
            nn.Linear(size.width, size.inner, bias=False),
            nn.GELU(),
            nn.Linear(size.inner, size.width, bias=False),
        )
        self.layer_scale_1, self.layer_scale_2 = LayerScale(size.width), LayerScale(size.width)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        x = x + self.layer_scale_1.scale * self.self_attn(self.norm1(x), mask)
        return x + self.layer_scale_2.scale * self.ffn(self.norm2(x))


class Stage(nn.Module):
    """A causal transformer over [batch, channels, time], attending to `window` positions."""

    def __init__(self, size: StageSize, rate: float, channels_in: int, channels_out: int) -> None:
        super().__init__()
        self.window = round(rate * size.context_seconds)
        self.input_proj = nn.Linear(channels_in, size.width, bias=False)
        self.transformer = nn.ModuleDict(
            {"layers": nn.ModuleList(Layer(size) for _ in range(size.layers))}
        )
        self.output_proj = nn.Linear(size.width, channels_out, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        position = torch.arange(x.shape[-1], device=x.device)
        behind = position[:, None] - position[None, :]
        mask = torch.where((behind >= 0) & (behind < self.window), 0.0, -1e9)
        h = self.input_proj(x.transpose(1, 2))
        for layer in self.transformer["layers"]:
            h = layer(h, mask)
        return self.output_proj(h).transpose(1, 2)


class PatchDown(nn.Module):
    def __init__(self, patch: int) -> None:
        super().__init__()
        self.patch = patch

    def forward(self, x: Tensor) -> Tensor:
        batch, channels, time = x.shape
        x = x.view(batch, channels, time // self.patch, self.patch)
        return x.transpose(2, 3).reshape(batch, channels * self.patch, -1)


class PatchUp(nn.Module):
    def __init__(self, patch: int) -> None:
        super().__init__()
        self.patch = patch

    def forward(self, x: Tensor) -> Tensor:
        batch, channels, time = x.shape
        x = x.view(batch, channels // self.patch, self.patch, time)
        return x.transpose(2, 3).reshape(batch, channels // self.patch, -1)


class Codec(nn.Module):
    def __init__(self, size: CodecSize) -> None:
        super().__init__()
        self.size = size
        down, *rest = size.patches
        modules: list[nn.Module] = [PatchDown(down)]
        rate, channels = SAMPLE_RATE / down, down
        for i, (stage, patch) in enumerate(zip(size.encoder, rest, strict=True)):
            last = i == len(rest) - 1
            out = size.code_dim // patch if last else stage.width
            modules += [Stage(stage, rate, channels, out), PatchDown(patch)]
            rate, channels = rate / patch, out * patch
        self.encoder = nn.ModuleList(modules)
        self.quantizer = ResidualQuantizer(size.code_dim)
        modules = []
        for i, (stage, patch) in enumerate(zip(size.decoder, reversed(rest), strict=True)):
            rate *= patch
            last = i == len(rest) - 1
            out = down if last else stage.width * size.patches[-2 - i]
            modules += [PatchUp(patch), Stage(stage, rate, channels // patch, out)]
            channels = out
        self.decoder = nn.ModuleList([*modules, PatchUp(down)])

    def encode(self, wave: Tensor) -> Tensor:
        """[batch, samples] to [batch, code_dim, frames]."""
        x = wave[:, None]
        for module in self.encoder:
            x = module(x)
        return x

    def decode(self, z: Tensor) -> Tensor:
        for module in self.decoder:
            z = module(z)
        return z[:, 0]

    def half(self, name: str) -> nn.ModuleDict:
        """What is trained of the `encoder` or the `decoder`: its stages and its projection."""
        if name == "encoder":
            return nn.ModuleDict({"body": self.encoder, "proj": self.quantizer.input_proj})
        return nn.ModuleDict({"body": self.decoder, "proj": self.quantizer.output_proj})

    def config(self) -> dict[str, object]:
        """config.json of this codec, in the published layout."""
        size = self.size

        def stages(modules: nn.ModuleList, sizes: tuple[StageSize, ...]) -> list[object]:
            remaining = iter(sizes)
            entries: list[object] = []
            for module in modules:
                if isinstance(module, PatchDown | PatchUp):
                    entries.append(
                        {"module_type": "PatchedPretransform", "patch_size": module.patch}
                    )
                    continue
                stage = next(remaining)
                entries.append(
                    {
                        "module_type": "Transformer",
                        "input_dimension": module.input_proj.in_features,
                        "output_dimension": module.output_proj.out_features,
                        "d_model": stage.width,
                        "num_heads": stage.heads,
                        "num_layers": stage.layers,
                        "dim_feedforward": stage.inner,
                        "context_duration": stage.context_seconds,
                        "causal": True,
                        "conv_layout": True,
                        "norm": "layer_norm",
                        "gating": "none",
                        "positional_embedding": "rope",
                        "max_period": 10000,
                        "layer_scale": 0.01,
                    }
                )
            return entries

        return {
            "architectures": ["MossAudioTokenizerModel"],
            "model_type": "moss-audio-tokenizer",
            "sampling_rate": SAMPLE_RATE,
            "downsample_rate": FRAME_LEN,
            "number_channels": 1,
            "enable_channel_interleave": True,
            "causal_transformer_context_duration": 10.0,
            "code_dim": size.code_dim,
            "compute_dtype": "fp32",
            "dtype": "float32",
            "encoder_kwargs": stages(self.encoder, size.encoder),
            "decoder_kwargs": stages(self.decoder, size.decoder),
            "quantizer_type": "rlfq",
            "quantizer_kwargs": {
                "quantizer_type": "rlfq",
                "input_dim": size.code_dim,
                "rvq_dim": RVQ_DIM,
                "output_dim": size.code_dim,
                "num_quantizers": NUM_BOOKS,
                "codebook_size": BOOK_LEN,
                "codebook_dim": CODEBOOK_DIM,
            },
        }
