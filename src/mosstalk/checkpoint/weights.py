"""Which tensors a weight type applies to, and what is stored for the others."""

import re

from mosstalk.checkpoint.storage import Q8_BLOCK_LEN, StorageType, StoredTensor, convert

# Small, and every code or weight depends on them: a codec's codebooks, and the gains and
# directions of weight-normalised layers, which are multiplied out in float32 at load.
_ALWAYS_FLOAT32 = re.compile(
    r"(^|\.)codebook\.|\.parametrizations\.weight\.original[01]$|\.weight_[gv]$"
)


def keeps_float32(name: str, shape: tuple[int, ...]) -> bool:
    """Whether a tensor is stored as f32 whatever the weight type: all but matrices are."""
    return len(shape) < 2 or _ALWAYS_FLOAT32.search(name) is not None


def storage_for(tensor: StoredTensor, wanted: StorageType) -> StorageType:
    """How `tensor` is stored under a weight type.

    `NATIVE` keeps what it has. q8_0 needs rows of whole blocks; other matrices become f16.
    """
    if wanted is StorageType.NATIVE:
        return tensor.storage
    if keeps_float32(tensor.name, tensor.shape):
        return StorageType.F32
    if wanted is StorageType.Q8_0 and tensor.shape[-1] % Q8_BLOCK_LEN:
        return StorageType.F16
    return wanted


def as_weight(tensor: StoredTensor, wanted: StorageType) -> StoredTensor:
    """`tensor` stored as the weight type asks; the same object where nothing changes."""
    return convert(tensor, storage_for(tensor, wanted))
