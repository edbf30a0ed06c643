"""Which devices are listed, and what "auto" stands for."""

import pytest

from mosstalk.compute import devices
from mosstalk.compute.devices import DeviceFacts, chosen_device, list_devices

SMALL, LARGE = 500_000_000, 4_000_000_000
GPU = DeviceFacts("cuda:0", "cuda", "a GPU", memory_bytes=8_000_000_000)
SHORT = DeviceFacts("cuda:0", "cuda", "a small GPU", memory_bytes=4_500_000_000)
CARD = DeviceFacts("vulkan:0", "vulkan", "a card")
SOFTWARE = DeviceFacts("vulkan:0", "vulkan", "llvmpipe", is_software=True)
NONE = DeviceFacts("cuda", "cuda", problem="there is none")


@pytest.mark.parametrize(
    ("model_bytes", "found", "wanted"),
    [
        (SMALL, [GPU, CARD], "cpu"),
        (LARGE, [GPU, CARD], "cuda:0"),
        (LARGE, [NONE, CARD], "vulkan:0"),
        (LARGE, [SHORT, CARD], "vulkan:0"),
        (LARGE, [SHORT, SOFTWARE], "cpu"),
        (LARGE, [NONE], "cpu"),
    ],
)
def test_auto_is_the_cpu_for_small_models_and_a_gpu_that_holds_large_ones(
    model_bytes: int, found: list[DeviceFacts], wanted: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def of_kind(kind: str) -> list[DeviceFacts]:
        return [device for device in found if device.kind == kind]

    monkeypatch.setattr(devices, "_found", of_kind)
    assert chosen_device("auto", model_bytes) == wanted


def test_a_named_device_stays_what_it_is() -> None:
    assert chosen_device("cuda:1", SMALL) == "cuda:1"
    assert chosen_device("tpu", LARGE) == "tpu"  # open_backend says what is wrong with it


def test_every_kind_is_listed_with_what_it_is_or_what_is_missing() -> None:
    found = list_devices()
    assert {device.kind for device in found} == {"cpu", "cuda", "vulkan"}
    assert found[0].name == "cpu" and found[0].title and found[0].cores >= 1
    assert all(device.title or device.problem for device in found)


@pytest.mark.parametrize(("kind", "package"), [("cuda", "torch"), ("vulkan", "wgpu")])
def test_a_package_that_is_not_installed_is_named(
    kind: str, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    missing = next(device for device in list_devices() if device.kind == kind)
    assert missing.problem == f"{package} is not installed; pip install 'mosstalk[{kind}]'"
