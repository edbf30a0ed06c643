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
from mosstalk.compute.seats import Seat, Seats
from mosstalk.compute.state import State
from mosstalk.models.moss_tts_nano.frame_decoder import FrameSampling
from mosstalk.models.moss_tts_nano.model import NanoModel
from mosstalk.models.moss_tts_nano.session import NanoSession, next_frames

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


def test_vulkan_sessions_that_advance_together_draw_the_codes_of_each_alone(
    golden_dir: Path,
) -> None:
    """Seats of one state, which join and leave at other frames; caches move within the device."""
    checkpoint = open_checkpoint(Path(_golden(golden_dir, "nano_a")))
    model = NanoModel(checkpoint.config, checkpoint.tensors, vulkan_backend())
    generator = np.random.default_rng(3)
    usual = SamplingParams(0.8, 25, 0.95, 1.2)
    samplings = [FrameSampling(SamplingParams(top_k=50), usual, seed) for seed in range(4)]

    def prompted(index: int) -> NanoSession:
        session = model.session()
        session.begin_generation(40)
        session.prefill(prompts[index])
        return session

    shape = (1 + model.config.n_vq,)
    prompts = [generator.integers(0, 30, (6 + 3 * i, *shape)).astype(np.int32) for i in range(4)]
    wanted = []
    for i, sampling in enumerate(samplings):
        session = prompted(i)
        wanted.append([session.next_frame(sampling) for _ in range(3)])
    seats = Seats(State(model.spec, 40, num_streams=2))
    found: list[list[Any]] = [[] for _ in prompts]
    running: dict[int, tuple[NanoSession, Seat]] = {}
    waiting = list(range(4))
    while waiting or running:
        seat = seats.take() if waiting else None
        if seat is not None:
            index = waiting.pop(0)
            running[index] = prompted(index).fork(seat=seat), seat
        sessions = [session for session, _ in running.values()]
        drawn = next_frames(sessions, [samplings[index] for index in running])
        for index, codes in zip(list(running), drawn, strict=True):
            found[index].append(codes)
            if len(found[index]) == 3:
                seats.give_back(running.pop(index)[1])
    assert sum(codes is not None for codes in sum(wanted, [])) >= 6
    for codes, expected in zip(sum(found, []), sum(wanted, []), strict=True):
        assert np.array_equal(codes, expected)
