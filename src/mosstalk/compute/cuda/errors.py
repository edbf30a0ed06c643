"""PyTorch's errors about a device as ours."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from mosstalk.errors import DeviceError

# Parts of the messages of CUDA and its libraries, which PyTorch raises as RuntimeError.
_LIBRARIES = ("CUDA", "CUBLAS", "cuBLAS", "NVML", "Triton")


@contextmanager
def device_errors(device: torch.device) -> Iterator[None]:
    """Raises DeviceError where the device is out of memory or has failed.

    Errors that are not the device's pass as they are.
    """
    try:
        yield
    except torch.OutOfMemoryError as error:
        if device.type == "cuda":
            torch.cuda.empty_cache()
        raise DeviceError(
            f"{device} is out of memory; close what else uses it, choose a smaller --weight-type, "
            "or compute with --device cpu"
        ) from error
    except RuntimeError as error:
        reason = next(iter(str(error).splitlines()), "")
        if not any(name in reason for name in _LIBRARIES):
            raise
        raise DeviceError(
            f"{device} has failed ({reason}); start again, update its driver, or compute with "
            "--device cpu"
        ) from error
