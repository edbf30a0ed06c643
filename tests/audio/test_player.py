"""Playing, with programs of our own in place of the system's players."""

import shutil
import time
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from mosstalk.audio.play import open_player
from mosstalk.audio.read import read_clip
from mosstalk.errors import OutputError

Samples = NDArray[np.float32]


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder that is the whole PATH, and the working folder of what runs."""
    folder = tmp_path / "programs"
    folder.mkdir()
    for tool in ("cat", "sleep"):
        found = shutil.which(tool)
        assert found is not None
        (folder / tool).symlink_to(found)
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.chdir(tmp_path)
    return folder


def install(folder: Path, name: str, script: str) -> None:
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)


@pytest.mark.parametrize("name", ["paplay", "pw-cat", "aplay", "play"])
def test_play_raw_samples(stereo: Samples, programs: Path, name: str) -> None:
    install(programs, name, 'echo "$*" > options; cat > played')
    with open_player(48_000, 2) as player:
        player.write(stereo[:, :10_000])
        player.write(stereo[:, 10_000:])
    played = np.frombuffer(Path("played").read_bytes(), "<i2").reshape(-1, 2)
    assert np.array_equal(played, np.rint(stereo.T * 32767).astype(np.int16))
    options = Path("options").read_text()
    assert "48000" in options
    assert "raw" in options


def test_play_wav_through_ffplay(stereo: Samples, programs: Path) -> None:
    install(programs, "ffplay", "cat > played")
    with open_player(48_000, 2) as player:
        player.write(stereo[:, :10_000])
        player.write(stereo[:, 10_000:])
    assert read_clip(Path("played"), name="played").samples.shape == stereo.shape


def test_play_file_through_afplay(stereo: Samples, programs: Path) -> None:
    install(programs, "afplay", 'cat "$1" > played')
    with open_player(48_000, 2) as player:
        player.write(stereo)
    assert read_clip(Path("played"), name="played").samples.shape == stereo.shape


def test_play_without_a_player_names_what_to_install(programs: Path) -> None:
    with pytest.raises(OutputError, match="alsa-utils"):
        open_player(48_000, 2)


@pytest.mark.parametrize("name", ["aplay", "afplay"])
def test_play_that_fails_says_why(stereo: Samples, programs: Path, name: str) -> None:
    install(programs, name, "echo first >&2; echo no such device >&2; exit 3")
    with (
        pytest.raises(OutputError, match=rf"^{name} stopped playing \(no such device\)") as caught,
        open_player(48_000, 2) as player,
    ):
        for _ in range(20):
            player.write(stereo)
    assert "\n" not in str(caught.value)


def test_play_that_fails_silently_gives_its_status(stereo: Samples, programs: Path) -> None:
    install(programs, "aplay", "cat > /dev/null; exit 3")
    with pytest.raises(OutputError, match="exit status 3"), open_player(48_000, 2) as player:
        player.write(stereo)


def test_play_of_a_broken_program(programs: Path) -> None:
    (programs / "aplay").write_bytes(b"\x7fELF nothing")
    (programs / "aplay").chmod(0o755)
    with pytest.raises(OutputError, match="cannot start"):
        open_player(48_000, 2)


@pytest.mark.parametrize("name", ["aplay", "afplay"])
def test_play_cancelled_stops_at_once(stereo: Samples, programs: Path, name: str) -> None:
    install(programs, name, "exec sleep 30")
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt), open_player(48_000, 2) as player:
        player.write(stereo[:, :1_000])
        raise KeyboardInterrupt
    assert time.monotonic() - start < 5
