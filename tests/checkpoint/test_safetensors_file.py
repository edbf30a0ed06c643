"""safetensors files: the three dtypes, and every kind of damage."""

import json
from pathlib import Path

import numpy as np
import pytest
from checkpoint_files import bf16, write_raw_safetensors, write_safetensors_file
from safetensors.numpy import load_file, save_file

from mosstalk.checkpoint.files import read_weights_file
from mosstalk.checkpoint.storage import StorageType
from mosstalk.errors import CheckpointError

RNG = np.random.default_rng(1)
VALUES = RNG.standard_normal((3, 4), np.float32)


def test_reads_what_the_safetensors_library_wrote(tmp_path: Path) -> None:
    arrays = {"a": VALUES, "b": VALUES.astype(np.float16), "scalar": np.array(2.5, np.float32)}
    save_file(arrays, tmp_path / "model.safetensors")
    tensors = read_weights_file(tmp_path / "model.safetensors")
    assert tensors.keys() == arrays.keys()
    for name, array in arrays.items():
        assert tensors[name].shape == array.shape
        assert tensors[name].data.tobytes() == array.tobytes()


def test_bf16_widens_exactly(tmp_path: Path) -> None:
    write_safetensors_file(tmp_path / "m.safetensors", {"w": bf16(VALUES)})
    tensor = read_weights_file(tmp_path / "m.safetensors")["w"]
    assert tensor.storage is StorageType.BF16
    expected = (VALUES.view(np.uint32) & 0xFFFF0000).view(np.float32)
    np.testing.assert_array_equal(tensor.to_float32(), expected)


def test_tensors_are_views_of_the_file_not_copies(tmp_path: Path) -> None:
    save_file({"w": VALUES}, tmp_path / "m.safetensors")
    data = read_weights_file(tmp_path / "m.safetensors")["w"].data
    assert not data.flags.owndata
    assert not data.flags.writeable


def test_unaligned_tensors_are_copied_to_be_aligned(tmp_path: Path) -> None:
    odd = np.zeros(1, np.float16)
    write_safetensors_file(tmp_path / "m.safetensors", {"odd": odd, "w": VALUES})
    data = read_weights_file(tmp_path / "m.safetensors")["w"].data
    assert data.flags.aligned
    np.testing.assert_array_equal(data, VALUES)


def test_golden_codec_equals_the_safetensors_library(golden_dir: Path) -> None:
    path = golden_dir / "checkpoints" / "codec_nano_narrow" / "model.safetensors"
    if not path.exists():
        pytest.skip(f"{path} is not there")
    tensors = read_weights_file(path)
    reference = load_file(path)
    assert tensors.keys() == reference.keys()
    assert all(np.array_equal(tensors[name].data, reference[name]) for name in reference)


def test_truncated_file_names_both_sizes(tmp_path: Path) -> None:
    path = tmp_path / "m.safetensors"
    save_file({"w": VALUES}, path)
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])
    with pytest.raises(CheckpointError, match=rf"truncated.*{len(whole)}.*{len(whole) - 1}"):
        read_weights_file(path)
    path.write_bytes(whole[:20])
    with pytest.raises(CheckpointError, match="truncated"):
        read_weights_file(path)


def entry(begin: int, end: int, shape: list[int], dtype: str = "F32") -> dict[str, object]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ({"a": entry(0, 8, [2]), "b": entry(4, 12, [2])}, "tensors a and b overlap"),
        ({"ids": entry(0, 16, [2], "I64")}, "tensor ids has dtype I64"),
        ({"ids": entry(0, 16, [2]) | {"dtype": ["F32"]}}, "tensor ids has dtype"),
        ({"a": entry(0, 8, [3])}, r"tensor a has shape \[3\] as F32 but 8 bytes"),
        ({"a": entry(8, 0, [2])}, "tensor a has shape"),
        ({"a": entry(-8, 0, [2])}, "tensor a has a damaged header entry"),
        ({"a": {"dtype": "F32"}}, "tensor a has a damaged header entry"),
        ({"a": 3}, "tensor a has a damaged header entry"),
    ],
)
def test_damaged_header_names_the_tensor(
    tmp_path: Path, header: dict[str, object], message: str
) -> None:
    write_raw_safetensors(tmp_path / "m", json.dumps(header).encode(), bytes(16))
    with pytest.raises(CheckpointError, match=message):
        read_weights_file(tmp_path / "m")


def test_name_that_stands_twice_is_an_error(tmp_path: Path) -> None:
    one = json.dumps(entry(0, 8, [2]))
    write_raw_safetensors(tmp_path / "m", f'{{"a": {one}, "a": {one}}}'.encode(), bytes(8))
    with pytest.raises(CheckpointError, match="'a' stands twice"):
        read_weights_file(tmp_path / "m")


def test_header_that_is_not_json_is_an_error(tmp_path: Path) -> None:
    write_raw_safetensors(tmp_path / "m", b"{" * 100_000, bytes(8))
    with pytest.raises(CheckpointError, match="header is not valid JSON"):
        read_weights_file(tmp_path / "m")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:00", "git lfs pull.*mosstalk p"),
        (b"\n<!DOCTYPE html><html><body>404", "web page"),
        (b"<html>", "web page"),
        (b"Not Found", r"not a safetensors, PyTorch or GGUF file \(it starts with b'Not Foun'\)"),
        (b"abc", "not a safetensors"),
    ],
)
def test_impostors_are_named(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "model.safetensors"
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match=message) as caught:
        read_weights_file(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_missing_file_is_our_error(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="cannot read .*nowhere: No such file"):
        read_weights_file(tmp_path / "nowhere")
