"""What our calls ask of PyTorch, and only for as long as they last."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

_INHERITED = "none"  # a library's own setting that leaves it to the one for all


@contextmanager
def full_precision(device: torch.device) -> Iterator[None]:
    """Float32 products are float32 inside, not TF32 or bfloat16; no autograd, no autocast.

    What the process has set is back at the end.
    """
    held, by_library = _precision(), [item.fp32_precision for item in _libraries()]
    torch.set_float32_matmul_precision("highest")  # of all libraries
    try:
        with torch.no_grad(), torch.autocast(device.type, enabled=False):
            yield
    finally:
        if held is not None:
            torch.set_float32_matmul_precision(held)
        for library, precision in zip(_libraries(), by_library, strict=True):
            library.fp32_precision = _INHERITED
            if library.fp32_precision != precision:
                library.fp32_precision = precision


def _precision() -> str | None:
    """The setting for all; None where the process has set the libraries' own to something else."""
    try:
        precision: str = torch.get_float32_matmul_precision()
    except RuntimeError:
        return None
    return precision


def _libraries() -> list[Any]:
    """What has a setting of its own, from PyTorch 2.9 on."""
    products = (torch.backends.cuda.matmul, torch.backends.mkldnn.matmul)
    if not hasattr(products[0], "fp32_precision"):
        return []
    return list(products)
