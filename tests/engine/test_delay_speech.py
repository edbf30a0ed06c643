"""Models of the delay family through the engine: instruction in, audio out."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tiny_delay import write_tiny_delay

import mosstalk
from mosstalk import Speaker, UsageError
from mosstalk.checkpoint.checkpoint import open_checkpoint
from mosstalk.codec.registry import load_codec
from mosstalk.compute.backend import open_backend
from mosstalk.models.moss_tts_delay.delay_pattern import Staircase
from mosstalk.types import SpeechSettings

TEXT = "Hello there."
WARM = "a warm, low, unhurried woman"
SEEDS = 100
STARTED: SpeechSettings = {"seed": 1, "max_frames": 4, "force_audio_start": True}


@pytest.fixture(scope="module")
def designer(tmp_path_factory: pytest.TempPathFactory) -> Speaker:
    return mosstalk.load(write_tiny_delay(tmp_path_factory.mktemp("voicegen")), threads=1)


@pytest.fixture(scope="module")
def tts(tmp_path_factory: pytest.TempPathFactory) -> Speaker:
    folder = tmp_path_factory.mktemp("tts")
    return mosstalk.load(write_tiny_delay(folder, n_vq=32), threads=1)


@pytest.fixture(scope="module")
def ttsd(tmp_path_factory: pytest.TempPathFactory) -> Speaker:
    folder = tmp_path_factory.mktemp("ttsd")
    return mosstalk.load(write_tiny_delay(folder, hidden=4096), threads=1)


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    time = np.arange(36_000) / 24_000
    tone = (0.1 * np.sin(2 * np.pi * 220 * time)).astype(np.float32)
    path = tmp_path_factory.mktemp("clips") / "tone.wav"
    mosstalk.AudioClip(tone[None], 24_000).write(path)
    return path


def test_every_seed_of_a_model_that_often_begins_with_text_ends_well(designer: Speaker) -> None:
    """Audio, or `no_audio` after as many retries as there may be; both happen, none is hidden."""
    summaries = [
        designer.say(TEXT, instruction=WARM, seed=seed, max_frames=40).summary
        for seed in range(SEEDS)
    ]
    for summary in summaries:
        assert 0 <= summary.retries <= 4
        assert (summary.stop_reason == "no_audio") == (summary.frames == 0)
        assert summary.frames or summary.retries == 4
    retries = {summary.retries for summary in summaries}
    assert retries == {0, 1, 2, 3, 4}
    assert sum(summary.frames > 0 for summary in summaries) >= 0.9 * SEEDS


def test_retried_run_is_the_run_of_its_derived_seed(designer: Speaker) -> None:
    seed = next(
        seed
        for seed in range(SEEDS)
        if designer.say(TEXT, seed=seed, max_frames=4).summary.retries == 1
    )
    one = designer.say(TEXT, seed=seed, max_frames=20)
    again = designer.say(TEXT, seed=seed, max_frames=20)
    assert np.array_equal(one.samples, again.samples)
    assert one.summary.seed == seed


def test_forced_start_needs_no_retry(designer: Speaker) -> None:
    for seed in range(20):
        summary = designer.say(TEXT, seed=seed, force_audio_start=True, max_frames=20).summary
        assert summary.retries == 0 and summary.frames > 0


def test_same_samples_after_other_requests(designer: Speaker) -> None:
    """The prompt kept from the last request is reused exactly, whatever it was."""
    alone = designer.say(TEXT, instruction=WARM, seed=3, force_audio_start=True, max_frames=12)
    for text, instruction in (("Hello there, you.", WARM), ("Bye.", "a boy"), (TEXT, WARM)):
        designer.say(text, instruction=instruction, seed=4, force_audio_start=True, max_frames=3)
        again = designer.say(TEXT, instruction=WARM, seed=3, force_audio_start=True, max_frames=12)
        assert np.array_equal(again.samples, alone.samples)


def test_stream_equals_whole_and_can_be_closed(designer: Speaker) -> None:
    options = {"instruction": WARM, "seed": 2, "force_audio_start": True, "max_frames": 20}
    whole = designer.say(TEXT, **options)
    with designer.stream(TEXT, **options) as stream:
        first = next(stream)
        assert first.samples.shape == (1, 1_920)  # as soon as the staircase allows
        rest = [chunk.samples for chunk in stream]
    assert np.array_equal(np.concatenate([first.samples, *rest], axis=1), whole.samples)
    with designer.stream(TEXT, **options) as stream:
        next(stream)
    assert stream.summary.stop_reason == "cancelled"
    assert stream.summary.frames <= 2


def test_cap_is_exact_and_told(designer: Speaker) -> None:
    for cap in (1, 2, 5):
        summary = designer.say(TEXT, seed=1, force_audio_start=True, max_frames=cap).summary
        assert summary.frames <= cap
        if summary.stop_reason == "max_frames":
            assert any("was cut" in warning for warning in summary.warnings)


def test_long_text_is_not_divided(designer: Speaker) -> None:
    """Each part would get another voice."""
    text = "One sentence here. " * 30
    with designer.stream(text, seed=1, force_audio_start=True, max_frames=3) as stream:
        assert {chunk.text_chunk for chunk in stream} == {0}


def test_voice_generator_takes_no_voice(designer: Speaker, recording: Path) -> None:
    with pytest.raises(UsageError, match="decode only"):
        designer.make_voice("a", recording)
    with pytest.raises(UsageError, match="makes a voice from its description"):
        designer.say(TEXT, "anna")
    with pytest.raises(UsageError, match="unknown language 'tlh'"):
        designer.say(TEXT, language="tlh")
    with pytest.raises(UsageError, match="draws all of its 4"):
        designer.say(TEXT, num_codebooks=2)
    with pytest.raises(UsageError, match="cannot go on"):
        designer.say(TEXT, mode="continuation")


def test_tts_clones_and_goes_on(tts: Speaker, recording: Path) -> None:
    voice, _ = tts.make_voice("tone", recording, transcript="A tone.")
    assert voice.codes.shape == (18, 32)
    plain = tts.say(TEXT, language="de", **STARTED)
    cloned = tts.say(TEXT, voice, **STARTED)
    follows = tts.say(TEXT, voice, mode="continuation", **STARTED)
    assert all(speech.summary.frames for speech in (plain, cloned, follows))
    assert not np.array_equal(plain.samples, cloned.samples)
    with pytest.raises(UsageError, match="2 voices were given, but this model takes 1"):
        tts.say(TEXT, [voice, voice])
    untold, _ = tts.make_voice("untold", recording)
    with pytest.raises(UsageError, match="needs the words of voice 'untold'"):
        tts.say(TEXT, untold, mode="continuation")


def test_ttsd_speaks_dialogues(ttsd: Speaker, recording: Path) -> None:
    voice, _ = ttsd.make_voice("tone", recording, transcript="A tone.")
    dialogue = "[S1] Who is there? [S2] Nobody."
    plain = ttsd.say(dialogue, **STARTED)
    cloned = ttsd.say(dialogue, [voice, voice], **STARTED)
    follows = ttsd.say(dialogue, [voice], mode="continuation", **STARTED)
    assert all(speech.summary.frames for speech in (plain, cloned, follows))
    assert not np.array_equal(plain.samples, cloned.samples)
    with pytest.raises(UsageError, match="no speaker tags"):
        ttsd.say(TEXT)


def test_golden_rows_become_the_original_waveform(golden_dir: Path) -> None:
    """Rows generated by the original, through our staircase and codec."""
    path = golden_dir / "reference" / "delay_e2e.npz"
    codec_path = golden_dir / "checkpoints" / "codec_full_e2e"
    if not path.exists() or not (codec_path / "model.safetensors").exists():
        pytest.skip("no golden vectors")
    with np.load(path) as golden:
        rows: NDArray[Any] = golden["gen_rows"].astype(np.int32)
        wav: NDArray[np.float32] = golden["wav_0"]
    staircase, frames = Staircase(16, 1024), []
    for row in rows:
        staircase, frame = staircase.push(row[1:])
        if frame is not None:
            frames.append(frame)
    codec = load_codec(open_checkpoint(codec_path), open_backend("cpu"), decode_only=True)
    samples = codec.start(len(frames))(np.stack(frames))
    # The original's prompt held audio start, for which it cuts a frame (spec 9, 16).
    assert samples.shape == (1, 1_920 + len(wav))
    assert np.abs(samples[0, 1_920:] - wav).max() < 1e-4 * np.abs(wav).max()
