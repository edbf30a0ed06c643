"""Which device is chosen and how it is called; what happens where there is none, or it fails."""

import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from compute_programs import outputs_of, random_floats, random_weight
from vulkan_device import vulkan_adapters, vulkan_backend

from mosstalk.compute.backend import open_backend
from mosstalk.compute.program import Program
from mosstalk.compute.vulkan.adapter import adapters, choose_adapter
from mosstalk.compute.vulkan.shader import Shader
from mosstalk.errors import DeviceError, UsageError

Patch = pytest.MonkeyPatch


def _adapter(device: str, kind: str, interface: str) -> SimpleNamespace:
    info = {
        "device": device,
        "adapter_type": kind,
        "backend_type": interface,
        "description": "Mesa 22",
    }
    return SimpleNamespace(info=info)


_SOFTWARE = _adapter("llvmpipe", "CPU", "Vulkan")
_LAPTOP = _adapter("Iris Xe", "IntegratedGPU", "D3D12")
_CARD = _adapter("Radeon RX 7600", "DiscreteGPU", "Vulkan")
_APPLE = _adapter("Apple M3", "IntegratedGPU", "Metal")
_OPENGL = _adapter("Radeon RX 7600", "DiscreteGPU", "OpenGL")


def _offer(patch: Patch, *handles: SimpleNamespace) -> None:
    wgpu = pytest.importorskip("wgpu")
    patch.setattr(wgpu, "gpu", SimpleNamespace(enumerate_adapters_sync=lambda: list(handles)))


def test_vulkan_takes_hardware_before_software_and_leaves_opengl_out(monkeypatch: Patch) -> None:
    _offer(monkeypatch, _OPENGL, _SOFTWARE, _LAPTOP, _CARD)
    assert [adapter.handle for adapter in adapters()] == [_CARD, _LAPTOP, _SOFTWARE]
    assert choose_adapter().handle is _CARD


@pytest.mark.parametrize(
    ("choice", "wanted"),
    [("0", _CARD), ("2", _SOFTWARE), ("LLVMpipe", _SOFTWARE), ("iris", _LAPTOP)],
)
def test_vulkan_is_chosen_by_number_or_part_of_the_name(
    monkeypatch: Patch, choice: str, wanted: SimpleNamespace
) -> None:
    _offer(monkeypatch, _SOFTWARE, _LAPTOP, _CARD)
    assert choose_adapter(choice).handle is wanted


@pytest.mark.parametrize(
    ("handle", "name"),
    [
        (_SOFTWARE, "llvmpipe (Vulkan, software)"),
        (_LAPTOP, "Iris Xe (Direct3D 12)"),
        (_APPLE, "Apple M3 (Metal)"),
    ],
)
def test_vulkan_names_the_interface_and_software(
    monkeypatch: Patch, handle: SimpleNamespace, name: str
) -> None:
    _offer(monkeypatch, handle)
    assert choose_adapter().name == name
    assert choose_adapter().identity == f"{name}, driver Mesa 22"


@pytest.mark.parametrize("choice", ["3", "geforce"])
def test_vulkan_unknown_choice_lists_what_there_is(monkeypatch: Patch, choice: str) -> None:
    _offer(monkeypatch, _SOFTWARE, _CARD)
    listed = (
        rf"no device vulkan:{choice}; vulkan:0 is Radeon RX 7600 \(Vulkan\); "
        r"vulkan:1 is llvmpipe \(Vulkan, software\)"
    )
    with pytest.raises(UsageError, match=listed):
        open_backend(f"vulkan:{choice}")


def test_vulkan_without_a_device_says_what_to_install(monkeypatch: Patch) -> None:
    _offer(monkeypatch, _OPENGL)
    with pytest.raises(DeviceError, match=r"no Vulkan, Metal or Direct3D 12 device.*--device cpu"):
        open_backend("vulkan")


def test_vulkan_without_its_library_says_how_to_install_it(monkeypatch: Patch) -> None:
    monkeypatch.setitem(sys.modules, "wgpu", None)
    with pytest.raises(UsageError, match=r"pip install 'mosstalk\[vulkan\]'.*--device cpu"):
        open_backend("vulkan")


def test_vulkan_library_that_fails_is_a_device_error(monkeypatch: Patch) -> None:
    def fail() -> None:
        raise RuntimeError("no loader")

    wgpu = pytest.importorskip("wgpu")
    monkeypatch.setattr(wgpu, "gpu", SimpleNamespace(enumerate_adapters_sync=fail))
    with pytest.raises(DeviceError, match="cannot list devices: no loader"):
        open_backend("vulkan")


def test_vulkan_identity_names_device_driver_and_library() -> None:
    adapter, identity = vulkan_adapters()[0], vulkan_backend().identity
    assert identity.startswith(f"{adapter.device} ({adapter.interface}")
    assert ", driver " in identity and ", wgpu " in identity
    assert ("software" in identity) == adapter.is_software
    assert open_backend("vulkan:0").identity == identity


def _double(backend: Any) -> Any:
    program = Program(2)
    x = program.input("x", 8)
    program.output("out", program.add(x, x))
    return outputs_of(backend, program, {"x": random_floats(1, 2, 8)}, 2)["out"]


def test_vulkan_lost_device_is_an_error_and_the_process_goes_on() -> None:
    vulkan_adapters()
    backend: Any = open_backend("vulkan")
    program = Program(1)
    x = program.input("x", 8)
    program.output("out", program.add(x, x))
    built = backend.build(program)
    built.run(1)
    backend.device._device.destroy()
    with pytest.raises(DeviceError, match=r"lost.*--device"):
        built.run(1)
    with pytest.raises(DeviceError, match=r"--device"):
        built.array(program.outputs["out"])
    with pytest.raises(DeviceError, match=r"--device"):
        backend.build(program)
    assert np.array_equal(_double(open_backend("vulkan")), 2 * random_floats(1, 2, 8))


def test_vulkan_out_of_memory_is_an_error_and_the_device_goes_on(monkeypatch: Patch) -> None:
    wgpu = pytest.importorskip("wgpu")
    backend: Any = vulkan_backend()

    def refuse(**_: object) -> None:
        raise wgpu.GPUOutOfMemoryError("not enough memory left")

    with monkeypatch.context() as patch:
        patch.setattr(backend.device._device, "create_buffer", refuse)
        with pytest.raises(DeviceError, match="no 64 bytes left .*not enough memory"):
            _double(backend)
    assert np.array_equal(_double(backend), 2 * random_floats(1, 2, 8))


def test_vulkan_buffer_beyond_the_binding_limit_is_an_error() -> None:
    backend: Any = vulkan_backend()
    rows = backend.device.binding_limit // 4 + 1
    program = Program(rows)
    x = program.input("x", 1)
    program.output("out", program.add(x, x))
    with pytest.raises(DeviceError, match="in one piece"):
        backend.build(program)


def test_vulkan_shader_that_does_not_compile_is_an_error_that_names_it() -> None:
    backend: Any = vulkan_backend()
    broken = Shader("broken one", (), ("width: u32",), "fn main( {")
    with pytest.raises(DeviceError, match="does not take the shader broken one"):
        backend.device.pipeline(broken)
    assert np.array_equal(_double(backend), 2 * random_floats(1, 2, 8))


def test_vulkan_programs_share_the_weights_that_they_have_in_common(monkeypatch: Patch) -> None:
    backend: Any = vulkan_backend()
    weight, bias = random_weight(1, 24, 16), random_weight(2, 24)
    copied = []
    make: Callable[..., Any] = backend.device.buffer

    def buffer(num_bytes: int, label: str, data: Any = None) -> Any:
        copied.extend([label] if data is not None else [])
        return make(num_bytes, label, data)

    monkeypatch.setattr(backend.device, "buffer", buffer)
    programs = []
    for rows in (1, 3):
        program = Program(rows)
        program.output("out", program.linear(program.input("x", 16), weight, bias))
        programs.append(backend.build(program))
    assert copied == ["weight 1", "weight 2"]
