"""The recipe of the built-in voice runs from nothing to a model that speaks; what ships is its."""

import hashlib
import importlib.util
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import mosstalk
from mosstalk.checkpoint.hub import BUILT_IN, resolve_model

RECIPE = Path(__file__).parents[2] / "recipes" / "sprout"
SMOKE_SECONDS = 300


def _missing() -> list[str]:
    """What the recipe needs and this machine lacks."""
    modules = [
        name for name in ("torch", "scipy", "pocketsphinx") if not importlib.util.find_spec(name)
    ]
    files = ("/usr/share/games/fortunes", "/usr/share/wordnet", "/usr/share/dict/american-english")
    missing = modules + [name for name in files if not Path(name).exists()]
    return missing if shutil.which("flite") else [*missing, "flite"]


@pytest.mark.skipif(bool(_missing()), reason=f"the recipe needs {', '.join(_missing())}")
def test_recipe_makes_a_voice_from_nothing_at_one_hundredth(tmp_path: Path) -> None:
    command = [sys.executable, str(RECIPE / "make_voice.py"), "--work", str(tmp_path)]
    subprocess.run([*command, "--scale", "0.01"], check=True, timeout=SMOKE_SECONDS)
    speech = mosstalk.load(tmp_path / "sprout.gguf").say("Hello.", seed=1, max_frames=20)
    assert speech.sample_rate == 16_000
    assert speech.summary.frames > 0
    assert "<svg" in (tmp_path / "curves.svg").read_text("utf-8")


def test_recipe_names_the_hash_of_the_voice_that_ships() -> None:
    named = re.search(r"SHA-256 `([0-9a-f]{64})`", (RECIPE / "README.md").read_text("utf-8"))
    path, _ = resolve_model(BUILT_IN)
    assert named is not None
    assert hashlib.sha256(path.read_bytes()).hexdigest() == named[1]


@pytest.mark.parametrize("name", ["test_sentences.txt", "unseen_sentences.txt"])
def test_sentences_kept_out_are_plain_and_all_different(name: str) -> None:
    texts = (RECIPE / name).read_text("utf-8").splitlines()
    assert len(set(texts)) == len(texts)
    assert all(4 <= len(text.split()) <= 12 for text in texts)
