"""Speaking where the device asked for computes wrong."""

from pathlib import Path

import numpy as np
import pytest
from broken_backend import BrokenBackend

import mosstalk
from mosstalk import DeviceError, engine
from mosstalk.compute import ops
from mosstalk.compute.backend import Backend, open_backend

_TEXT = "One short sentence."


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> None:
    """A device "vulkan" of which one op is broken."""

    def opened(name: str, threads: int = 0) -> Backend:
        if name == "vulkan":
            return BrokenBackend(ops.LayerNorm, name=name)
        return open_backend(name, threads)

    monkeypatch.setattr(engine, "open_backend", opened)


@pytest.mark.usefixtures("broken")
def test_the_cpu_speaks_in_its_place_and_every_result_says_so(talker_path: Path) -> None:
    speaker = mosstalk.load(talker_path, device="vulkan", threads=1)
    (warning,) = speaker.warnings
    assert warning.startswith("vulkan fails its self-test: LayerNorm is off by ")
    wanted = mosstalk.load(talker_path, threads=1).say(_TEXT, "none", seed=7, max_frames=3)
    for _ in range(2):
        said = speaker.say(_TEXT, "none", seed=7, max_frames=3)
        assert np.array_equal(said.samples, wanted.samples)
        assert said.summary.device == "cpu"
        assert said.summary.warnings == (warning, *wanted.summary.warnings)
        assert said.summary.as_dict()["warnings"] == list(said.summary.warnings)


@pytest.mark.usefixtures("broken")
def test_strict_refuses_it(talker_path: Path) -> None:
    with pytest.raises(DeviceError, match=r"vulkan fails .* LayerNorm .* --strict"):
        mosstalk.load(talker_path, device="vulkan", strict=True)


def test_a_healthy_device_has_nothing_to_say(talker_path: Path) -> None:
    speaker = mosstalk.load(talker_path, threads=1, strict=True)
    assert speaker.warnings == ()
    assert "self-test" not in str(speaker.say("Hi.", "none", max_frames=1).summary.warnings)
