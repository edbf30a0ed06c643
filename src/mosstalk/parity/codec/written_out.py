"""The codec written out from its specification: all positions at once, in float64 NumPy.

No programs, no caches, no state: a window is a mask over the positions. Weights are looked up in
the checkpoint by name. Slow, and for comparing only. Source: spec nano.md 5.1 to 5.3, spec
voicegen.md 6.2 to 6.4.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mosstalk.checkpoint.storage import StoredTensor
from mosstalk.parity.codec.layout import Layout, Patch, Transformer, first_inputs

Real = NDArray[np.float64]

_NORM_EPS = 1e-5
_QUERIES = 256  # that are scored at a time
# erf and its slope at nodes; beyond the last it is 1 in float64.
_ERF_NODES_A_UNIT = 512
_ERF_LAST = 6 * _ERF_NODES_A_UNIT
_ERF_NODES = np.arange(-_ERF_LAST, _ERF_LAST + 1) / _ERF_NODES_A_UNIT
_ERF = np.array([math.erf(x) for x in _ERF_NODES])
_ERF_SLOPE = 2 / math.sqrt(math.pi) * np.exp(-(_ERF_NODES**2))
# Names of one tensor in the published checkpoints; the last is GGUF's.
_ALIASES = {
    "self_attn.in_proj.weight": ("self_attn.in_proj_weight", "self_attn.in_projs.0.weight"),
    "self_attn.out_proj.weight": ("self_attn.out_projs.0.weight",),
    "ffn.0.weight": ("linear1.weight",),
    "ffn.2.weight": ("linear2.weight",),
    "parametrizations.weight.original0": ("weight_g",),
    "parametrizations.weight.original1": ("weight_v",),
}


@dataclass(frozen=True, slots=True)
class WrittenOut:
    """The decoder and the encoder of one checkpoint."""

    layout: Layout
    tensors: Mapping[str, StoredTensor]

    def decode(self, codes: NDArray[np.int32], first: int = 0) -> Real:
        """Samples [channels, n] of the frames from `first` on of `codes` [frames, codebooks].

        Positions that these samples do not depend on are left out.
        """
        layout = self.layout
        at, cuts = first_inputs(layout.decoder, first, layout.frame_values)
        x = self._vectors(codes[at:])
        for module in layout.decoder:
            if isinstance(module, Patch):
                x = _unfold(x, module.size)
                at *= module.size
            else:
                mine, cuts = cuts[: module.layers], cuts[module.layers :]
                x = self._transformer(x, module, at, mine)
                at = mine[-1]
        values = x[first * layout.frame_values - at :, 0]
        return values.reshape(-1, layout.channels).T

    def code_scores(
        self, samples: NDArray[np.float32], codes: NDArray[np.int32]
    ) -> tuple[Real, Real]:
        """How near the codebooks' directions come to the samples' residuals, as cosines.

        Of `samples` [channels, n], whole frames, and the `codes` [frames, codebooks] found for
        them: the largest cosine, and that of the code found, both [frames, codebooks]. A residual
        is what the codes found so far leave, so that one code does not decide about the next.
        """
        x: Real = np.ascontiguousarray(samples.T, np.float64).reshape(-1, 1)
        for module in self.layout.encoder:
            if isinstance(module, Patch):
                x = _fold(x, module.size)
            else:
                x = self._transformer(x, module, 0, [0] * module.layers)
        residual = self._normed(x, "quantizer.input_proj")
        best, chosen = np.empty(codes.shape), np.empty(codes.shape)
        for i, found in enumerate(codes.T):
            name = f"quantizer.quantizers.{i}"
            table = self._tensor(f"{name}.codebook.weight")
            cosines = _unit(self._normed(residual, f"{name}.in_proj")) @ _unit(table).T
            best[:, i] = cosines.max(axis=1)
            chosen[:, i] = cosines[np.arange(len(found)), found]
            residual = residual - self._normed(table[found], f"{name}.out_proj")
        return best, chosen

    def _vectors(self, codes: NDArray[np.int32]) -> Real:
        """What the decoder gets for `codes`: [frames, width]."""
        summed: Real = np.zeros(1)
        for i, found in enumerate(codes.T):
            name = f"quantizer.quantizers.{i}"
            table = self._tensor(f"{name}.codebook.weight")
            summed = summed + self._normed(table[found], f"{name}.out_proj")
        return self._normed(summed, "quantizer.output_proj")

    def _transformer(self, x: Real, module: Transformer, at: int, cuts: list[int]) -> Real:
        """x [positions, width] whose first stands at `at`; what each layer gives begins at its
        place in `cuts`."""
        x = self._projected(x, f"{module.name}.input_proj.weight")
        for i, cut in enumerate(cuts):
            name = f"{module.name}.transformer.layers.{i}"
            normed = self._layer_norm(x, f"{name}.norm1")
            attended = self._attention(normed, module, name, at, cut)
            x = x[cut - at :] + self._tensor(f"{name}.layer_scale_1.scale") * attended
            at = cut
            inner = self._layer_norm(x, f"{name}.norm2") @ self._tensor(f"{name}.ffn.0.weight").T
            out = _gelu(inner) @ self._tensor(f"{name}.ffn.2.weight").T
            x = x + self._tensor(f"{name}.layer_scale_2.scale") * out
        return self._projected(x, f"{module.name}.output_proj.weight")

    def _attention(self, x: Real, module: Transformer, name: str, at: int, cut: int) -> Real:
        """Of the queries from position `cut` on to the positions from `at` on."""
        projected = x @ self._tensor(f"{name}.self_attn.in_proj.weight").T
        heads = projected.reshape(len(x), 3, module.heads, module.head_dim).transpose(1, 2, 0, 3)
        positions = np.arange(at, at + len(x))
        angles = _angles(positions, module)
        queries = _turned(heads[0], angles) / math.sqrt(module.head_dim)
        keys, values = _turned(heads[1], angles), np.ascontiguousarray(heads[2])
        out = np.empty((len(x) - (cut - at), module.heads * module.head_dim))
        for start in range(cut - at, len(x), _QUERIES):
            end = min(start + _QUERIES, len(x))
            seen = slice(max(0, start - module.window + 1), end)
            scores = queries[:, start:end] @ keys[:, seen].swapaxes(1, 2)
            distance = positions[start:end, None] - positions[seen]
            is_seen = (distance >= 0) & (distance < module.window)
            scores += np.where(is_seen, 0.0, -np.inf)
            scores -= scores.max(axis=2, keepdims=True)
            weights = np.exp(scores, out=scores)
            sums = weights.sum(axis=2, keepdims=True)
            mixed = (weights @ values[:, seen] / sums).swapaxes(0, 1)
            out[start - (cut - at) : end - (cut - at)] = mixed.reshape(end - start, -1)
        return out @ self._tensor(f"{name}.self_attn.out_proj.weight").T

    def _layer_norm(self, x: Real, name: str) -> Real:
        centred = x - x.mean(axis=1, keepdims=True)
        normed: Real = centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + _NORM_EPS)
        return normed * self._tensor(f"{name}.weight") + self._tensor(f"{name}.bias")

    def _projected(self, x: Real, name: str) -> Real:
        """By a matrix that a checkpoint may leave out between equal widths."""
        return x @ self._tensor(name).T if name in self.tensors else x

    def _normed(self, x: Real, name: str) -> Real:
        """By a weight-normalised convolution of kernel 1."""
        gain, direction = (
            self._tensor(f"{name}.parametrizations.weight.original{i}")[:, :, 0] for i in range(2)
        )
        return x @ (gain * _unit(direction)).T + self._tensor(f"{name}.bias")

    def _tensor(self, name: str) -> Real:
        names = [name]
        for end, others in _ALIASES.items():
            if name.endswith(f".{end}"):
                names += [name.removesuffix(end) + other for other in others]
        found = next(self.tensors[known] for known in names if known in self.tensors)
        return found.to_float32().astype(np.float64)


def _unfold(x: Real, size: int) -> Real:
    """[n, d * size] to [n * size, d]: channel c * size + k goes to channel c, place k."""
    return x.reshape(len(x), -1, size).swapaxes(1, 2).reshape(len(x) * size, -1)


def _fold(x: Real, size: int) -> Real:
    """The inverse of `_unfold`."""
    return x.reshape(len(x) // size, size, -1).swapaxes(1, 2).reshape(len(x) // size, -1)


def _angles(positions: NDArray[np.int64], module: Transformer) -> Real:
    """[positions, head_dim / 2]; the original rounds them to float32."""
    exponent = np.arange(0, module.head_dim, 2, dtype=np.float32) / np.float32(module.head_dim)
    frequencies = np.float32(1) / np.float32(module.rope_base) ** exponent
    return (positions.astype(np.float32)[:, None] * frequencies).astype(np.float64)


def _turned(x: Real, angles: Real) -> Real:
    """Pairs (2j, 2j + 1) of x [heads, positions, head_dim], turned."""
    pairs = x[..., 0::2] + 1j * x[..., 1::2]
    turned = pairs * np.exp(1j * angles)
    return np.stack([turned.real, turned.imag], axis=-1).reshape(x.shape)


def _unit(x: Real) -> Real:
    """Rows at unit length."""
    length: Real = np.linalg.norm(x, axis=1, keepdims=True)
    return x / np.maximum(length, 1e-12)


def _gelu(x: Real) -> Real:
    return 0.5 * x * (1 + _erf(x / math.sqrt(2)))


def _erf(x: Real) -> Real:
    """Taylor's two terms from the nearest node: 1e-9 off at most."""
    x = np.clip(x, _ERF_NODES[0], _ERF_NODES[-1])
    nearest = np.rint(np.nan_to_num(x) * _ERF_NODES_A_UNIT).astype(np.intp) + _ERF_LAST
    node = _ERF_NODES[nearest]
    away = x - node
    return _ERF[nearest] + _ERF_SLOPE[nearest] * away * (1 - node * away)
