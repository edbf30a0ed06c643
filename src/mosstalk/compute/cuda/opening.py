"""Opens the backend where there is a PyTorch and a GPU, and says what is missing where not."""

from typing import TYPE_CHECKING

from mosstalk.errors import DeviceError, UsageError

if TYPE_CHECKING:
    from mosstalk.compute.cuda.backend import CudaBackend

_INSTALL = "pip install 'mosstalk[cuda]'"


def open_cuda(which: str = "") -> "CudaBackend":
    """The GPU number `which`, the first by default; "cpu" is PyTorch's own CPU, for tests.

    Raises UsageError where PyTorch is not installed or no GPU has this number, and DeviceError
    where there is no GPU at all.
    """
    try:
        import torch
    except (ImportError, OSError) as error:  # OSError: libraries of its own that are missing
        raise UsageError(
            f"--device cuda needs PyTorch, which cannot be imported ({error}); install it with "
            f"{_INSTALL}, or compute with --device cpu"
        ) from error
    from mosstalk.compute.cuda.backend import CudaBackend
    from mosstalk.compute.cuda.facts import gpu_problem

    if which == "cpu":
        return CudaBackend(torch.device("cpu"))
    problem = gpu_problem()
    if problem:
        raise DeviceError(
            f"--device cuda: {problem}; see that nvidia-smi lists a GPU and that PyTorch is one "
            f"for its driver ({_INSTALL}), or compute with --device cpu"
        )
    count = torch.cuda.device_count()
    if which and not (which.isascii() and which.isdigit() and int(which) < count):
        raise UsageError(
            f"there is no device cuda:{which}; give cuda:0 to cuda:{count - 1}, or cuda alone"
        )
    return CudaBackend(torch.device("cuda", int(which or 0)))
