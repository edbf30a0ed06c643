"""Which device to compute on: what wgpu finds, how it is chosen and named."""

from dataclasses import dataclass
from typing import Any

from mosstalk.errors import DeviceError, UsageError

INSTALL = "pip install 'mosstalk[vulkan]'"
# OpenGL is left out: it lacks what the shaders need.
_INTERFACES = {"Vulkan": "Vulkan", "Metal": "Metal", "D3D12": "Direct3D 12"}
# The most likely choice first; an unknown kind comes before a device that is the cpu itself.
_KINDS = ("DiscreteGPU", "IntegratedGPU", "Unknown", "CPU")
_SOFTWARE = "CPU"


@dataclass(frozen=True, slots=True)
class Adapter:
    """A device that wgpu offers."""

    handle: Any  # wgpu.GPUAdapter

    @property
    def device(self) -> str:
        """As its driver calls it."""
        return str(self.handle.info["device"])

    @property
    def interface(self) -> str:
        """Vulkan, Metal or Direct3D 12."""
        return _INTERFACES[str(self.handle.info["backend_type"])]

    @property
    def is_software(self) -> bool:
        """Whether it is a program on the cpu, such as Mesa's lavapipe."""
        return str(self.handle.info["adapter_type"]) == _SOFTWARE

    @property
    def name(self) -> str:
        """The device, the interface to it, and whether it is software."""
        software = ", software" if self.is_software else ""
        return f"{self.device} ({self.interface}{software})"

    @property
    def driver(self) -> str:
        """As the driver calls itself and its version."""
        return str(self.handle.info["description"] or "unknown")

    @property
    def identity(self) -> str:
        """The name and the driver."""
        return f"{self.name}, driver {self.driver}"


def choose_adapter(choice: str = "") -> Adapter:
    """The adapter numbered or named `choice`; by default the first of the best kind.

    A number counts in the order of `adapters`. A name is part of an adapter's, in any case.

    Raises:
        UsageError: the library is not installed, or nothing is numbered or named so.
        DeviceError: there is no device.
    """
    found = adapters()
    if not found:
        raise DeviceError(
            "there is no Vulkan, Metal or Direct3D 12 device; install the driver of the graphics "
            "card (or mesa-vulkan-drivers for a slow one in software), or use --device cpu"
        )
    if not choice:
        return found[0]
    if choice.isdecimal():
        fitting = found[int(choice) : int(choice) + 1]
    else:
        fitting = [adapter for adapter in found if choice.lower() in adapter.name.lower()]
    if not fitting:
        listed = "; ".join(f"vulkan:{i} is {adapter.name}" for i, adapter in enumerate(found))
        raise UsageError(f"there is no device vulkan:{choice}; {listed}")
    return fitting[0]


def adapters() -> list[Adapter]:
    """What wgpu finds, hardware first; software and hardware in its order otherwise.

    Raises UsageError where the library is not installed, DeviceError where it fails.
    """
    try:
        import wgpu
    except ImportError as error:
        raise UsageError(
            f"--device vulkan needs the wgpu library ({error}); install it with {INSTALL}, "
            "or use --device cpu"
        ) from error
    try:
        handles = wgpu.gpu.enumerate_adapters_sync()
    except Exception as error:  # the library's own and those of the C interface under it
        raise DeviceError(f"wgpu cannot list devices: {error}; use --device cpu") from error
    known = [handle for handle in handles if str(handle.info["backend_type"]) in _INTERFACES]
    return [Adapter(handle) for handle in sorted(known, key=_rank)]


def _rank(handle: Any) -> int:
    kind = str(handle.info["adapter_type"])
    return _KINDS.index(kind if kind in _KINDS else "Unknown")
