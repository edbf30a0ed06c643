"""The model that comes with the package is understood: a speech recogniser hears its words."""

import re
from pathlib import Path

import numpy as np
import pytest
from pocketsphinx import Decoder

import mosstalk
from mosstalk.checkpoint.hub import BUILT_IN, resolve_model
from mosstalk.errors import CheckpointError

# Simple sentences that the recipe keeps out of its training.
SENTENCES = (
    (Path(__file__).parents[2] / "recipes" / "sprout" / "test_sentences.txt")
    .read_text("utf-8")
    .splitlines()
)
LARGEST_BYTES = 12_000_000


@pytest.fixture(scope="module")
def speaker() -> mosstalk.Speaker:
    try:
        resolve_model(BUILT_IN)
    except CheckpointError:
        pytest.skip("the built-in model is not part of this checkout")
    return mosstalk.load()


def words(text: str) -> list[str]:
    return re.findall(r"[a-z']+", text.lower())


def words_heard(said: list[str], heard: list[str]) -> int:
    """Length of the longest common subsequence: words heard in their order."""
    row = [0] * (len(heard) + 1)
    for word in said:
        above = row
        row = [0]
        for i, other in enumerate(heard):
            row.append(above[i] + 1 if word == other else max(row[i], above[i + 1]))
    return row[-1]


def hear(speech: mosstalk.Speech) -> list[str]:
    assert speech.sample_rate == 16_000
    decoder = Decoder(samprate=16_000, loglevel="FATAL")
    decoder.start_utt()
    pcm = (speech.samples.mean(axis=0).clip(-1, 1) * 32767).astype(np.int16)
    decoder.process_raw(pcm.tobytes(), full_utt=True)
    decoder.end_utt()
    found = decoder.hyp()
    return words(found.hypstr) if found else []


def test_built_in_voice_is_understood(speaker: mosstalk.Speaker) -> None:
    said = heard = 0
    for i, text in enumerate(SENTENCES):
        speech = speaker.say(text, seed=i)
        assert speech.summary.stop_reason == "end"
        said += len(words(text))
        heard += words_heard(words(text), hear(speech))
    assert len(SENTENCES) == 20
    assert heard >= said / 2, f"{heard} of {said} words"


def test_built_in_model_is_small() -> None:
    path, _ = resolve_model(BUILT_IN)
    assert path.stat().st_size <= LARGEST_BYTES
