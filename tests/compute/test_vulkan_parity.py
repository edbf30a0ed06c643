"""Models on the vulkan backend: parity of caches, streams, frames, and speech as on the cpu."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from vulkan_device import vulkan_backend

import mosstalk
from mosstalk.checkpoint.checkpoint import open_checkpoint
from mosstalk.cli import main
from mosstalk.codec.registry import load_codec
from mosstalk.compute.sampling import SamplingParams
from mosstalk.models.moss_tts_nano.frame_decoder import FrameSampling
from mosstalk.models.moss_tts_nano.model import NanoModel

TOLERANCE = 1e-4


def _report(capsys: pytest.CaptureFixture[str], *command: str) -> dict[str, Any]:
    vulkan_backend()  # or skip
    assert main(["parity", *command, "--backend", "vulkan:0", "--json"]) == 0
    report: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert report["passed"] and report["backend"] == "vulkan"
    assert report["tolerance"] == TOLERANCE
    return report


def _golden(golden_dir: Path, name: str) -> str:
    folder = golden_dir / "checkpoints" / name
    if not folder.is_dir():
        pytest.skip(f"{name} is not in {golden_dir}")
    return str(folder)


@pytest.mark.parametrize("name", ["nano_a", "nano_b", "nano_c", "delay_small"])
def test_vulkan_parity_of_caches_is_exact(
    golden_dir: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    sizes = ("--rows", "12", "--frames", "2")
    report = _report(capsys, "kv-cache", "--model", _golden(golden_dir, name), *sizes)
    equal = [check for check in report["checks"] if check["expects"] == "equal"]
    assert len(equal) >= 10
    assert all(check["max_abs"] in (0.0, None) for check in equal)


def test_vulkan_parity_of_caches_of_the_built_in_model(
    capsys: pytest.CaptureFixture[str],
) -> None:
    _report(capsys, "kv-cache", "--model", "sprout", "--rows", "6", "--frames", "1")


def test_vulkan_codec_streams_the_same_bits_as_whole(golden_dir: Path) -> None:
    checkpoint = open_checkpoint(Path(_golden(golden_dir, "codec_nano_narrow")))
    codec = load_codec(checkpoint, vulkan_backend())
    codes = np.random.default_rng(1).integers(0, 16, (19, codec.num_codebooks)).astype(np.int32)
    whole = codec.start(19)(codes)
    stream = codec.start(19)
    parts = [stream(part) for part in np.split(codes, (1, 2, 5, 16))]
    assert np.array_equal(np.concatenate(parts, axis=1), whole)


@pytest.mark.parametrize("seed", [1, 2])
def test_vulkan_speaks_the_same_codes_as_the_cpu(seed: int) -> None:
    """The built-in model: a code that differs would give other samples, and often more of them."""
    vulkan_backend()
    wanted, found = (
        mosstalk.load(device=device, strict=True).say("Hello.", seed=seed, max_frames=8).samples
        for device in ("cpu", "vulkan")
    )
    assert found.shape == wanted.shape
    assert np.abs(found - wanted).max() <= TOLERANCE * np.abs(wanted).max()


def test_vulkan_frame_is_one_command_sequence_and_one_transfer(
    golden_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Draws and the next global step are in it; caches and sets of seen ids stay on the device."""
    backend: Any = vulkan_backend()
    checkpoint = open_checkpoint(Path(_golden(golden_dir, "nano_a")))
    model = NanoModel(checkpoint.config, checkpoint.tensors, backend)
    session = model.session()
    session.begin_generation(12)
    session.prefill(np.zeros((4, 1 + model.config.n_vq), np.int32))
    sampling = FrameSampling(SamplingParams(temperature=0), SamplingParams(), seed=1)
    counts: Counter[str] = Counter()
    for name in ("read", "submit"):
        method = getattr(backend.device, name)

        def counted(*arguments: Any, name: str = name, method: Any = method) -> Any:
            counts[name] += 1
            return method(*arguments)

        monkeypatch.setattr(backend.device, name, counted)
    for _ in range(4):
        counts.clear()
        session.next_frame(sampling)
        assert counts["submit"] == 1
    assert counts["read"] == 1  # after the first frame, which shows what is asked for
