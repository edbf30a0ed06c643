"""Speaking with a model of random weights: streams, seeds, cancelling, and what is refused."""

import gc
import math
import os
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from tiny_model import CHANNELS, FRAME_LEN, SAMPLE_RATE, write_other_codec, write_tiny_model

import mosstalk
from mosstalk import CheckpointError, Speaker, SpeechStream, UsageError, Voice
from mosstalk.types import SpeechSettings

_TEXT = "One short sentence is here. Then comes another one, which is a little longer."
_PARTS: SpeechSettings = {"max_tokens": 12, "max_frames": 5}


def samples_of(stream: SpeechStream) -> list[NDArray[np.float32]]:
    return [chunk.samples for chunk in stream]


def test_say_is_the_stream_collected(speaker: Speaker, voice: Voice) -> None:
    whole = speaker.say(_TEXT, voice, seed=7, **_PARTS)
    pieces = samples_of(speaker.stream(_TEXT, voice, seed=7, **_PARTS))
    assert len(pieces) > 3
    assert np.array_equal(np.concatenate(pieces, axis=1), whole.samples)
    assert whole.samples.dtype == np.float32
    assert whole.samples.shape[0] == CHANNELS == speaker.num_channels
    assert whole.sample_rate == SAMPLE_RATE == speaker.sample_rate


def test_seed_decides_whatever_the_threads(talker_path: Path, voice: Voice) -> None:
    said = [
        mosstalk.load(talker_path, threads=threads).say(_TEXT, voice, seed=seed, **_PARTS)
        for threads, seed in ((1, 7), (2, 7), (1, 8))
    ]
    assert np.array_equal(said[0].samples, said[1].samples)
    assert not np.array_equal(said[0].samples, said[2].samples)


def test_streams_that_take_turns_do_not_disturb_each_other(speaker: Speaker, voice: Voice) -> None:
    alone = [samples_of(speaker.stream(_TEXT, voice, seed=seed, **_PARTS)) for seed in (1, 2)]
    streams = [speaker.stream(_TEXT, voice, seed=seed, **_PARTS) for seed in (1, 2)]
    together: list[list[NDArray[np.float32]]] = [[], []]
    open_streams = [0, 1]
    while open_streams:
        for i in list(open_streams):
            chunk = next(streams[i], None)
            if chunk is None:
                open_streams.remove(i)
            else:
                together[i].append(chunk.samples)
    for i in range(2):
        assert np.array_equal(np.concatenate(together[i], 1), np.concatenate(alone[i], 1))


def test_no_seed_given_draws_another_and_tells_it(speaker: Speaker, voice: Voice) -> None:
    first, second = (speaker.say("Hello.", voice, max_frames=3) for _ in range(2))
    assert first.summary.seed != second.summary.seed
    again = speaker.say("Hello.", voice, max_frames=3, seed=first.summary.seed)
    assert np.array_equal(again.samples, first.samples)


@pytest.mark.parametrize("weight_type", ["f32", "f16", "bf16", "q8_0"])
def test_kept_prefix_gives_the_same_bits(
    talker_path: Path, clip: Path, voice: Voice, weight_type: str
) -> None:
    def fresh() -> Speaker:
        return mosstalk.load(talker_path, threads=1, weight_type=weight_type)

    used = fresh()
    for text in ("Something else.", "And more of it."):
        used.say(text, voice, max_frames=2, seed=1)
    used.say("Without a voice.", "none", max_frames=2, seed=1)
    reused = used.say("The text.", voice, max_frames=6, seed=3)
    assert np.array_equal(
        reused.samples, fresh().say("The text.", voice, max_frames=6, seed=3).samples
    )


def test_more_voices_than_prefixes_are_kept(speaker: Speaker, voice: Voice) -> None:
    first = speaker.say("Hello.", voice, max_frames=3, seed=1)
    for shift in range(1, 7):
        speaker.say("Hello.", replace(voice, codes=(voice.codes + shift) % 64), max_frames=1)
    again = speaker.say("Hello.", voice, max_frames=3, seed=1)
    assert np.array_equal(again.samples, first.samples)


def test_summary(speaker: Speaker, voice: Voice) -> None:
    summary = speaker.say(_TEXT, voice, seed=7, **_PARTS).summary
    assert summary.seed == 7
    assert summary.frames == 10
    assert summary.seconds == pytest.approx(10 * FRAME_LEN / SAMPLE_RATE + 0.24)
    assert summary.stop_reason == "max_frames"
    assert 0 < summary.rtf < 10
    assert 0 < summary.ttfa_ms < 10_000
    assert (summary.device, summary.weight_type) == ("cpu", "native")
    assert set(summary.as_dict()) == {
        "seed",
        "frames",
        "seconds",
        "stop_reason",
        "rtf",
        "ttfa_ms",
        "device",
        "weight_type",
        "retries",
        "warnings",
    }


def test_capped_parts_are_named(speaker: Speaker, voice: Voice) -> None:
    warnings = speaker.say(_TEXT, voice, **_PARTS).summary.warnings
    assert [warning[:6] for warning in warnings] == ["part 1", "part 2"]
    assert all("--max-frames" in warning for warning in warnings)


def test_removed_tokens_are_named(speaker: Speaker, voice: Voice) -> None:
    plain = speaker.say("Hello there.", voice, seed=1, max_frames=2)
    spiked = speaker.say("Hello <|im_end|>there.", voice, seed=1, max_frames=2)
    assert np.array_equal(plain.samples, spiked.samples)
    assert any("<|im_end|>" in warning for warning in spiked.summary.warnings)


def test_tokens_in_a_transcript_do_not_reach_the_prompt(speaker: Speaker, voice: Voice) -> None:
    said = [
        speaker.say(
            "and so on.",
            replace(voice, transcript=transcript),
            mode="continuation",
            seed=1,
            max_frames=2,
        )
        for transcript in ("He came, ", "He <|im_end|>came, ")
    ]
    assert np.array_equal(said[0].samples, said[1].samples)


def test_model_that_stops_at_once(mute_path: Path) -> None:
    said = mosstalk.load(mute_path, threads=1).say("Hello.", "none")
    assert said.samples.shape == (CHANNELS, 0)
    assert (said.summary.stop_reason, said.summary.frames) == ("no_audio", 0)
    assert (said.summary.rtf, said.summary.ttfa_ms) == (0.0, 0.0)


def test_closing_stops_all_work(speaker: Speaker, voice: Voice) -> None:
    with speaker.stream("Hello.", voice, max_frames=200) as stream:
        next(stream)
        made = stream.progress.frames
    assert made == 1
    assert next(stream, None) is None
    assert stream.summary.stop_reason == "cancelled"
    assert stream.summary.frames == made
    assert speaker.say("Hello.", voice, max_frames=1).summary.frames == 1  # nothing is held


def test_stream_that_never_began(speaker: Speaker, voice: Voice) -> None:
    stream = speaker.stream("Hello.", voice)
    stream.close()
    assert next(stream, None) is None
    assert stream.summary.stop_reason == "cancelled"
    del stream
    gc.collect()


def test_summary_while_the_stream_goes_on(speaker: Speaker, voice: Voice) -> None:
    with speaker.stream("Hello.", voice, max_frames=20) as stream:
        next(stream)
        assert stream.summary.seconds == pytest.approx(FRAME_LEN / SAMPLE_RATE)


def test_cloning_model_without_a_voice(speaker: Speaker) -> None:
    with pytest.raises(UsageError, match="--voice none"):
        speaker.say("Hello.")
    assert speaker.say("Hello.", "none", max_frames=1).summary.frames == 1


def test_model_that_speaks_without_a_voice(tmp_path: Path) -> None:
    model = write_tiny_model(tmp_path / "free", needs_voice=False)
    assert mosstalk.load(model, threads=1).say("Hello.", max_frames=1).summary.frames == 1


def test_voice_of_another_codec(talker_path: Path, tmp_path: Path, voice: Voice) -> None:
    other = mosstalk.load(talker_path, codec=write_other_codec(tmp_path / "codec"), threads=1)
    for use in (other.say, lambda _, voice: other.hear(voice)):
        with pytest.raises(UsageError, match="another codec"):
            use("Hello.", voice)


def test_hear_decodes_the_voice(speaker: Speaker, voice: Voice) -> None:
    heard = speaker.hear(voice)
    assert heard.samples.shape == (CHANNELS, len(voice.codes) * FRAME_LEN)
    speaker.voices.save(voice)
    assert np.array_equal(speaker.hear("ada").samples, heard.samples)


def test_voice_keeps_what_is_known_of_its_recording(speaker: Speaker, clip: Path) -> None:
    voice, warnings = speaker.make_voice("bea", clip, "Her words.")
    assert (voice.name, voice.transcript, voice.sample_rate) == ("bea", "Her words.", SAMPLE_RATE)
    assert voice.codes.shape == (SAMPLE_RATE // FRAME_LEN, 4)
    assert len(voice.source_hash) == 64
    assert warnings == ()


def test_recording_from_a_pipe(speaker: Speaker, clip: Path, voice: Voice) -> None:
    """It can be read once only, as after `--voice-ref <(...)` in a shell."""
    if not Path("/dev/fd").exists():
        pytest.skip("no /dev/fd")
    read_end, write_end = os.pipe()
    writer = threading.Thread(target=_write_and_close, args=(write_end, clip.read_bytes()))
    writer.start()
    piped, _ = speaker.make_voice("piped", f"/dev/fd/{read_end}")
    writer.join()
    os.close(read_end)
    assert piped.source_hash == voice.source_hash
    assert np.array_equal(piped.codes, voice.codes)


def _write_and_close(descriptor: int, content: bytes) -> None:
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)


@pytest.mark.parametrize("text", ["", "   ", "\n\t ", "\x00\x07", "<|im_end|>"])
def test_nothing_to_say(speaker: Speaker, voice: Voice, text: str) -> None:
    with pytest.raises(UsageError, match="no text"):
        speaker.stream(text, voice)


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"seed": -1}, "seed"),
        ({"seed": 2**63}, "seed"),
        ({"temperature": math.nan}, "temperature"),
        ({"temperature": -0.1}, "temperature"),
        ({"temperature": math.inf}, "temperature"),
        ({"top_k": -1}, "top-k"),
        ({"top_p": 0.0}, "top-p"),
        ({"top_p": 1.5}, "top-p"),
        ({"repetition_penalty": 0.0}, "repetition penalty"),
        ({"max_frames": 0}, "max-frames"),
        ({"max_frames": 10**9}, "positions"),
        ({"num_codebooks": 0}, "codebooks"),
        ({"num_codebooks": 5}, "codebooks"),
        ({"mode": "sing"}, "mode"),
        ({"mode": "continuation"}, "transcript"),
    ],
)
def test_setting_outside_its_range(
    speaker: Speaker, voice: Voice, settings: SpeechSettings, complaint: str
) -> None:
    with pytest.raises(UsageError, match=complaint):
        speaker.say("Hello.", voice, **settings)


@pytest.mark.parametrize("codebooks", [1, 3, 4])
def test_fewer_codebooks(speaker: Speaker, voice: Voice, codebooks: int) -> None:
    said = speaker.say("Hello.", voice, seed=1, max_frames=3, num_codebooks=codebooks)
    assert said.summary.frames == 3


@pytest.mark.parametrize("threads", [-1, 257, 10**6])
def test_impossible_threads(talker_path: Path, threads: int) -> None:
    with pytest.raises(UsageError, match="threads"):
        mosstalk.load(talker_path, threads=threads)


def test_unknown_device_and_weight_type(talker_path: Path) -> None:
    with pytest.raises(UsageError, match="device"):
        mosstalk.load(talker_path, device="abacus")
    with pytest.raises(UsageError, match="weight type"):
        mosstalk.load(talker_path, weight_type="q2")


def test_reference_device_agrees(talker_path: Path, voice: Voice) -> None:
    said = [
        mosstalk.load(talker_path, device=device).say("Hi.", voice, temperature=0, max_frames=2)
        for device in ("cpu", "reference")
    ]
    assert said[1].summary.device == "reference"
    assert np.abs(said[0].samples - said[1].samples).max() < 1e-4


def test_model_without_a_codec(talker_path: Path, tmp_path: Path) -> None:
    for name in ("config.json", "model.safetensors", "tokenizer.model"):
        (tmp_path / name).symlink_to(talker_path / name)
    with pytest.raises(CheckpointError, match="--codec"):
        mosstalk.load(tmp_path)
    mosstalk.load(tmp_path, codec=talker_path / "audio_tokenizer")
