"""Opening the vulkan backend where its library may be missing."""

from mosstalk.compute.backend import Backend
from mosstalk.compute.vulkan.adapter import choose_adapter


def open_vulkan(choice: str = "") -> Backend:
    """The backend on the device numbered or named `choice`; by default the first of the best kind.

    Raises:
        UsageError: wgpu is not installed, or no device is numbered or named so.
        DeviceError: there is no device, or it cannot be opened.
    """
    adapter = choose_adapter(choice)
    from mosstalk.compute.vulkan.backend import VulkanBackend  # needs the library

    return VulkanBackend(adapter)
