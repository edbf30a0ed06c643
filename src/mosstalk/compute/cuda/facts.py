"""What GPUs PyTorch sees, and how they are called."""

import ctypes
import sys
import warnings
from contextlib import suppress

import torch

_DRIVER_LIBRARY = "nvml.dll" if sys.platform == "win32" else "libnvidia-ml.so.1"
_DRIVER_BYTES = 80  # longest version that the library writes


def gpu_problem() -> str:
    """Why there is no GPU to compute on; "" where there is one."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        found = torch.cuda.is_available() and torch.cuda.device_count() > 0
    if found:
        return ""
    if torch.version.cuda is None:
        return f"PyTorch {torch.__version__} is built without CUDA"
    if told:  # such as a driver that is older than PyTorch needs
        return " ".join(str(told[0].message).split())
    return f"PyTorch {torch.__version__} finds no NVIDIA GPU"


def gpu_name(device: torch.device) -> str:
    """The GPU's name as its maker has it."""
    name: str = torch.cuda.get_device_name(device)
    return name


def memory_bytes(device: torch.device) -> int:
    """The GPU's whole memory."""
    total: int = torch.cuda.get_device_properties(device).total_memory
    return total


def driver_version() -> str:
    """The version of NVIDIA's driver; "unknown" where its management library does not say."""
    version = ctypes.create_string_buffer(_DRIVER_BYTES)
    with suppress(OSError, AttributeError):
        library = ctypes.CDLL(_DRIVER_LIBRARY)
        if library.nvmlInit_v2() == 0:
            library.nvmlSystemGetDriverVersion(version, _DRIVER_BYTES)
            library.nvmlShutdown()
    return version.value.decode("ascii", "replace") or "unknown"
