"""What our calls ask of PyTorch, and only for as long as they last."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch


@contextmanager
def full_precision(device: torch.device) -> Iterator[None]:
    """Float32 products are float32 inside, not TF32 or bfloat16; no autograd, no autocast.

    What the process has set is back at the end.
    """
    held = _held_precision()
    _set_precision(held, full=True)
    try:
        with torch.no_grad(), torch.autocast(device.type, enabled=False):
            yield
    finally:
        _set_precision(held, full=False)


def _held_precision() -> list[tuple[Any, str]] | str:
    """Settings by library where this PyTorch has them (2.9), else the one for all."""
    if not hasattr(torch.backends.cuda.matmul, "fp32_precision"):
        precision: str = torch.get_float32_matmul_precision()
        return precision
    products = (torch.backends.cuda.matmul, torch.backends.mkldnn.matmul)
    return [(setting, setting.fp32_precision) for setting in products]


def _set_precision(held: list[tuple[Any, str]] | str, *, full: bool) -> None:
    if isinstance(held, str):
        torch.set_float32_matmul_precision("highest" if full else held)
        return
    for setting, value in held:
        setting.fp32_precision = "ieee" if full else value
