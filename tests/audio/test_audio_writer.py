"""Files that appear whole or not at all, and a stream on standard output."""

import io
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import soundfile
from numpy.typing import NDArray

from mosstalk.audio.clip import AudioClip
from mosstalk.audio.read import read_clip
from mosstalk.audio.write import AudioWriter, open_writer
from mosstalk.errors import OutputError, UsageError

Samples = NDArray[np.float32]
DEV_FULL = Path("/dev/full")


def pcm16(samples: Samples) -> NDArray[np.int16]:
    return np.rint(np.clip(samples, -1, 1) * 32767).astype(np.int16).T


class FullDisk(io.BytesIO):
    """A disk with room for 1,000 bytes."""

    def write(self, data: object, /) -> int:
        written = super().write(bytes(data))  # type: ignore[call-overload]
        if self.tell() > 1_000:
            raise OSError(28, "No space left on device")
        return int(written)


@pytest.mark.parametrize("name", ["speech.wav", "speech.flac", "SPEECH.WAV"])
def test_write_in_parts_gives_the_same_samples(stereo: Samples, tmp_path: Path, name: str) -> None:
    loud = stereo * 4  # clipped to +-1
    with open_writer(tmp_path / name, 48_000, 2) as writer:
        for start in range(0, loud.shape[1], 3_840):
            writer.write(loud[:, start : start + 3_840])
    read, rate = soundfile.read(tmp_path / name, dtype="int16")
    assert rate == 48_000
    assert np.array_equal(read, pcm16(loud))
    assert os.listdir(tmp_path) == [name]


@pytest.mark.parametrize("suffix", [".wav", ".flac"])
def test_write_clip_and_read_it_again(stereo: Samples, tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"speech{suffix}"
    AudioClip(stereo[:1], 24_000).write(path)
    clip = read_clip(path, name="speech")
    assert clip.sample_rate == 24_000
    assert np.abs(clip.samples - stereo[:1]).max() <= 1.0 / 32767


def test_write_golden_pcm(golden_dir: Path, tmp_path: Path) -> None:
    """The reference scales by 32768 and rounds down; we scale by 32767 and round to nearest."""
    folder = golden_dir / "reference"
    if not (folder / "nano_e2e.npz").exists():
        pytest.skip("no golden recordings")
    samples = np.load(folder / "nano_e2e.npz")["clone_wav"]
    AudioClip(samples, 48_000).write(tmp_path / "clone.wav")
    ours = soundfile.read(tmp_path / "clone.wav", dtype="int16")[0].astype(np.int32)
    golden = soundfile.read(folder / "e2e_clone.wav", dtype="int16")[0]
    assert np.array_equal(golden, np.clip(np.floor(samples.T * 32768), -32768, 32767))
    assert np.abs(ours - golden).max() <= 2


def test_write_nothing(tmp_path: Path) -> None:
    with open_writer(tmp_path / "empty.wav", 48_000, 2):
        pass
    assert soundfile.read(tmp_path / "empty.wav")[0].shape == (0, 2)
    with (
        pytest.raises(OutputError, match="there is no audio"),
        open_writer(tmp_path / "empty.flac", 48_000, 2),
    ):
        pass
    assert os.listdir(tmp_path) == ["empty.wav"]


@pytest.mark.parametrize("suffix", [".wav", ".flac"])
@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_write_that_fails_leaves_the_old_file(
    stereo: Samples, tmp_path: Path, suffix: str, error: type[BaseException]
) -> None:
    path = tmp_path / f"speech{suffix}"
    path.write_bytes(b"what was there")
    with pytest.raises(error), open_writer(path, 48_000, 2) as writer:
        writer.write(stereo)
        raise error
    assert path.read_bytes() == b"what was there"
    assert os.listdir(tmp_path) == [path.name]


@pytest.mark.parametrize("suffix", [".wav", ".flac"])
def test_write_to_a_full_disk_leaves_the_old_file(
    stereo: Samples, tmp_path: Path, suffix: str
) -> None:
    path = tmp_path / f"speech{suffix}"
    path.write_bytes(b"what was there")
    with (
        pytest.raises(OutputError, match=r"cannot write .*: No space left") as caught,
        _writer_on_full_disk(path) as writer,
    ):
        writer.write(stereo)
    assert "\n" not in str(caught.value)
    assert path.read_bytes() == b"what was there"
    assert os.listdir(tmp_path) == [path.name]


def _writer_on_full_disk(path: Path) -> AudioWriter:
    with pytest.MonkeyPatch.context() as patch:
        real_open = Path.open

        def open_full(self: Path, mode: str) -> FullDisk:
            real_open(self, mode).close()
            return FullDisk()

        patch.setattr(Path, "open", open_full)
        return open_writer(path, 48_000, 2)


@pytest.mark.skipif(not DEV_FULL.exists(), reason="needs /dev/full")
def test_write_stream_to_a_full_device(stereo: Samples, monkeypatch: pytest.MonkeyPatch) -> None:
    with DEV_FULL.open("wb") as full:
        monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(full))
        with pytest.raises(OutputError, match="cannot write standard output: No space left"):
            open_writer("-", 48_000, 2)


def test_write_keeps_permissions_and_links(stereo: Samples, tmp_path: Path) -> None:
    real, link = tmp_path / "real.wav", tmp_path / "link.wav"
    real.touch(mode=0o600)
    link.symlink_to(real)
    AudioClip(stereo, 48_000).write(link)
    assert link.is_symlink()
    assert real.stat().st_mode & 0o777 == 0o600
    assert soundfile.info(real).frames == stereo.shape[1]


@pytest.mark.parametrize("name", ["speech.mp3", "speech", "wav", "."])
def test_write_unknown_suffix_is_a_usage_error(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match=r"\.wav or \.flac, or -"):
        open_writer(tmp_path / name, 48_000, 2)


@pytest.mark.parametrize("suffix", [".wav", ".flac"])
def test_write_to_no_folder_a_folder_and_a_pipe(tmp_path: Path, suffix: str) -> None:
    with pytest.raises(OutputError, match="does not exist"):
        open_writer(tmp_path / "none" / f"speech{suffix}", 48_000, 2)
    (tmp_path / f"folder{suffix}").mkdir()
    with pytest.raises(OutputError, match="is a folder"):
        open_writer(tmp_path / f"folder{suffix}", 48_000, 2)
    os.mkfifo(tmp_path / f"fifo{suffix}")
    with pytest.raises(OutputError, match="not a regular file"):
        open_writer(tmp_path / f"fifo{suffix}", 48_000, 2)


def test_write_to_a_folder_without_permission(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(OutputError, match="Permission denied"):
        open_writer(tmp_path / "speech.wav", 48_000, 2)


def test_write_flac_of_too_many_channels(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="9 channels"):
        open_writer(tmp_path / "speech.flac", 48_000, 9)
    assert os.listdir(tmp_path) == []


def test_write_wav_beyond_4_gib(
    stereo: Samples, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mosstalk.audio.write._WAV_MAX_DATA_BYTES", 1_000)
    with (
        pytest.raises(OutputError, match=r"write \.flac instead"),
        open_writer(tmp_path / "speech.wav", 48_000, 2) as writer,
    ):
        writer.write(stereo)
    assert os.listdir(tmp_path) == []


def test_write_wrong_shape_and_values(stereo: Samples, tmp_path: Path) -> None:
    with open_writer(tmp_path / "speech.wav", 48_000, 2) as writer:
        with pytest.raises(UsageError, match=r"\[1, 24000\]"):
            writer.write(stereo[:1])
        with pytest.raises(OutputError, match="not numbers"):
            writer.write(stereo * np.float32(np.nan))
        writer.write(stereo)


def test_write_stream_reads_as_it_comes(
    stereo: Samples, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    with open_writer("-", 48_000, 2) as writer:
        assert len(capfdbinary.readouterr().out) == 44
        writer.write(stereo[:, :100])
        assert len(capfdbinary.readouterr().out) == 400


STREAM = """
import sys
import numpy as np
from mosstalk.audio.write import open_writer
from mosstalk.errors import OutputError
try:
    with open_writer("-", 48_000, 2) as writer:
        for _ in range(int(sys.argv[1])):
            writer.write(np.full((2, 48_000), 0.5, np.float32))
except OutputError as error:
    sys.exit(str(error))
"""


def test_write_stream_through_a_pipe() -> None:
    command = [sys.executable, "-c", STREAM, "2"]
    clip = read_clip(subprocess.run(command, capture_output=True, check=True).stdout, name="pipe")
    assert clip.samples.shape == (2, 96_000)


def test_write_stream_to_a_reader_that_leaves() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", STREAM, "50"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.read(100)
        process.stdout.close()
        said = process.stderr.read().decode()
    assert said == "cannot write standard output: the reader closed the pipe\n"
    assert process.returncode == 1
