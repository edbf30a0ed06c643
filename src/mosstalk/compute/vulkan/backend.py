"""Runs programs on a device of Vulkan, Metal or Direct3D 12."""

from importlib.metadata import version

from mosstalk.compute.program import Program
from mosstalk.compute.vulkan.adapter import Adapter
from mosstalk.compute.vulkan.device import Device
from mosstalk.compute.vulkan.program import VulkanProgram
from mosstalk.compute.vulkan.weights import PlacedWeights


class VulkanBackend:
    """WGSL shaders on one device. Raises DeviceError where it cannot be opened."""

    name = "vulkan"
    threads = 1
    exact_rows = True

    def __init__(self, adapter: Adapter) -> None:
        self._adapter = adapter
        self.device = Device(adapter)
        self._weights = PlacedWeights(self.device)

    @property
    def identity(self) -> str:
        """The device, the interface to it, its driver, and the library."""
        return f"{self._adapter.identity}, wgpu {version('wgpu')}"

    def build(self, program: Program) -> VulkanProgram:
        return VulkanProgram(program, self.device, self._weights)
