"""`parity dump` of the delay family: what it refuses, and the original code itself where it is.

For the latter set MOSSTALK_ORIGINAL_DELAY to a folder that holds the Python files of MOSS-TTS's
delay family and, in `audio_tokenizer`, those of its codec; transformers 5.0.0 must be installed.
"""

import os
import shutil
import sys
import tomllib
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from byte_bpe import byte_json
from delay_dumps import RECORDED, RECORDED_CODEC, RECORDED_MODEL, checkpoint_folder

from mosstalk.cli import main
from mosstalk.errors import CheckpointError, OutputError, UsageError
from mosstalk.parity.delay.files import read_codec, read_hidden, read_prompt, read_rows
from mosstalk.parity.reference.original import DELAY_LIBRARIES
from mosstalk.parity.reference.request import DumpOptions
from mosstalk.parity.reference.write import write_dump


@pytest.fixture
def empty_code(golden_dir: Path, tmp_path: Path) -> Path:
    """A reference directory whose code does nothing."""
    folder = tmp_path / "published"
    folder.mkdir()
    for name in ("config.json", "model.safetensors"):
        shutil.copy(checkpoint_folder(golden_dir, RECORDED_MODEL) / name, folder)
    (folder / "modeling_moss_tts.py").write_text("")
    return folder


@pytest.fixture
def published(golden_dir: Path, tmp_path: Path) -> Path:
    """A checkpoint with the original code in it."""
    named = os.environ.get("MOSSTALK_ORIGINAL_DELAY")
    if not named:
        pytest.skip("MOSSTALK_ORIGINAL_DELAY is not set")
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    folder = tmp_path / "published"
    for name, place in ((RECORDED_MODEL, "."), (RECORDED_CODEC, "audio_tokenizer")):
        shutil.copytree(checkpoint_folder(golden_dir, name), folder / place, dirs_exist_ok=True)
        for file in (Path(named) / place).glob("*.py"):
            shutil.copy(file, folder / place)
    # An id that is written out there lies beyond this model's vocabulary.
    model = folder / "modeling_moss_tts.py"
    text = model.read_text()
    literal, of_config = "[..., 151662]", "[..., self.config.audio_assistant_delay_slot_token_id]"
    model.write_text(text.replace(literal, of_config))
    return folder


@pytest.mark.filterwarnings("default")  # of the libraries
def test_delay_original_still_says_what_was_recorded(published: Path, tmp_path: Path) -> None:
    out = tmp_path / "again"
    report = write_dump(published, out, None, DumpOptions())
    assert report.passed, report.as_text()
    prompt, recorded_prompt = (read_prompt(f / "ref_prompt.json") for f in (out, RECORDED))
    assert np.array_equal(prompt.rows, recorded_prompt.rows)
    hidden, recorded = (read_hidden(f / "ref_hidden.json") for f in (out, RECORDED))
    assert np.allclose(hidden.probe_hidden, recorded.probe_hidden, rtol=0, atol=3e-5)
    for name in ("ref_rows.json", "ref_rows_penalty.json"):
        assert np.array_equal(read_rows(out / name).rows, read_rows(RECORDED / name).rows)
    codec, recorded_codec = (read_codec(f / "ref_codec.json") for f in (out, RECORDED))
    assert np.allclose(codec.probe_values, recorded_codec.probe_values, rtol=0, atol=2e-4)


@pytest.mark.filterwarnings("default")
def test_delay_code_that_fails_is_one_clear_error(published: Path, tmp_path: Path) -> None:
    (published / "inference_utils.py").write_text("raise RuntimeError('broken\\nbeyond repair')\n")
    with pytest.raises(CheckpointError, match="the original code failed: RuntimeError: broken$"):
        write_dump(published, tmp_path / "dump", None, DumpOptions())
    assert not (tmp_path / "dump").exists()


@pytest.mark.filterwarnings("default")
def test_delay_folder_that_is_not_empty_is_refused(published: Path, tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="exists and is not an empty folder"):
        write_dump(published, published, None, DumpOptions())


@pytest.mark.parametrize("missing", ["torch", "transformers"])
def test_delay_extra_is_named(
    empty_code: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    missing: str,
) -> None:
    for name in ("torch", "transformers"):
        present = SimpleNamespace(__version__=DELAY_LIBRARIES.transformers)
        monkeypatch.setitem(sys.modules, name, None if name == missing else present)
    out = tmp_path / "dump"
    assert main(["parity", "dump", "--reference", str(empty_code), "--out", str(out)]) == 2
    assert capsys.readouterr().err.splitlines() == [
        f"mosstalk: error: {missing} is not installed, which runs the original: "
        "pip install 'mosstalk[reference-delay]'"
    ]
    assert not out.exists()


def test_delay_another_transformers_is_refused(
    empty_code: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(__version__="2.13.0"))
    monkeypatch.setitem(sys.modules, "transformers", SimpleNamespace(__version__="4.57.6"))
    with pytest.raises(UsageError, match=r"transformers is 4\.57\.6, but .* 5\.0\.0: pip install"):
        write_dump(empty_code, tmp_path / "dump", None, DumpOptions())


def test_the_delay_extra_pins_what_the_code_asks_for() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text("utf-8"))
    extra = project["project"]["optional-dependencies"][DELAY_LIBRARIES.extra]
    assert f"transformers=={DELAY_LIBRARIES.transformers}" in extra


def test_delay_options_that_do_not_apply(empty_code: Path, tmp_path: Path) -> None:
    out = tmp_path / "dump"
    for options in (
        DumpOptions(texts=("Hello.",)),
        DumpOptions(instruction="A tired old man."),
        DumpOptions(language="English"),
    ):
        with pytest.raises(UsageError, match=r"has no tokenizer\.json; leave text"):
            write_dump(empty_code, out, None, options)
    (empty_code / "tokenizer.json").write_bytes(byte_json())
    with pytest.raises(UsageError, match="2 texts were given, but a dump has one prompt"):
        write_dump(empty_code, out, None, DumpOptions(texts=("One.", "Two.")))


def test_nano_is_told_no_instruction(golden_dir: Path, tmp_path: Path) -> None:
    folder = tmp_path / "nano"
    folder.mkdir()
    for name in ("config.json", "model.safetensors"):
        shutil.copy(checkpoint_folder(golden_dir, "nano_b") / name, folder)
    (folder / "modeling_moss_tts_nano.py").write_text("")
    with pytest.raises(UsageError, match="is told no instruction or language"):
        write_dump(folder, tmp_path / "dump.npz", None, DumpOptions(instruction="Softly."))
