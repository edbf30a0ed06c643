"""Formats part by part: nothing is lost at the end, and tempo leaves the pitch."""

import io
import os
from pathlib import Path

import av
import numpy as np
import pytest
from numpy.typing import NDArray

from mosstalk.errors import OutputError
from mosstalk.server.encoding import FORMATS, PCM_RATE, FormatName, SpokenEncoder

FRAME_LEN = 1_280


def tone(rate: int, channels: int, seconds: float = 2.0) -> NDArray[np.float32]:
    """440 Hz, whose last tenth of a second is 880 Hz."""
    time = np.arange(round(rate * seconds)) / rate
    pitch = np.where(time < seconds - 0.1, 440, 880)
    wave = 0.3 * np.sin(2 * np.pi * np.cumsum(pitch) / rate)
    return np.repeat(wave[None], channels, axis=0).astype(np.float32)


def encode(name: FormatName, rate: int, samples: NDArray[np.float32], **how: object) -> bytes:
    encoder = SpokenEncoder(name, rate, len(samples), **{"speed": 1.0, "whole": False, **how})  # type: ignore[arg-type]
    starts = range(0, samples.shape[1], FRAME_LEN)
    parts = [encoder.push(samples[:, start : start + FRAME_LEN]) for start in starts]
    return b"".join([*parts, encoder.finish()])


def decode(name: FormatName, content: bytes) -> tuple[NDArray[np.float32], int]:
    """The first channel, and the rate."""
    if name == "pcm":
        return np.frombuffer(content, "<i2").astype(np.float32) / 32767, PCM_RATE
    with av.open(io.BytesIO(content)) as container:
        resampler = av.AudioResampler("fltp")
        frames = [f for frame in container.decode(audio=0) for f in resampler.resample(frame)]
        rate = container.streams.audio[0].rate
    return np.concatenate([frame.to_ndarray()[0] for frame in frames]), rate


def pitch(samples: NDArray[np.float32], rate: int) -> float:
    spectrum = np.abs(np.fft.rfft(samples * np.hanning(len(samples))))
    return float(spectrum.argmax() * rate / len(samples))


@pytest.mark.parametrize("rate, channels", [(16_000, 1), (24_000, 1), (48_000, 2)])
@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("name", FORMATS)
def test_encoded_audio_is_all_there(
    name: FormatName, rate: int, channels: int, whole: bool
) -> None:
    samples, out_rate = decode(name, encode(name, rate, tone(rate, channels), whole=whole))
    padding = 0.0 if name in ("wav", "flac", "pcm", "opus") else 0.15
    assert 2.0 - 1e-3 <= len(samples) / out_rate <= 2.0 + padding + 1e-3
    assert pitch(samples[: out_rate * 3 // 2], out_rate) == pytest.approx(440, abs=3)
    last = np.flatnonzero(np.abs(samples) > 0.1)[-1]  # before the padding
    assert pitch(samples[last - out_rate // 16 : last], out_rate) == pytest.approx(880, abs=30)


@pytest.mark.parametrize("name", FORMATS)
def test_parts_of_other_sizes_make_the_same_samples(name: FormatName) -> None:
    samples = tone(16_000, 1)
    encoder = SpokenEncoder(name, 16_000, 1, speed=1, whole=False)
    parts = [encoder.push(part) for part in np.split(samples, [1, 700, 700, 20_000], axis=1)]
    content = b"".join([*parts, encoder.finish()])
    other = decode(name, encode(name, 16_000, samples))[0]
    assert np.array_equal(decode(name, content)[0], other)


@pytest.mark.parametrize("speed", [0.25, 0.4, 0.9, 1.3, 2.0, 3.1, 4.0])
def test_speed_changes_the_length_and_not_the_pitch(speed: float) -> None:
    samples, rate = decode("wav", encode("wav", 16_000, tone(16_000, 1, 4.0), speed=speed))
    assert len(samples) / rate == pytest.approx(4.0 / speed, rel=0.02, abs=0.05)
    assert pitch(samples[: len(samples) * 3 // 4], rate) == pytest.approx(440, abs=6)


def test_streams_begin_at_the_first_frame() -> None:
    frame = tone(16_000, 1)[:, :FRAME_LEN]
    for name in ("wav", "pcm", "flac", "opus"):
        assert SpokenEncoder(name, 16_000, 1, speed=1, whole=False).push(frame)


@pytest.mark.parametrize("name", FORMATS)
def test_loud_samples_are_clipped_and_not_wrapped(name: FormatName) -> None:
    loud = 4 * tone(16_000, 1)
    samples = decode(name, encode(name, 16_000, loud))[0]
    assert np.abs(samples).max() < 1.5
    assert (np.abs(np.diff(samples)) > 1.6).sum() == 0


def test_samples_that_are_not_numbers_are_an_error() -> None:
    with pytest.raises(OutputError, match="not numbers"):
        SpokenEncoder("mp3", 16_000, 1, speed=1, whole=False).push(
            np.full((1, 9), np.nan, np.float32)
        )


@pytest.mark.parametrize("speed", [1.0, 1.5])
@pytest.mark.parametrize("name", FORMATS)
def test_an_encoder_that_is_closed_takes_and_gives_nothing(name: FormatName, speed: float) -> None:
    """However much it was given before, nothing at all included."""
    for count in (0, 1, 5_000):
        encoder = SpokenEncoder(name, 16_000, 1, speed=speed, whole=False)
        encoder.push(np.zeros((1, count), np.float32))
        encoder.close()
        encoder.close()
        assert encoder.push(np.zeros((1, 5_000), np.float32)) == b""
        assert encoder.finish() == b""


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="reads memory from /proc")
@pytest.mark.parametrize("name", ["flac", "aac"])
def test_encoders_that_are_closed_give_their_memory_back(name: FormatName) -> None:
    """As those of clients that hang up."""

    def use(count: int) -> float:
        for _ in range(count):
            encoder = SpokenEncoder(name, 16_000, 1, speed=1, whole=False)
            encoder.push(np.zeros((1, 10_000), np.float32))
            encoder.close()
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 2**20

    before = use(20)
    assert use(100) - before < 5
