"""The Triton kernel for packed weights, in Triton's interpreter and through its compiler.

Both need no GPU; where there is one, tests/compute/test_cuda_ops.py runs the kernel on it.
"""

import os
import subprocess
import sys

import pytest
from cuda_device import need_torch

need_torch()
pytest.importorskip("triton", reason="Triton is not installed; it comes with PyTorch for CUDA")

_INTERPRETED = """
import numpy as np, torch
from mosstalk.checkpoint.storage import StorageType, from_float32
from mosstalk.compute.cuda.packed_product import packed_product
from mosstalk.compute.cuda.weights import WeightStore

generator = np.random.default_rng(0)
def floats(*shape):
    return generator.standard_normal(shape).astype(np.float32)

for storage in (StorageType.F16, StorageType.BF16, StorageType.Q8_0):
    for out_rows, columns, rows in ((37, 160, 1), (5, 1600, 3), (8, 64, 8)):
        matrix, x, bias = from_float32("w", floats(out_rows, columns), storage), floats(rows, columns), floats(out_rows)
        weight = WeightStore(torch.device("cpu")).get(matrix)
        plain = x.astype(np.float64) @ matrix.to_float32().T.astype(np.float64)
        for given, wanted in ((None, plain), (torch.from_numpy(bias), plain + bias)):
            found = packed_product(torch.from_numpy(x), weight, given).numpy()
            assert np.abs(found - wanted).max() <= 2e-6 * np.abs(wanted).max(), (storage, rows)
print("same")
"""  # noqa: E501

_COMPILED = """
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource, compile
from mosstalk.compute.cuda.packed_product import _kernel

pointers = dict(out="*fp32", x="*fp32", values="*i8", scales="*fp16", bias="*fp32")
numbers = dict(num_rows="i32", num_out="i32", columns="i32")
constants = dict(has_scales=True, has_bias=True, block=32, x_rows=1, out_rows=4, width=1024)
signature = {**pointers, **numbers, **dict.fromkeys(constants, "constexpr")}
source = ASTSource(fn=_kernel, signature=signature, constexprs=constants)
assert "fma" in compile(source, target=GPUTarget("cuda", 80, 32)).asm["ptx"]
print("built")
"""


def _printed(code: str, **environment: str) -> str:
    """The last line that a process of its own prints: Triton reads its settings when imported."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[-1]


def test_packed_products_in_the_interpreter() -> None:
    assert _printed(_INTERPRETED, TRITON_INTERPRET="1") == "same"


def test_packed_products_build_for_a_gpu() -> None:
    """The compiler allows less than the interpreter."""
    assert _printed(_COMPILED) == "built"
