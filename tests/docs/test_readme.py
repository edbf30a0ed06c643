"""The README's examples run as they stand, with the built-in model and no network."""

import argparse
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module, resources
from pathlib import Path
from textwrap import dedent

import pytest

from mosstalk import cli

ROOT = Path(__file__).parents[2]
STORY = "Once there was a kettle. It sang every morning, and nobody minded."
_BLOCK = re.compile(r"^ *```(\w+)( no-run)?\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)

built_in = pytest.mark.skipif(
    not resources.files("mosstalk").joinpath("data", "sprout.gguf").is_file(),
    reason="the built-in model is not part of this checkout",
)


def blocks(language: str) -> list[str]:
    """The examples in a language, but those marked `no-run`: what they need is not here."""
    found = _BLOCK.findall((ROOT / "README.md").read_text("utf-8"))
    return [dedent(code) for kind, no_run, code in found if kind == language and not no_run]


def test_readme_has_examples_to_run() -> None:
    assert len(blocks("sh")) >= 3
    assert len(blocks("python")) >= 1


@built_in
def test_readme_shell_examples(tmp_path: Path) -> None:
    (tmp_path / "story.txt").write_text(STORY)
    script = "set -eux\n" + "\n".join(blocks("sh"))
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["sh", "-c", script],
        cwd=tmp_path,
        env={**os.environ, "PATH": path, "MOSSTALK_VOICES": str(tmp_path / "voices")},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    written = {path.name for path in tmp_path.iterdir()}
    assert {"kettle.flac", "morning.wav", "story.wav", "stream.wav", "other.wav"} <= written
    assert len(json.loads(done.stdout.splitlines()[0])) > 5  # of --json, the first to print


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


def test_readme_names_every_option() -> None:
    """The table of commands follows what `--help` shows."""
    readme = (ROOT / "README.md").read_text("utf-8")
    table = {
        line.split("`")[1].split()[0]: line
        for line in readme.splitlines()
        if line.startswith("| `")
    }
    for command in ("parity", "voices"):  # a row for each of their own commands
        rows = [line for line in readme.splitlines() if line.startswith(f"| `{command}")]
        table[command] = "".join(rows)
    commands = tuple(cli._COMMANDS)
    assert set(table) == set(commands)
    for command in commands:
        parser = argparse.ArgumentParser()
        import_module(f"mosstalk.cli.{command}").add_arguments(parser)
        missing = [flag for flag in _flags(parser) if f"`{flag}" not in table[command]]
        assert not missing, f"{command}: {missing}"


def _flags(parser: argparse.ArgumentParser) -> Iterator[str]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for below in action.choices.values():
                yield from _flags(below)
        else:
            yield from (flag for flag in action.option_strings if flag not in ("-h", "--help"))


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
