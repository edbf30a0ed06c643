"""What there is to compute on, and which device "auto" stands for."""

import importlib.util
from dataclasses import dataclass

from mosstalk.errors import MosstalkError

AUTO = "auto"
# Bytes of weights from which a GPU is chosen. A smaller model speaks many times faster than it is
# heard on any cpu of today, exactly and without the seconds that a GPU takes to start.
LARGE_MODEL_BYTES = 10**9
# Of the weights: room for caches and what a run needs beside them.
_MEMORY_FACTOR = 1.25
_PACKAGES = {"cuda": "torch", "vulkan": "wgpu"}


@dataclass(frozen=True, slots=True)
class DeviceFacts:
    """A device that programs may run on, or a kind of which there is none.

    Attributes:
        name: for `--device`.
        kind: cpu, cuda or vulkan.
        title: the maker's name of it; "" where there is none.
        driver: its driver, or the instruction set of the kernels.
        memory_bytes: its own memory, or 0 where that is not known.
        cores: of the cpu, 0 otherwise.
        is_software: a program on the cpu that passes for a GPU.
        problem: why it cannot be used; "" where it can.
    """

    name: str
    kind: str
    title: str = ""
    driver: str = ""
    memory_bytes: int = 0
    cores: int = 0
    is_software: bool = False
    problem: str = ""


def list_devices() -> list[DeviceFacts]:
    """The cpu, every CUDA GPU and every Vulkan adapter; a kind without any has its problem."""
    return [_cpu(), *_found("cuda"), *_found("vulkan")]


def chosen_device(name: str, model_bytes: int) -> str:
    """`name`, or what "auto" stands for with a model of so many bytes of weights.

    Below LARGE_MODEL_BYTES that is the cpu. Otherwise it is the first CUDA GPU, else the first
    Vulkan adapter that is no software, whose memory holds the model; else the cpu.
    """
    if name != AUTO or model_bytes < LARGE_MODEL_BYTES:
        return "cpu" if name == AUTO else name
    for device in (*_found("cuda"), *_found("vulkan")):
        # Vulkan does not tell its memory.
        holds = not device.memory_bytes or device.memory_bytes >= _MEMORY_FACTOR * model_bytes
        if not device.problem and not device.is_software and holds:
            return device.name
    return "cpu"


def _cpu() -> DeviceFacts:
    from mosstalk.compute.cpu.backend import CpuBackend, physical_cores
    from mosstalk.compute.cpu.processor import processor_name

    kernels = CpuBackend(1).kernels
    return DeviceFacts("cpu", "cpu", processor_name(), f"{kernels} kernels", cores=physical_cores())


def _found(kind: str) -> list[DeviceFacts]:
    package = _PACKAGES[kind]
    if importlib.util.find_spec(package) is None:
        problem = f"{package} is not installed; pip install 'mosstalk[{kind}]'"
        return [DeviceFacts(kind, kind, problem=problem)]
    try:
        found = _cuda_gpus() if kind == "cuda" else _vulkan_adapters()
    except (MosstalkError, ImportError, OSError) as error:
        return [DeviceFacts(kind, kind, problem=str(error))]
    return found or [DeviceFacts(kind, kind, problem="no adapter was found")]


def _cuda_gpus() -> list[DeviceFacts]:
    import torch

    from mosstalk.compute.cuda.facts import driver_version, gpu_name, gpu_problem, memory_bytes

    problem = gpu_problem()
    if problem:
        return [DeviceFacts("cuda", "cuda", problem=problem)]
    found = []
    for index in range(torch.cuda.device_count()):
        gpu = torch.device("cuda", index)
        title, driver, size = gpu_name(gpu), f"driver {driver_version()}", memory_bytes(gpu)
        found.append(DeviceFacts(f"cuda:{index}", "cuda", title, driver, size))
    return found


def _vulkan_adapters() -> list[DeviceFacts]:
    from mosstalk.compute.vulkan.adapter import adapters

    return [
        DeviceFacts(
            f"vulkan:{index}",
            "vulkan",
            adapter.name,
            f"driver {adapter.driver}",
            is_software=adapter.is_software,
        )
        for index, adapter in enumerate(adapters())
    ]
