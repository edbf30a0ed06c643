"""The MOSS audio tokenizer in PyTorch, for training at small size.

Module names and shapes are those of the published codec, so that a state dict is a checkpoint.
Differences from inference code: lookups keep a straight-through gradient, and codebook rows are
kept at unit length, which the published lookup (cosine) permits.
"""

from dataclasses import asdict, dataclass, field

import torch
import torch.nn.functional as F
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
    rvq_dim: int = 128
    codebook_dim: int = 8
    codebook_size: int = 1024
    num_codebooks: int = 8
    name: str = field(default="sprout", compare=False)


def _rope(x: Tensor) -> Tensor:
    """Rotate pairs (2i, 2i+1) of [batch, heads, time, dim] by position; base 10,000."""
    *_, time, dim = x.shape
    inverse = 10_000 ** (-torch.arange(0, dim, 2, device=x.device, dtype=torch.float32) / dim)
    angle = torch.arange(time, device=x.device, dtype=torch.float32)[:, None] * inverse
    cos, sin = angle.cos(), angle.sin()
    even, odd = x[..., 0::2].float(), x[..., 1::2].float()
    turned = torch.stack([even * cos - odd * sin, odd * cos + even * sin], dim=-1)
    return turned.flatten(-2).to(x.dtype)


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
        batch, time, width = x.shape
        q, k, v = (
            part.view(batch, time, self.heads, -1).transpose(1, 2)
            for part in self.in_proj(x).chunk(3, dim=-1)
        )
        y = F.scaled_dot_product_attention(_rope(q), _rope(k), v, attn_mask=mask)
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
        mask = (behind >= 0) & (behind < self.window)
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


class Quantizer(nn.Module):
    """One residual codebook: project to 8 dimensions, look up by cosine, project back."""

    def __init__(self, size: CodecSize) -> None:
        super().__init__()
        weight_norm = torch.nn.utils.parametrizations.weight_norm
        self.in_proj = weight_norm(nn.Conv1d(size.rvq_dim, size.codebook_dim, 1))
        self.out_proj = weight_norm(nn.Conv1d(size.codebook_dim, size.rvq_dim, 1))
        self.codebook = nn.Embedding(size.codebook_size, size.codebook_dim)

    def forward(self, residual: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """[batch, rvq_dim, time] to its approximation, codes [batch, time] and the loss."""
        encoded = F.normalize(self.in_proj(residual), dim=1)
        rows = F.normalize(self.codebook.weight, dim=1)
        codes = (encoded.transpose(1, 2) @ rows.T).argmax(dim=-1)
        looked_up = F.embedding(codes, rows).transpose(1, 2)
        loss = F.mse_loss(looked_up, encoded.detach()) + F.mse_loss(encoded, looked_up.detach())
        through = encoded + (looked_up - encoded).detach()
        return self.out_proj(through), codes, loss * encoded.shape[1]

    def decode(self, codes: Tensor) -> Tensor:
        rows = F.normalize(self.codebook.weight, dim=1)
        return self.out_proj(F.embedding(codes, rows).transpose(1, 2))

    @torch.no_grad()
    def restart(self, unused: Tensor, residual: Tensor) -> None:
        """Move unused rows onto random vectors of the batch."""
        encoded = F.normalize(self.in_proj(residual), dim=1).transpose(1, 2).flatten(0, 1)
        picked = torch.randint(len(encoded), (int(unused.sum()),), device=encoded.device)
        self.codebook.weight[unused] = encoded[picked]


class ResidualQuantizer(nn.Module):
    def __init__(self, size: CodecSize) -> None:
        super().__init__()
        weight_norm = torch.nn.utils.parametrizations.weight_norm
        self.input_proj = weight_norm(nn.Conv1d(size.code_dim, size.rvq_dim, 1))
        self.output_proj = weight_norm(nn.Conv1d(size.rvq_dim, size.code_dim, 1))
        self.quantizers = nn.ModuleList(Quantizer(size) for _ in range(size.num_codebooks))

    def forward(self, z: Tensor, active: Tensor) -> tuple[Tensor, Tensor, Tensor, list[Tensor]]:
        """`active` [batch]: how many codebooks each item uses (quantiser dropout)."""
        residual = self.input_proj(z)
        total, codes, loss, residuals = torch.zeros_like(residual), [], residual.new_zeros(()), []
        for i, quantizer in enumerate(self.quantizers):
            residuals.append(residual.detach())
            approximation, found, part = quantizer(residual)
            keep = (active > i).to(residual.dtype)[:, None, None]
            total = total + approximation * keep
            residual = residual - approximation
            codes.append(found)
            loss = loss + part
        return self.output_proj(total), torch.stack(codes), loss, residuals

    def decode(self, codes: Tensor) -> Tensor:
        """[codebooks, batch, time] to [batch, code_dim, time]."""
        parts = [q.decode(c) for q, c in zip(self.quantizers, codes, strict=False)]
        return self.output_proj(torch.stack(parts).sum(dim=0))


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
        self.quantizer = ResidualQuantizer(size)
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
                "rvq_dim": size.rvq_dim,
                "output_dim": size.code_dim,
                "num_quantizers": size.num_codebooks,
                "codebook_size": size.codebook_size,
                "codebook_dim": size.codebook_dim,
            },
        }


def size_from_dict(values: dict[str, object]) -> CodecSize:
    """The inverse of `dataclasses.asdict` for a checkpoint's sizes."""
    values = dict(values)
    for side in ("encoder", "decoder"):
        values[side] = tuple(StageSize(**stage) for stage in values[side])  # type: ignore[attr-defined]
    values["patches"] = tuple(values["patches"])  # type: ignore[arg-type]
    return CodecSize(**values)  # type: ignore[arg-type]


def size_to_dict(size: CodecSize) -> dict[str, object]:
    return asdict(size)
