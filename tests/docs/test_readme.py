"""The README's examples run as they stand, with the built-in model and no network."""

import os
import re
import subprocess
import sys
from importlib import resources
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
STORY = "Once there was a kettle. It sang every morning, and nobody minded."
_BLOCK = re.compile(r"^ *```(\w+)( no-run)?\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)

built_in = pytest.mark.skipif(
    not resources.files("mosstalk").joinpath("data", "sprout.gguf").is_file(),
    reason="the built-in model is not part of this checkout",
)


def blocks(language: str) -> list[str]:
    found = _BLOCK.findall((ROOT / "README.md").read_text("utf-8"))
    return [code for kind, no_run, code in found if kind == language and not no_run]


def test_readme_has_examples_to_run() -> None:
    assert len(blocks("sh")) >= 3
    assert len(blocks("python")) >= 1


@built_in
def test_readme_shell_examples(tmp_path: Path) -> None:
    (tmp_path / "story.txt").write_text(STORY)
    script = "set -eu\n" + "\n".join(blocks("sh"))
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["sh", "-c", script],
        cwd=tmp_path,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    written = {path.name for path in tmp_path.iterdir()}
    assert {"kettle.flac", "morning.wav", "story.wav", "sprout-f16.gguf", "other.wav"} <= written


@built_in
def test_readme_python_examples(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(blocks("python"))],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "hello.wav").stat().st_size > 10_000


def test_architecture_names_every_package() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    assert len(text.splitlines()) < 100
    source = ROOT / "src" / "mosstalk"
    packages = [f"{path.parent.name}/" for path in source.glob("*/__init__.py")]
    modules = [path.name for path in source.glob("*.py") if not path.name.startswith("__")]
    missing = [name for name in (*packages, *modules) if f"`{name}" not in text]
    assert not missing


def test_decisions_have_their_three_parts() -> None:
    records = sorted((ROOT / "docs" / "decisions").glob("*.md"))
    assert [int(path.name[:4]) for path in records] == list(range(1, len(records) + 1))
    for path in records:
        text = path.read_text("utf-8")
        assert all(f"\n## {part}\n" in text for part in ("Context", "Decision", "Consequences"))


def test_changelog_names_the_version() -> None:
    import mosstalk

    assert f'version = "{mosstalk.__version__}"' in (ROOT / "pyproject.toml").read_text("utf-8")
    assert "## [Unreleased]" in (ROOT / "CHANGELOG.md").read_text("utf-8")
