"""The codec's golden vectors, random codecs, and configs in the published layout."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from mosstalk.checkpoint.checkpoint import open_checkpoint
from mosstalk.checkpoint.storage import StorageType, StoredTensor, from_float32
from mosstalk.codec.moss_audio_tokenizer.codec import MossAudioTokenizer
from mosstalk.codec.moss_audio_tokenizer.config import parse_config
from mosstalk.codec.moss_audio_tokenizer.weights import expected_tensors
from mosstalk.compute.backend import Backend, open_backend

NANO = ["codec_nano_narrow", "codec_nano_wide", "codec_nano_e2e"]
FULL = ["codec_full_narrow", "codec_full_wide", "codec_full_e2e"]
# Spec nano.md 1.4: in, out, layers, seconds of context.
_REAL_ENCODER = ((240, 384, 4, 4.0), (768, 384, 2, 6.0), (768, 384, 2, 8.0), (768, 192, 4, 10.0))
_REAL_DECODER = ((192, 768, 4, 10.0), (384, 768, 2, 8.0), (384, 768, 2, 6.0), (384, 240, 4, 4.0))


@dataclass(frozen=True)
class FullSizes:
    """What differs between the published full codec and a tiny one of its layout."""

    outer: int  # d_model of the stages at 100, 50 and 25 positions a second
    inner: int  # d_model at 12.5
    between: tuple[int, int, int]  # widths after the encoder's stages, before the last
    heads: tuple[int, int]  # outer, inner
    layers: tuple[int, int]
    code_dim: int
    quantizer: dict[str, object]


# Spec voicegen.md 6.1, 6.2.
_FULL = FullSizes(
    768, 1280, (384, 384, 640), (12, 20), (12, 32), 768,
    {"rvq_dim": 512, "num_quantizers": 32, "codebook_size": 1024, "codebook_dim": 8},
)  # fmt: skip
_TINY_FULL = FullSizes(
    32, 48, (16, 16, 24), (2, 4), (2, 2), 24,
    {"rvq_dim": 16, "num_quantizers": 6, "codebook_size": 40, "codebook_dim": 8},
)  # fmt: skip


class Golden:
    """A tiny checkpoint and what the original code computed with it.

    A clone holds the first frames of one of them only; comparisons go as far as the file does.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self.checkpoint = folder / "checkpoints" / name
        arrays = folder / "reference" / f"{name}.npz"
        if not arrays.is_file() or not (self.checkpoint / "config.json").is_file():
            pytest.skip(f"{name} is not here")
        self.arrays: dict[str, NDArray[Any]] = dict(np.load(arrays))

    def files(self) -> tuple[Mapping[str, object], Mapping[str, StoredTensor]]:
        """config.json and the tensors."""
        opened = open_checkpoint(self.checkpoint)
        assert opened.codec_config is not None
        assert opened.codec_tensors is not None
        return opened.codec_config, opened.codec_tensors

    def codec(self, backend: Backend) -> MossAudioTokenizer:
        return MossAudioTokenizer(*self.files(), backend)

    @property
    def wav(self) -> NDArray[np.float32]:
        """[channels, n]"""
        return np.atleast_2d(self.arrays["wav"])

    def codes(self, name: str = "codes") -> NDArray[np.int32]:
        """[frames, codebooks]"""
        return self.arrays[name][:, 0].T.astype(np.int32)

    def positions(self, name: str) -> NDArray[np.float32]:
        """A stage's output [1, channels, time] as [time, channels]."""
        return np.ascontiguousarray(self.arrays[name][0].T)


def stage(source: int, out: int, layers: int, seconds: float, width: int, inner: int) -> Any:
    return _stage(source, out, layers, width, inner, 4) | {"context_duration": seconds}


def _stage(source: int, out: int, layers: int, width: int, inner: int, heads: int) -> Any:
    return {
        "module_type": "Transformer",
        "input_dimension": source,
        "output_dimension": out,
        "d_model": width,
        "num_heads": heads,
        "num_layers": layers,
        "dim_feedforward": inner,
        "causal": True,
        "conv_layout": True,
        "norm": "layer_norm",
        "gating": "none",
        "positional_embedding": "rope",
        "max_period": 10000,
        "layer_scale": 0.01,
    }


def patch(size: int) -> dict[str, object]:
    return {"module_type": "PatchedPretransform", "patch_size": size}


def _modules(
    stages: tuple[tuple[int, int, int, float], ...], patches: tuple[int, ...]
) -> list[Any]:
    """A patch before, between and after the stages."""
    modules: list[Any] = [patch(patches[0])]
    for values, size in zip(stages, patches[1:], strict=True):
        modules += [stage(*values, 256, 1024), patch(size)]
    return modules


def real_config() -> dict[str, Any]:
    """config.json of the published codec (spec nano.md 1.4)."""
    return {
        "model_type": "moss-audio-tokenizer",
        "architectures": ["MossAudioTokenizerModel"],
        "sample_rate": 48000,
        "sampling_rate": 48000,
        "downsample_rate": 3840,
        "number_channels": 2,
        "enable_channel_interleave": True,
        "causal_transformer_context_duration": 10.0,
        "code_dim": 768,
        "attention_implementation": "sdpa",
        "compute_dtype": "fp32",
        "dtype": "float32",
        "encoder_kwargs": _modules(_REAL_ENCODER, (240, 2, 2, 2, 4)),
        "decoder_kwargs": _modules(_REAL_DECODER, (4, 2, 2, 2, 240)),
        "reversed_decoder_kwargs": [],
        "quantizer_type": "rlfq",
        "quantizer_kwargs": {
            "input_dim": 768,
            "rvq_dim": 512,
            "output_dim": 768,
            "num_quantizers": 16,
            "codebook_size": 1024,
            "codebook_dim": 8,
            "quantizer_dropout": 1.0,
            "codebook_loss_weight": 1.0,
            "commitment_loss_weight": 0.25,
            "quantizer_type": "rlfq",
        },
        "transformers_version": "4.56.0.dev0",
    }


def tiny_config() -> dict[str, Any]:
    """A codec of 800 stereo samples a frame whose windows of 8 to 24 frames wrap soon."""
    return {
        "model_type": "moss-audio-tokenizer",
        "sampling_rate": 10000,
        "downsample_rate": 800,
        "number_channels": 2,
        "enable_channel_interleave": True,
        "encoder_kwargs": [
            patch(200),
            stage(200, 16, 1, 0.64, 32, 48),
            patch(8),
            stage(128, 24, 1, 1.92, 32, 48),
        ],
        "decoder_kwargs": [
            stage(24, 128, 2, 1.92, 32, 48),
            patch(8),
            stage(16, 200, 2, 0.64, 32, 48),
            patch(200),
        ],
        "quantizer_type": "rlfq",
        "quantizer_kwargs": {
            "input_dim": 24,
            "output_dim": 24,
            "rvq_dim": 16,
            "num_quantizers": 4,
            "codebook_size": 40,
            "codebook_dim": 8,
        },
    }


def full_config() -> dict[str, Any]:
    """config.json of the published full codec (spec voicegen.md 6.1, 6.2)."""
    return _full_layout(_FULL) | {
        "model_type": "speech_tokenizer",
        "sample_rate": 24000,
        "code_dim": 768,
        "reversed_decoder_kwargs": [],
        "version": "4.26.1.a",
    }


def tiny_full_config() -> dict[str, Any]:
    """A small codec of the full one's layout, rates and contexts."""
    return _full_layout(_TINY_FULL)


def _full_layout(sizes: FullSizes) -> dict[str, Any]:
    """Stages of one context, of which none names its own; see FullSizes."""

    def outer(source: int, out: int) -> Any:
        width = sizes.outer
        return _stage(source, out, sizes.layers[0], width, 4 * width, sizes.heads[0])

    def inner(source: int, out: int) -> Any:
        width = sizes.inner
        return _stage(source, out, sizes.layers[1], width, 4 * width, sizes.heads[1])

    first, second, third = sizes.between
    half = patch(2)
    return {
        "model_type": "moss-audio-tokenizer",
        "sampling_rate": 24000,
        "downsample_rate": 1920,
        "causal_transformer_context_duration": 10,
        "encoder_kwargs": [
            patch(240), outer(240, first),
            half, outer(2 * first, second),
            half, outer(2 * second, third),
            half, inner(2 * third, sizes.code_dim),
        ],
        "decoder_kwargs": [
            inner(sizes.code_dim, sizes.inner), half,
            outer(sizes.inner // 2, sizes.outer), half,
            outer(sizes.outer // 2, sizes.outer), half,
            outer(sizes.outer // 2, 240), patch(240),
        ],
        "quantizer_type": "rlfq",
        "quantizer_kwargs": {
            "input_dim": sizes.code_dim,
            "output_dim": sizes.code_dim,
            "quantizer_type": "rlfq",
            **sizes.quantizer,
        },
    }  # fmt: skip


def random_tensors(config: Mapping[str, object], seed: int = 0) -> dict[str, StoredTensor]:
    """Tensors of every name and shape that a codec of this config has."""
    generator = np.random.default_rng(seed)
    tensors = {}
    for item in expected_tensors(parse_config(config)):
        values = generator.standard_normal(item.shape).astype(np.float32)
        if len(item.shape) == 2:
            values /= np.float32(np.sqrt(item.shape[1]))
        tensors[item.name] = from_float32(item.name, values, StorageType.F32)
    return tensors


def tiny_codec(
    backend: str = "cpu", threads: int = 1, config: Mapping[str, object] | None = None
) -> MossAudioTokenizer:
    """A codec of random tensors: of `tiny_config` unless another config is given."""
    config = config or tiny_config()
    return MossAudioTokenizer(config, random_tensors(config), open_backend(backend, threads))


def random_codes(frames: int, codec: MossAudioTokenizer, seed: int = 0) -> NDArray[np.int32]:
    shape = (frames, codec.num_codebooks)
    codes = np.random.default_rng(seed).integers(codec.config.codebook_size, size=shape)
    return codes.astype(np.int32)
