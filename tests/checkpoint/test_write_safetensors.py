"""Directories written by mosstalk: readable by others, whole or not there."""

import json
from pathlib import Path

import numpy as np
import pytest
from checkpoint_files import bf16, write_model
from safetensors.numpy import load_file
from small_disk import small_disk

from mosstalk.checkpoint.checkpoint import Checkpoint, open_checkpoint
from mosstalk.checkpoint.storage import StorageType
from mosstalk.checkpoint.weights import as_weight
from mosstalk.checkpoint.write import write_gguf, write_safetensors
from mosstalk.errors import OutputError, UsageError

RNG = np.random.default_rng(5)


@pytest.fixture
def checkpoint(tmp_path: Path) -> Checkpoint:
    model = {
        "a.weight": RNG.standard_normal((3, 5), np.float32).astype(np.float16),
        "b.weight": bf16(RNG.standard_normal((3, 64), np.float32)),
        "c.bias": RNG.standard_normal(5, np.float32),
        "head.weight": RNG.standard_normal((9, 64), np.float32),
        "scalar": np.array(2, np.float32),
    }
    codec = {"codebook.weight": RNG.standard_normal((4, 8), np.float32)}
    write_model(tmp_path / "m", model, hidden_size=5)
    write_model(tmp_path / "m" / "audio_tokenizer", codec, "moss-audio-tokenizer")
    (tmp_path / "m" / "tokenizer.model").write_bytes(b"pieces")
    (tmp_path / "m" / "tokenizer.json").write_bytes(b"{}")
    return open_checkpoint(tmp_path / "m")


@pytest.mark.parametrize("storage", [item for item in StorageType if item != "q8_0"])
def test_round_trip_is_bit_equal(
    checkpoint: Checkpoint, tmp_path: Path, storage: StorageType
) -> None:
    out = tmp_path / "new" / "out"
    write_safetensors(checkpoint, out, storage)
    back = open_checkpoint(out)
    assert back.config == checkpoint.config
    assert back.codec_config == checkpoint.codec_config
    assert back.tokenizer_model == b"pieces"
    assert back.tokenizer_json == b"{}"
    assert back.identity == checkpoint.identity
    assert back.tensors.keys() == checkpoint.tensors.keys()
    for name, tensor in checkpoint.tensors.items():
        expected = as_weight(tensor, storage)
        assert back.tensors[name].storage is expected.storage
        assert back.tensors[name].shape == expected.shape
        np.testing.assert_array_equal(back.tensors[name].data, expected.data)
    assert not list(tmp_path.glob("**/.*"))


def test_the_safetensors_library_reads_our_files(checkpoint: Checkpoint, tmp_path: Path) -> None:
    write_safetensors(checkpoint, tmp_path / "out", StorageType.F16)
    arrays = load_file(tmp_path / "out" / "model.safetensors")
    assert arrays.keys() == checkpoint.tensors.keys()
    for name, array in arrays.items():
        np.testing.assert_array_equal(
            array, as_weight(checkpoint.tensors[name], StorageType.F16).data
        )


def test_skipped_tensors_are_left_out(checkpoint: Checkpoint, tmp_path: Path) -> None:
    write_safetensors(checkpoint, tmp_path / "out", StorageType.NATIVE, skip=("head*",))
    back = open_checkpoint(tmp_path / "out")
    assert checkpoint.tensors.keys() - back.tensors.keys() == {"head.weight"}


def test_codec_alone_is_its_own_directory(checkpoint: Checkpoint, tmp_path: Path) -> None:
    codec = open_checkpoint(checkpoint.path / "audio_tokenizer")
    write_safetensors(codec, tmp_path / "out", StorageType.NATIVE)
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "config.json",
        "model.safetensors",
    ]
    config = json.loads((tmp_path / "out" / "config.json").read_text())
    assert config == checkpoint.codec_config


def test_q8_0_is_for_gguf_only(checkpoint: Checkpoint, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="safetensors cannot hold q8_0 weights; write a .gguf"):
        write_safetensors(checkpoint, tmp_path / "out", StorageType.Q8_0)
    write_gguf(checkpoint, tmp_path / "m.gguf", StorageType.Q8_0)
    quantised = open_checkpoint(tmp_path / "m.gguf")
    with pytest.raises(UsageError, match="safetensors cannot hold q8_0"):
        write_safetensors(quantised, tmp_path / "out", StorageType.NATIVE)
    assert not (tmp_path / "out").exists()
    write_safetensors(quantised, tmp_path / "out", StorageType.F32)
    expected = quantised.tensors["b.weight"].to_float32()
    np.testing.assert_array_equal(
        open_checkpoint(tmp_path / "out").tensors["b.weight"].data, expected
    )


def test_full_disk_leaves_nothing(checkpoint: Checkpoint, tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="cannot write .*out: "), small_disk(2000):
        write_safetensors(checkpoint, tmp_path / "out", StorageType.F32)
    assert [path.name for path in tmp_path.iterdir()] == ["m"]


def test_folder_in_use_is_kept(checkpoint: Checkpoint, tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="exists and is not an empty folder"):
        write_safetensors(checkpoint, checkpoint.path, StorageType.F32)
    assert open_checkpoint(checkpoint.path).identity == checkpoint.identity
    (tmp_path / "empty").mkdir()
    write_safetensors(checkpoint, tmp_path / "empty", StorageType.F32)
    assert open_checkpoint(tmp_path / "empty").identity == checkpoint.identity
