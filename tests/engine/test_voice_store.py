"""Voices on disk."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from safetensors.numpy import save_file
from small_disk import small_disk

from mosstalk import CheckpointError, OutputError, Speaker, UsageError, Voice
from mosstalk.voices import VoiceStore

_NAME = "ada.voice.safetensors"


def test_save_and_load(voice: Voice, voices_folder: Path) -> None:
    store = VoiceStore()
    assert store.folder == voices_folder
    assert store.save(replace(voice, transcript="Ünïcode words.")) == voices_folder / _NAME
    loaded = store.load("ada")
    assert np.array_equal(loaded.codes, voice.codes)
    assert loaded.codes.dtype == np.int32
    assert loaded.transcript == "Ünïcode words."
    for field in ("name", "sample_rate", "source_hash", "codec_identity"):
        assert getattr(loaded, field) == getattr(voice, field)
    assert [path.name for path in voices_folder.iterdir()] == [_NAME]


def test_saved_voice_speaks_as_the_new_one(speaker: Speaker, voice: Voice) -> None:
    speaker.voices.save(voice)
    said = [speaker.say("Hello.", which, seed=1, max_frames=3) for which in (voice, "ada")]
    assert np.array_equal(said[0].samples, said[1].samples)


def test_list_and_remove(voice: Voice) -> None:
    store = VoiceStore()
    before = store.names()
    for name in ("zoe", "ada", "声音", "b.2_c-d"):
        store.save(replace(voice, name=name))
    assert store.names() == sorted([*before, "zoe", "ada", "声音", "b.2_c-d"])
    assert {known.name for known in store} >= {"zoe", "ada"}
    store.remove("zoe")
    assert "zoe" not in store.names()
    with pytest.raises(UsageError, match="unknown voice 'zoe'; voices here: .*ada"):
        store.load("zoe")
    with pytest.raises(UsageError, match="unknown voice"):
        store.remove("zoe")


def test_taken_name(voice: Voice) -> None:
    store = VoiceStore()
    store.save(voice)
    other = replace(voice, codes=voice.codes[:3])
    with pytest.raises(UsageError, match="already"):
        store.save(other)
    assert len(store.load("ada").codes) == len(voice.codes)
    store.save(other, replace=True)
    assert len(store.load("ada").codes) == 3


@pytest.mark.parametrize("name", ["", "none", "../ada", "a/b", "a b", ".ada", "x" * 65, "a\nb"])
def test_impossible_name(voice: Voice, name: str) -> None:
    store = VoiceStore()
    for use in (store.load, store.remove, lambda name: store.save(replace(voice, name=name))):
        with pytest.raises(UsageError, match="cannot be a voice's name"):
            use(name)


def test_damaged_file(voice: Voice, voices_folder: Path) -> None:
    store = VoiceStore()
    whole = store.save(voice).read_bytes()
    for content in (b"", b"no voice", whole[: len(whole) // 2], whole[:-1]):
        (voices_folder / _NAME).write_bytes(content)
        with pytest.raises(CheckpointError, match="not a readable voice"):
            store.load("ada")


@pytest.mark.parametrize(
    "codes",
    [
        np.zeros((0, 4), np.int16),
        np.full((3, 4), -1, np.int16),
        np.zeros(3, np.int16),
        np.full((3, 4), np.nan, np.float32),
    ],
    ids=["empty", "negative", "flat", "fractions"],
)
def test_unusable_codes(codes: NDArray[np.generic], voices_folder: Path) -> None:
    voices_folder.mkdir()
    about = {"format": "mosstalk-voice-1", "sample_rate": "16000"}
    save_file({"codes": codes}, voices_folder / _NAME, about)
    with pytest.raises(CheckpointError, match="no usable codes"):
        VoiceStore().load("ada")


@pytest.mark.parametrize(
    "about", [None, {"format": "other"}, {"format": "mosstalk-voice-1", "sample_rate": "loud"}]
)
def test_other_metadata(about: dict[str, str] | None, voices_folder: Path) -> None:
    voices_folder.mkdir()
    save_file({"codes": np.zeros((3, 4), np.int16)}, voices_folder / _NAME, about)
    with pytest.raises(CheckpointError, match="voice file"):
        VoiceStore().load("ada")


def test_full_disk_leaves_nothing(voice: Voice, voices_folder: Path) -> None:
    with pytest.raises(OutputError, match="cannot write"), small_disk(100):
        VoiceStore().save(voice)
    assert list(voices_folder.iterdir()) == []


def test_folder_that_cannot_be_made(voice: Voice, voices_folder: Path) -> None:
    voices_folder.write_text("a file where the folder should be")
    store = VoiceStore()
    assert "ada" not in store.names()
    with pytest.raises(OutputError, match="cannot write"):
        store.save(voice)
