"""The cuda backend for tests: on the first GPU, or on PyTorch's CPU device where there is none.

A test that asks for it skips where PyTorch is not installed.
"""

from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING

import pytest

from mosstalk.compute.cuda.opening import open_cuda

if TYPE_CHECKING:
    from mosstalk.compute.cuda.backend import CudaBackend


def need_torch() -> None:
    if find_spec("torch") is None:
        pytest.skip(
            "PyTorch is not installed; pip install 'mosstalk[cuda]'", allow_module_level=True
        )
    import torch

    torch.set_num_threads(1)  # the tests' sizes gain nothing from more


def has_gpu() -> bool:
    need_torch()
    import torch

    return torch.cuda.is_available()


@cache
def cuda_backend() -> "CudaBackend":
    """Opened once: its kernels and memories serve all tests."""
    if has_gpu():
        return open_cuda()
    return open_cuda("cpu")
