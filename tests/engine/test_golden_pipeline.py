"""The whole way from text and recording to samples against OpenMOSS's own pipeline.

What was run is in the golden folder's README, under `nano_e2e`: greedy, at most 4 frames a chunk.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import mosstalk
from mosstalk import Speaker, SpeechOptions, Voice
from mosstalk.stream import Progress
from mosstalk.text.split import split_text
from mosstalk.types import SpeechSettings, VoiceMode

_MAX_FRAMES = 4
_GREEDY: SpeechSettings = {
    "temperature": 0,
    "repetition_penalty": 1.0,
    "max_frames": _MAX_FRAMES,
}


@dataclass(frozen=True)
class Run:
    """One of the original's runs."""

    name: str
    text: str
    max_tokens: int = 75
    mode: VoiceMode = "clone"
    with_voice: bool = True
    transcript: str | None = None


_RUNS = (
    Run("cont", "Hello world, this is MOSS.", with_voice=False),
    Run("cont_audio", "and then he left.", mode="continuation", transcript="He came, "),
    Run("clone", "Hello there."),
    Run(
        "clone_chunked",
        "First sentence is here, and it goes on for a little while. "
        "Second sentence follows it, with some more words. Third one!",
        max_tokens=12,
    ),
)
each_run = pytest.mark.parametrize("run", _RUNS, ids=lambda run: run.name)


@pytest.fixture(scope="module")
def golden(golden_dir: Path) -> dict[str, NDArray[Any]]:
    path = golden_dir / "reference" / "nano_e2e.npz"
    if not path.exists():
        pytest.skip("no golden vectors")
    with np.load(path) as arrays:
        return dict(arrays)


@pytest.fixture(scope="module")
def nano(golden: dict[str, NDArray[Any]], golden_dir: Path) -> Speaker:
    checkpoints = golden_dir / "checkpoints"
    return mosstalk.load(checkpoints / "nano_c", codec=checkpoints / "codec_nano_e2e", threads=2)


@pytest.fixture(scope="module")
def reference_voice(nano: Speaker, golden_dir: Path) -> Voice:
    return nano.make_voice("reference", golden_dir / "reference" / "ref_1s_stereo.wav")[0]


def settings_of(run: Run) -> SpeechSettings:
    return {**_GREEDY, "max_tokens": run.max_tokens, "mode": run.mode}


def voice_of(run: Run, reference: Voice) -> Voice | str:
    return replace(reference, transcript=run.transcript) if run.with_voice else "none"


def off_by(ours: NDArray[np.float32], theirs: NDArray[np.float32]) -> float:
    """Largest difference relative to the peak."""
    assert ours.shape == theirs.shape
    return float(np.abs(ours - theirs).max() / np.abs(theirs).max())


def test_codes_of_the_recording(golden: dict[str, NDArray[Any]], reference_voice: Voice) -> None:
    for name in ("cont_audio", "clone", "clone_chunked"):
        assert np.array_equal(reference_voice.codes, golden[f"{name}_ref_ids"])


@each_run
def test_ids(
    run: Run, nano: Speaker, reference_voice: Voice, golden: dict[str, NDArray[Any]]
) -> None:
    options = SpeechOptions(**settings_of(run))
    voices = [replace(reference_voice, transcript=run.transcript)] if run.with_voice else []
    frames = []
    for index, part in enumerate(split_text(run.text, run.max_tokens, nano.model.count_tokens)):
        utterance = nano.model.start(part.text, index, voices, options, 0, _MAX_FRAMES)
        for _ in range(_MAX_FRAMES):
            codes = utterance.next_frame()
            if codes is None:
                break
            frames.append(codes)
    assert np.array_equal(frames, golden[f"{run.name}_ids"])


@each_run
def test_samples(
    run: Run, nano: Speaker, reference_voice: Voice, golden: dict[str, NDArray[Any]]
) -> None:
    speech = nano.say(run.text, voice_of(run, reference_voice), **settings_of(run))
    assert speech.sample_rate == 48_000
    assert off_by(speech.samples, golden[f"{run.name}_wav"]) < 1e-4
    assert off_by(speech.samples, golden[f"{run.name}_stream_wav"]) < 1e-4


def test_division_of_the_text_and_its_pauses(
    nano: Speaker, reference_voice: Voice, golden_dir: Path
) -> None:
    notes = json.loads((golden_dir / "reference" / "nano_e2e.json").read_text())
    run = _RUNS[-1]
    parts = split_text(run.text, run.max_tokens, nano.model.count_tokens)
    assert [part.text for part in parts] == notes["clone_chunked"]["chunks"]
    with nano.stream(run.text, reference_voice, **settings_of(run)) as stream:
        pauses = [chunk for chunk in stream if chunk.is_pause]
    assert [chunk.samples.shape[1] / 48_000 for chunk in pauses] == [0.40, 0.24, 0.40]
    assert [chunk.text_chunk for chunk in pauses] == [0, 1, 2]
    assert not any(chunk.samples.any() for chunk in pauses)


@each_run
@pytest.mark.parametrize(
    "budget",
    [lambda _: 1, lambda _: 2, lambda _: 3, lambda _: 1000, lambda made: 1 + made.frames % 3],
    ids=["1", "2", "3", "all", "mixed"],
)
def test_chunking_changes_no_sample(
    run: Run,
    budget: Callable[[Progress], int],
    nano: Speaker,
    reference_voice: Voice,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    voice = voice_of(run, reference_voice)
    whole = nano.say(run.text, voice, **settings_of(run)).samples
    monkeypatch.setattr(Progress, "budget", budget)
    with nano.stream(run.text, voice, **settings_of(run)) as stream:
        streamed = np.concatenate([chunk.samples for chunk in stream], axis=1)
    assert np.array_equal(streamed, whole)
