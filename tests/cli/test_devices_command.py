"""`mosstalk devices`: what is there, and how fast it speaks a model."""

import json

import pytest

from mosstalk.cli import devices, main
from mosstalk.compute.devices import DeviceFacts

CPU = DeviceFacts("cpu", "cpu", "A Processor", "avx2 kernels", cores=6)
GPU = DeviceFacts("cuda:0", "cuda", "A GPU", "driver 1.2", 24_000_000_000)
MISSING = DeviceFacts("vulkan", "vulkan", problem="wgpu is not installed")


@pytest.fixture(autouse=True)
def machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine with a cpu, a GPU that fails when it is opened, and no Vulkan."""
    monkeypatch.setattr(devices, "list_devices", lambda: [CPU, GPU, MISSING])


def test_devices_are_listed_with_what_is_known_of_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["devices"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "cpu     A Processor, avx2 kernels, 6 cores",
        "cuda:0  A GPU, driver 1.2, 24.0 GB",
        "vulkan  none: wgpu is not installed",
    ]


def test_devices_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["devices", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert [device["name"] for device in report["devices"]] == ["cpu", "cuda:0", "vulkan"]
    assert report["devices"][1]["memory_bytes"] == 24_000_000_000
    assert "fastest" not in report


def test_devices_speak_a_model_and_the_fastest_is_named(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    real = devices.load

    def load(model: str, *, device: str, **options: object) -> object:
        return real(model, device="tpu" if device == "cuda:0" else device, **options)

    monkeypatch.setattr(devices, "load", load)
    assert main(["devices", "--model", "sprout", "--frames", "5", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    cpu, gpu, vulkan = (device["speed"] for device in report["devices"])
    assert cpu["rtf"] > 0 and cpu["ttfa_ms"] > 0 and cpu["frames"] == 5
    assert gpu["rtf"] is None and "unknown device 'tpu'" in gpu["problem"]
    assert vulkan is None and report["fastest"] == "cpu"


def test_devices_say_that_a_small_model_may_be_fastest_on_the_cpu(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    speeds = {"cpu": devices._Speed(0.1, 20.0, 25), "cuda:0": devices._Speed(0.2, 50.0, 25)}
    monkeypatch.setattr(devices, "_measure", lambda name, args: speeds[name])
    assert main(["devices", "--model", "sprout"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].endswith("6 cores; RTF 0.100, first audio after 20 ms")
    assert lines[-1].startswith("fastest for this model: --device cpu (a small model often is")


def test_devices_with_a_model_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["devices", "--model", "no/such/model"]) == 1
    assert "no/such/model" in capsys.readouterr().err
    assert main(["devices", "--model", "sprout", "--frames", "0"]) == 2
