"""The original code itself, where it is: set MOSSTALK_ORIGINAL to a folder that holds the Python
files of MOSS-TTS-Nano and, in `audio_tokenizer`, those of its codec.
"""

import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from reference_dumps import RECORDED, RECORDED_CODEC, RECORDED_MODEL, checkpoint_folder

from mosstalk.errors import CheckpointError
from mosstalk.parity.reference.dump_file import read_dump_file
from mosstalk.parity.reference.request import DumpOptions
from mosstalk.parity.reference.write import write_dump


@pytest.fixture
def published(golden_dir: Path, tmp_path: Path) -> Path:
    """A checkpoint with the original code in it."""
    named = os.environ.get("MOSSTALK_ORIGINAL")
    if not named:
        pytest.skip("MOSSTALK_ORIGINAL is not set")
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    folder = tmp_path / "published"
    for name, place in ((RECORDED_MODEL, "."), (RECORDED_CODEC, "audio_tokenizer")):
        shutil.copytree(checkpoint_folder(golden_dir, name), folder / place, dirs_exist_ok=True)
        for file in (Path(named) / place).glob("*.py"):
            shutil.copy(file, folder / place)
    return folder


@pytest.mark.filterwarnings("default")  # of the libraries
def test_it_still_says_what_was_recorded(published: Path, tmp_path: Path) -> None:
    out = tmp_path / "again.npz"
    report = write_dump(published, out, None, DumpOptions())
    assert report.passed, report.as_text()
    found, recorded = read_dump_file(out), read_dump_file(RECORDED)
    assert found.meta["model_identity"] == recorded.meta["model_identity"]
    assert found.meta["codec_identity"] == recorded.meta["codec_identity"]
    assert found.arrays.keys() == recorded.arrays.keys()
    for name, array in recorded.arrays.items():
        if array.dtype == np.int32:
            assert np.array_equal(found.arrays[name], array), name
        else:
            scale = np.abs(array).max()
            assert np.allclose(found.arrays[name], array, rtol=0, atol=1e-5 * scale), name


@pytest.mark.filterwarnings("default")
def test_code_that_fails_is_one_clear_error(published: Path, tmp_path: Path) -> None:
    (published / "gpt2_decoder.py").write_text("raise RuntimeError('broken\\nbeyond repair')\n")
    with pytest.raises(CheckpointError, match="the original code failed: RuntimeError: broken$"):
        write_dump(published, tmp_path / "dump.npz", None, DumpOptions())


@pytest.mark.filterwarnings("default")
def test_weights_that_the_original_does_not_find_are_an_error(
    published: Path, tmp_path: Path
) -> None:
    decoder = published / "gpt2_decoder.py"
    text = decoder.read_text()
    assert "self.fc_out" in text
    decoder.write_text(text.replace("self.fc_out", "self.fc_away"))
    with pytest.raises(CheckpointError, match=r"misses \d+ tensors, such as .*fc_away"):
        write_dump(published, tmp_path / "dump.npz", None, DumpOptions())
