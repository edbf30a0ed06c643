"""The decoder as the specification's formulas have it, in float64, over all positions at once.

It shares nothing with the package but the tensors' names: what a query sees is a matrix of yes and
no, written from spec voicegen.md 6.3 and 6.5.
"""

from collections.abc import Mapping
from math import erf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosstalk.checkpoint.storage import StoredTensor

Array = NDArray[np.float64]

_erf = np.frompyfunc(erf, 1, 1)


class FormulaDecoder:
    """`seconds` of context in every stage; `chunk` frames a chunk, or none for exact windows."""

    def __init__(
        self,
        config: Mapping[str, Any],
        tensors: Mapping[str, StoredTensor],
        seconds: float,
        chunk: int | None = None,
    ) -> None:
        self.config = config
        self.tensors = tensors
        self.seconds = seconds
        self.chunk = chunk

    def __call__(self, codes: NDArray[np.int32]) -> Array:
        """Samples [1, frames * hop] of codes [frames, codebooks]."""
        x = np.zeros((len(codes), self.config["quantizer_kwargs"]["rvq_dim"]))
        for i, column in enumerate(codes.T):
            book = f"quantizer.quantizers.{i}"
            x += self._normed(f"{book}.out_proj", self._get(f"{book}.codebook.weight")[column])
        x = self._normed("quantizer.output_proj", x)
        for index, module in enumerate(self.config["decoder_kwargs"]):
            if module["module_type"] == "Transformer":
                x = self._stage(f"decoder.{index}", module, x, len(x) // len(codes))
            else:
                size = module["patch_size"]
                x = x.reshape(len(x), -1, size).transpose(0, 2, 1).reshape(len(x) * size, -1)
        return x.T

    def _get(self, name: str) -> Array:
        return self.tensors[name].to_float32().astype(np.float64)

    def _normed(self, name: str, x: Array) -> Array:
        gain = self._get(f"{name}.parametrizations.weight.original0")[:, :, 0]
        rows = self._get(f"{name}.parametrizations.weight.original1")[:, :, 0]
        rows = gain * rows / np.linalg.norm(rows, axis=1, keepdims=True)
        return x @ rows.T + self._get(f"{name}.bias")

    def _stage(self, name: str, module: Mapping[str, Any], x: Array, multiple: int) -> Array:
        if module["input_dimension"] != module["d_model"]:
            x = x @ self._get(f"{name}.input_proj.weight").T
        sees = self._sees(len(x), multiple)
        for j in range(module["num_layers"]):
            layer = f"{name}.transformer.layers.{j}"
            y = self._layer_norm(f"{layer}.norm1", x)
            y = self._attention(f"{layer}.self_attn", y, module["num_heads"], sees)
            x = x + self._get(f"{layer}.layer_scale_1.scale") * y
            y = self._layer_norm(f"{layer}.norm2", x) @ self._either(layer, "ffn.0", "linear1").T
            y = 0.5 * y * (1 + _erf(y / np.sqrt(2)).astype(np.float64))
            y = y @ self._either(layer, "ffn.2", "linear2").T
            x = x + self._get(f"{layer}.layer_scale_2.scale") * y
        if module["output_dimension"] != module["d_model"]:
            x = x @ self._get(f"{name}.output_proj.weight").T
        return x

    def _sees(self, length: int, multiple: int) -> NDArray[np.bool_]:
        """[queries, keys]"""
        context = int(12.5 * multiple * self.seconds)
        query, key = np.arange(length)[:, None], np.arange(length)[None]
        sees = (key <= query) & (query - key < context)
        if self.chunk is not None:
            chunk = self.chunk * multiple
            end = np.minimum((query // chunk + 1) * chunk, length)  # of the query's chunk
            sees &= key >= end - context
        return sees

    def _attention(self, name: str, x: Array, heads: int, sees: NDArray[np.bool_]) -> Array:
        width = x.shape[1]
        qkv = x @ self._either(name, "in_proj", "in_projs.0").T
        q, k, v = qkv.reshape(len(x), 3, heads, width // heads).transpose(1, 2, 0, 3)
        q, k = _turned(q), _turned(k)
        scores = q @ k.transpose(0, 2, 1) / np.sqrt(width // heads)
        scores[:, ~sees] = -np.inf
        weights = np.exp(scores - scores.max(axis=2, keepdims=True))
        out = weights @ v / weights.sum(axis=2, keepdims=True)
        joined = out.transpose(1, 0, 2).reshape(len(x), width)
        return np.asarray(joined @ self._either(name, "out_proj", "out_projs.0").T)

    def _either(self, name: str, nano: str, full: str) -> Array:
        held = f"{name}.{nano}.weight" in self.tensors
        return self._get(f"{name}.{nano if held else full}.weight")

    def _layer_norm(self, name: str, x: Array) -> Array:
        centred = x - x.mean(axis=1, keepdims=True)
        x = centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + 1e-5)
        return x * self._get(f"{name}.weight") + self._get(f"{name}.bias")


def _turned(x: Array) -> Array:
    """[heads, positions, head_dim]: pairs (2j, 2j + 1) turned by p * 10000^(-2j / head_dim)."""
    head_dim = x.shape[2]
    angle = np.arange(x.shape[1])[:, None] * 10000.0 ** (-np.arange(0, head_dim, 2) / head_dim)
    pairs = (x[..., ::2] + 1j * x[..., 1::2]) * np.exp(1j * angle)
    return np.stack([pairs.real, pairs.imag], axis=-1).reshape(x.shape)
