"""The vulkan backend for tests, on the first device; a test that asks for it skips without one."""

from functools import cache

import pytest
from cuda_device import cuda_backend

from mosstalk.compute.backend import Backend, open_backend
from mosstalk.compute.vulkan.adapter import Adapter, adapters
from mosstalk.errors import DeviceError, UsageError


@cache
def vulkan_backend() -> Backend:
    """Opened once: its compiled shaders serve all tests."""
    vulkan_adapters()
    return open_backend("vulkan")


def vulkan_adapters() -> list[Adapter]:
    """All devices, one at least."""
    try:
        found = adapters()
    except (UsageError, DeviceError) as error:
        pytest.skip(str(error))
    if not found:
        pytest.skip("there is no Vulkan device; mesa-vulkan-drivers is one in software")
    return found


def backend_named(name: str) -> Backend:
    """A backend for a test of several; two threads where it has any."""
    if name == "cuda":
        return cuda_backend()
    return vulkan_backend() if name == "vulkan" else open_backend(name, 2)
