"""Files as read-only memory maps, and tensors as views into them."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosstalk.checkpoint.storage import (
    Q8_BLOCK_BYTES,
    Q8_BLOCK_LEN,
    StorageType,
    StoredTensor,
    packed_bytes,
)
from mosstalk.errors import CheckpointError

Bytes = NDArray[np.uint8]

_ITEM: Mapping[StorageType, np.dtype[Any]] = {
    StorageType.F32: np.dtype("<f4"),
    StorageType.F16: np.dtype("<f2"),
    StorageType.BF16: np.dtype("<u2"),
}


def map_file(path: Path) -> Bytes:
    """The bytes of a non-empty file, mapped and not read; raises CheckpointError."""
    try:
        return np.memmap(path, np.uint8, "r").view(np.ndarray)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise CheckpointError(f"cannot read {path}: {reason}") from None


def tensor_at(
    buffer: Bytes, offset: int, name: str, shape: tuple[int, ...], storage: StorageType
) -> StoredTensor:
    """The tensor whose packed bytes start at `offset` of `buffer`, which must hold all of them.

    A view; only a tensor that is not aligned to its item size is copied.
    """
    raw = buffer[offset : offset + packed_bytes(shape, storage)]
    if storage is StorageType.Q8_0:
        row_bytes = shape[-1] // Q8_BLOCK_LEN * Q8_BLOCK_BYTES
        return StoredTensor(name, shape, storage, raw.reshape(math.prod(shape[:-1]), row_bytes))
    data = raw.view(_ITEM[storage])
    if not data.flags.aligned:
        data = data.copy()
    return StoredTensor(name, shape, storage, data.reshape(shape))
