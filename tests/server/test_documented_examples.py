"""The examples of docs/server.md run as they stand, but for the port."""

import argparse
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import av
import pytest
from live_server import LiveServer

from mosstalk.cli import serve
from mosstalk.server.encoding import FORMATS
from mosstalk.server.requests import DesignBody, SpeechBody

DOCUMENT = Path(__file__).parents[2] / "docs" / "server.md"
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PROGRAMS = {
    "sh": ["sh", "-euc"],
    "python": [sys.executable, "-c"],
    "js": ["node", "--input-type=module", "-e"],
}


def example(language: str, words: str) -> str:
    """The example in a language that has these words."""
    found = _BLOCK.findall(DOCUMENT.read_text("utf-8"))
    return next(code for kind, code in found if kind == language and words in code)


@pytest.mark.parametrize(
    ("language", "words", "written"),
    [
        ("sh", "-o kettle.wav", "kettle.wav"),
        ("python", "OpenAI(", "kettle.wav"),
        ("js", "fetch(", "kettle.mp3"),
    ],
)
def test_documented_example(
    built_in: LiveServer, tmp_path: Path, language: str, words: str, written: str
) -> None:
    command = PROGRAMS[language]
    program = "curl" if language == "sh" else command[0]
    if shutil.which(program) is None:
        pytest.skip(f"there is no {program} here")
    code = example(language, words).replace("127.0.0.1:8080", f"127.0.0.1:{built_in.port}")
    done = subprocess.run(
        [*command, code],
        cwd=tmp_path,
        env={**os.environ, "no_proxy": "127.0.0.1"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    with av.open(str(tmp_path / written)) as container:
        assert sum(frame.samples for frame in container.decode(audio=0)) > 8_000


def test_document_names_every_option_and_field() -> None:
    text = DOCUMENT.read_text("utf-8")
    parser = argparse.ArgumentParser()
    serve.add_arguments(parser)
    flags = [flag for action in parser._actions for flag in action.option_strings]
    names = [flag for flag in flags if flag not in ("-h", "--help")]
    names += [*SpeechBody.model_fields, *DesignBody.model_fields, *FORMATS]
    assert [name for name in names if f"`{name}" not in text] == []
