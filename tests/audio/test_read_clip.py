"""Reading by content, and one line for whatever cannot be read."""

import io
import struct
from pathlib import Path

import numpy as np
import pytest
import soundfile
from numpy.typing import NDArray

from mosstalk.audio.read import read_clip
from mosstalk.audio.write import wav_header
from mosstalk.errors import AudioError

Samples = NDArray[np.float32]


def encode(samples: Samples, kind: str, subtype: str, rate: int = 48_000) -> bytes:
    buffer = io.BytesIO()
    soundfile.write(buffer, samples.T, rate, format=kind, subtype=subtype)
    return buffer.getvalue()


def reject(source: str | Path | bytes) -> str:
    with pytest.raises(AudioError) as caught:
        read_clip(source, name="my voice")
    message = str(caught.value)
    assert message.startswith("my voice: ")
    assert "\n" not in message
    return message


@pytest.mark.parametrize(
    ("kind", "subtype", "tolerance"),
    [
        ("WAV", "PCM_U8", 1e-2),
        ("WAV", "PCM_16", 1e-4),
        ("WAV", "PCM_24", 1e-6),
        ("WAV", "PCM_32", 1e-7),
        ("WAV", "FLOAT", 0),
        ("WAV", "DOUBLE", 0),
        ("WAVEX", "PCM_24", 1e-6),
        ("FLAC", "PCM_16", 1e-4),
        ("OGG", "VORBIS", 0.1),
        ("MP3", "MPEG_LAYER_III", 0.1),
    ],
)
def test_read_formats_whatever_the_name(
    stereo: Samples, tmp_path: Path, kind: str, subtype: str, tolerance: float
) -> None:
    path = tmp_path / "voice.wav"
    path.write_bytes(encode(stereo, kind, subtype))
    clip = read_clip(path, name="my voice")
    assert clip.sample_rate == 48_000
    assert clip.samples.dtype == np.float32
    assert clip.samples.shape == stereo.shape
    assert clip.seconds == 0.5
    assert np.abs(clip.samples - stereo).max() <= tolerance


@pytest.mark.parametrize("num_channels", [1, 3, 8])
def test_read_any_number_of_channels(stereo: Samples, num_channels: int) -> None:
    samples = np.repeat(stereo[:1], num_channels, axis=0)
    clip = read_clip(encode(samples, "WAV", "FLOAT", rate=8_000), name="my voice")
    assert np.array_equal(clip.samples, samples)
    assert clip.sample_rate == 8_000


@pytest.mark.parametrize("case", ["clone", "cont", "cont_audio", "clone_chunked"])
def test_read_golden_recordings(golden_dir: Path, case: str) -> None:
    folder = golden_dir / "reference"
    if not (folder / "nano_e2e.npz").exists():
        pytest.skip("no golden recordings")
    clip = read_clip(folder / f"e2e_{case}.wav", name="golden")
    golden = np.load(folder / "nano_e2e.npz")[f"{case}_wav"]
    assert clip.samples.shape == golden.shape
    assert np.abs(clip.samples - golden.clip(-1, 1)).max() <= 1.0 / 32767


def test_read_missing_file_and_folder(tmp_path: Path) -> None:
    assert "no file" in reject(tmp_path / "none.wav")
    assert "is a folder" in reject(tmp_path)
    assert "cannot read" in reject("a\0b.wav")
    assert "cannot read" in reject("a" * 5000)


def test_read_file_without_permission(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    assert "Permission denied" in reject(tmp_path / "secret.wav")


@pytest.mark.parametrize(
    "content",
    [
        b"not audio, only text in a file called .wav\n" * 20,
        b"RIFF",
        b"RIFF\x24\x00\x00\x00WAVEfmt ",
        b"fLaC" + b"\x00" * 100,
        b"OggS" + b"\x00" * 100,
        np.random.default_rng(0).bytes(5_000),
        b"\x00" * 3_000,
    ],
)
def test_read_garbage(content: bytes) -> None:
    assert "not audio that can be read" in reject(content)


def test_read_empty_file_and_no_samples(stereo: Samples) -> None:
    assert "is empty" in reject(b"")
    assert "no samples" in reject(encode(stereo[:, :0], "WAV", "PCM_16"))


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_read_values_that_are_not_numbers(stereo: Samples, value: float) -> None:
    broken = stereo.copy()
    broken[1, 100] = value
    assert "not numbers" in reject(encode(broken, "WAV", "FLOAT"))


def test_read_doubles_beyond_float32(stereo: Samples) -> None:
    beyond = stereo.astype(np.float64)
    beyond[0, 0] = 1e300
    buffer = io.BytesIO()
    soundfile.write(buffer, beyond.T, 48_000, format="WAV", subtype="DOUBLE")
    assert "not numbers" in reject(buffer.getvalue())


@pytest.mark.parametrize("kind", ["WAV", "FLAC"])
def test_read_file_cut_short(stereo: Samples, kind: str) -> None:
    content = encode(stereo, kind, "PCM_16")
    reject(content[: len(content) // 2])
    reject(content[:30])


@pytest.mark.parametrize("kind", ["WAV", "WAVEX", "FLAC", "OGG"])
def test_read_damaged_file_gives_a_clip_or_one_line(
    stereo: Samples, kind: str, capfd: pytest.CaptureFixture[str]
) -> None:
    rng = np.random.default_rng(7)
    content = encode(stereo[:, :2_000], kind, "VORBIS" if kind == "OGG" else "PCM_16")
    for _ in range(60):
        damaged = bytearray(content[: rng.integers(1, len(content))])
        for position in rng.integers(0, min(len(damaged), 200), 4):
            damaged[position] = rng.integers(256)
        try:
            clip = read_clip(bytes(damaged), name="my voice")
        except AudioError as error:
            assert "\n" not in str(error)
        else:
            assert np.isfinite(clip.samples).all()
    assert "Traceback" not in capfd.readouterr().err


def test_read_stream_of_unknown_length(stereo: Samples) -> None:
    data = (stereo.T * 32767).round().astype("<i2").tobytes()
    clip = read_clip(wav_header(48_000, 2, None) + data, name="my voice")
    assert np.abs(clip.samples - stereo).max() < 1e-4


def test_read_absurd_sample_rate(stereo: Samples) -> None:
    content = bytearray(encode(stereo, "WAV", "PCM_16"))
    content[24:28] = struct.pack("<I", 2_000_000_000)
    assert "2000000000 Hz" in reject(bytes(content))


def test_read_limits(stereo: Samples, monkeypatch: pytest.MonkeyPatch) -> None:
    content = encode(stereo, "WAV", "PCM_16")
    monkeypatch.setattr("mosstalk.audio.read._MAX_SAMPLES", 1_000)
    assert "is longer than" in reject(content)
    monkeypatch.setattr("mosstalk.audio.read._MAX_FILE_BYTES", 1_000)
    assert "is larger than" in reject(content)
