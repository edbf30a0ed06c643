"""A short hash of a codec, so that saved codes are only decoded by the codec that made them."""

import hashlib
import json

import numpy as np

from mosstalk.checkpoint.parts import Part
from mosstalk.checkpoint.weights import keeps_float32

_SAMPLES = 1024  # values hashed per tensor
_HEX_DIGITS = 16

# Keys that say how a library runs or loads the codec, not what it computes.
_RUNTIME_KEYS = frozenset(
    {
        "_name_or_path",
        "architectures",
        "attention_backend",
        "attention_implementation",
        "auto_map",
        "codec_compute_dtype",
        "compute_dtype",
        "dtype",
        "torch_dtype",
        "transformers_version",
    }
)
# Names that differ between file formats, and the one that is hashed.
_HASHED_SUFFIX = {
    ".weight_g": ".parametrizations.weight.original0",
    ".weight_v": ".parametrizations.weight.original1",
    ".self_attn.in_projs.0.weight": ".self_attn.in_proj.weight",
    ".self_attn.out_projs.0.weight": ".self_attn.out_proj.weight",
}


def codec_identity(codec: Part | None) -> str:
    """16 hex digits, or "" without a codec.

    Equal for one codec in any file format and weight type: it covers the config, all names and
    shapes, and values of those tensors that no weight type rounds.
    """
    if codec is None:
        return ""
    digest = hashlib.sha256()
    config = {key: value for key, value in codec.config.items() if key not in _RUNTIME_KEYS}
    digest.update(json.dumps(config, sort_keys=True).encode())
    names = {_hashed_name(name): name for name in codec.tensors}
    for hashed in sorted(names):
        tensor = codec.tensors[names[hashed]]
        digest.update(f"\n{hashed} {tensor.shape}".encode())
        if keeps_float32(hashed, tensor.shape) and tensor.num_bytes:
            values = tensor.to_float32().reshape(-1)
            sampled = values[:: -(-values.size // _SAMPLES)]
            digest.update(np.ascontiguousarray(sampled).tobytes())
    return digest.hexdigest()[:_HEX_DIGITS]


def _hashed_name(name: str) -> str:
    for suffix, hashed in _HASHED_SUFFIX.items():
        if name.endswith(suffix):
            return name.removesuffix(suffix) + hashed
    return name
