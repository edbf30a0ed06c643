"""pytorch_model.bin without torch: both layouts, strided views, and hostile pickles."""

import os
import pickle
import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest
from checkpoint_files import (
    View,
    bf16,
    torch_pickle,
    widen,
    write_torch_stream,
    write_torch_zip,
)

from mosstalk.checkpoint.files import read_weights_file
from mosstalk.checkpoint.storage import StorageType
from mosstalk.errors import CheckpointError

RNG = np.random.default_rng(2)
BASE = RNG.standard_normal(48, np.float32)
HALF = BASE[:15].astype(np.float16)
BRAIN = bf16(BASE[:21])
STORAGES = (BASE, HALF, BRAIN)
VIEWS = {
    "base": View(0, (6, 8), (8, 1)),
    "tied": View(0, (6, 8), (8, 1)),
    "transposed": View(0, (8, 6), (1, 8)),
    "row": View(0, (8,), (1,), offset=16),
    "column": View(0, (6,), (8,), offset=3),
    "window": View(0, (4, 4), (8, 1), offset=10),
    "one_wide": View(0, (6, 1, 8), (8, 99, 1)),
    "scalar": View(0, (), (), offset=5),
    "none": View(0, (0, 3), (3, 1)),
    "repeated": View(0, (4,), (0,), offset=7),
    "half": View(1, (3, 5), (5, 1)),
    "brain": View(2, (3, 7), (1, 3)),
}
MATRIX = BASE.reshape(6, 8)
EXPECTED = {
    "base": MATRIX,
    "tied": MATRIX,
    "transposed": MATRIX.T,
    "row": MATRIX[2],
    "column": MATRIX[:, 3],
    "window": MATRIX[1:5, 2:6],
    "one_wide": MATRIX[:, None, :],
    "scalar": BASE[5].reshape(()),
    "none": np.zeros((0, 3), np.float32),
    "repeated": np.full(4, BASE[7]),
    "half": HALF.reshape(3, 5).astype(np.float32),
    "brain": widen(BRAIN).reshape(7, 3).T,
}


@pytest.mark.parametrize("layout", ["zip", "stream"])
def test_reads_views_of_all_kinds(tmp_path: Path, layout: str) -> None:
    path = tmp_path / "pytorch_model.bin"
    description = torch_pickle(VIEWS, STORAGES, stream=layout == "stream")
    (write_torch_zip if layout == "zip" else write_torch_stream)(path, description, STORAGES)
    tensors = read_weights_file(path)
    assert list(tensors) == list(EXPECTED)
    for name, expected in EXPECTED.items():
        assert tensors[name].shape == expected.shape, name
        np.testing.assert_array_equal(tensors[name].to_float32(), expected, err_msg=name)
    assert tensors["half"].storage is StorageType.F16
    assert tensors["brain"].storage is StorageType.BF16


def test_contiguous_tensors_of_a_zip_are_views_and_tied_ones_share(tmp_path: Path) -> None:
    write_torch_zip(tmp_path / "m.bin", torch_pickle(VIEWS, STORAGES), STORAGES)
    tensors = read_weights_file(tmp_path / "m.bin")
    assert np.shares_memory(tensors["base"].data, tensors["tied"].data)
    assert np.shares_memory(tensors["base"].data, tensors["row"].data)
    assert not tensors["base"].data.flags.writeable


class Hostile:
    """Pickles to a call of os.system."""

    def __init__(self, command: str) -> None:
        self.command = command

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.system, (self.command,)


@pytest.mark.parametrize("layout", ["zip", "stream", "bare"])
@pytest.mark.parametrize("protocol", [2, 4])
def test_hostile_pickle_is_refused_by_name_and_not_run(
    tmp_path: Path, layout: str, protocol: int
) -> None:
    mark = tmp_path / "executed"
    description = pickle.dumps({"w": Hostile(f"touch {mark}")}, protocol)
    path = tmp_path / "m.bin"
    if layout == "zip":
        write_torch_zip(path, description)
    elif layout == "stream":
        write_torch_stream(path, description, ())
    else:
        path.write_bytes(description)
    with pytest.raises(CheckpointError, match=r"asks to run (posix|nt)\.system; refusing"):
        read_weights_file(path)
    assert not mark.exists()


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("builtins", "eval"),
        ("torch", "load"),
        ("torch.serialization", "load"),
        ("torch.hub", "evilStorage"),
        ("torch", "storage.os.systemStorage"),
        ("collections", "namedtuple"),
        ("torch._utils", "_rebuild_wrapper_subclass"),
    ],
)
def test_names_outside_the_list_are_refused(tmp_path: Path, module: str, name: str) -> None:
    write_torch_zip(tmp_path / "m.bin", f"\x80\x02c{module}\n{name}\n.".encode("latin-1"))
    with pytest.raises(CheckpointError, match=rf"asks to run {module}\.{name}; refusing"):
        read_weights_file(tmp_path / "m.bin")


def damaged_pickles() -> dict[str, bytes]:
    rebuild = b"ctorch._utils\n_rebuild_tensor_v2\n"
    return {
        "empty": b"",
        "no stop": b"\x80\x02}",
        "garbage": b"\x80\x02\xff\xff",
        "rebuild without arguments": b"\x80\x02" + rebuild + b")R.",
        "rebuild of a number": b"\x80\x02" + rebuild + b"(K\x01K\x01K\x01K\x01tR.",
        "a storage is called": b"\x80\x02ctorch\nFloatStorage\n)R.",
        "attributes set on a stand-in": b"\x80\x02" + rebuild + b"N}X\x01\x00\x00\x00aK\x01s\x86b.",
        "storage by an unknown reference": b"\x80\x02K\x07Q.",
        "huge memo index": b"\x80\x02}r\xff\xff\xff\x7f.",
        "deep": b"\x80\x02" + b"(" * 50 + b".",
    }


@pytest.mark.parametrize("kind", damaged_pickles())
def test_damaged_pickle_is_our_error(tmp_path: Path, kind: str) -> None:
    write_torch_zip(tmp_path / "m.bin", damaged_pickles()[kind])
    with pytest.raises(CheckpointError, match="not a readable PyTorch file"):
        read_weights_file(tmp_path / "m.bin")


@pytest.mark.parametrize(
    ("view", "message"),
    [
        (View(0, (7, 8), (8, 1)), "needs 224 bytes of a storage of 192"),
        (View(0, (6, 8), (9, 1)), "bytes of a storage of 192"),
        (View(0, (6, 8), (8, 1), offset=1), "bytes of a storage of 192"),
        (View(0, (2**30, 2**30), (0, 0)), "bytes of a storage of 192"),
        (View(0, (6, 8), (1,)), "2 axes, 1 strides"),
        (View(0, (-1,), (1,)), "impossible shape"),
        (View(0, (2,), (-1,), offset=4), "impossible shape"),
        (View(0, (1,), (1,), offset=-1), "not a readable PyTorch file"),
    ],
)
def test_view_beyond_its_storage_is_refused(tmp_path: Path, view: View, message: str) -> None:
    write_torch_zip(tmp_path / "m.bin", torch_pickle({"w": view}, STORAGES), STORAGES)
    with pytest.raises(CheckpointError, match=message):
        read_weights_file(tmp_path / "m.bin")


def test_unsupported_dtype_names_the_tensor(tmp_path: Path) -> None:
    description = torch_pickle({"ids": VIEWS["row"]}, STORAGES)
    write_torch_zip(
        tmp_path / "m.bin", description.replace(b"FloatStorage", b"LongStorage"), STORAGES
    )
    with pytest.raises(CheckpointError, match="tensor ids is a torch LongStorage"):
        read_weights_file(tmp_path / "m.bin")


def test_value_that_is_no_tensor_is_named(tmp_path: Path) -> None:
    write_torch_zip(tmp_path / "m.bin", pickle.dumps({"epoch": 3}, 2))
    with pytest.raises(CheckpointError, match="epoch is a int, not a tensor"):
        read_weights_file(tmp_path / "m.bin")
    write_torch_zip(tmp_path / "m.bin", pickle.dumps([3], 2))
    with pytest.raises(CheckpointError, match="holds a list, not a dictionary of tensors"):
        read_weights_file(tmp_path / "m.bin")


def test_truncated_files_are_our_error(tmp_path: Path) -> None:
    path = tmp_path / "m.bin"
    write_torch_zip(path, torch_pickle(VIEWS, STORAGES), STORAGES)
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(CheckpointError, match="truncated or damaged"):
        read_weights_file(path)
    write_torch_stream(path, torch_pickle(VIEWS, STORAGES, stream=True), STORAGES)
    whole = path.read_bytes()
    for size in (len(whole) - 1, len(whole) - 60, 200, 30, 3):
        path.write_bytes(whole[:size])
        with pytest.raises(CheckpointError, match="truncated or damaged|not a readable PyTorch"):
            read_weights_file(path)


def test_other_zip_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "m.bin"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("readme.txt", "hello")
    with pytest.raises(CheckpointError, match="not one by torch.save"):
        read_weights_file(path)
    description = torch_pickle(VIEWS, STORAGES)
    write_torch_zip(path, description, STORAGES, compression=zipfile.ZIP_DEFLATED)
    with pytest.raises(CheckpointError, match="compressed after saving"):
        read_weights_file(path)
    write_torch_zip(path, description, STORAGES, byteorder=b"big")
    with pytest.raises(CheckpointError, match="big-endian"):
        read_weights_file(path)
    write_torch_zip(path, description, STORAGES[:2])
    with pytest.raises(CheckpointError, match="lacks storage 2"):
        read_weights_file(path)


def test_stream_with_wrong_count_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "m.bin"
    write_torch_stream(path, torch_pickle(VIEWS, STORAGES, stream=True), STORAGES)
    whole = path.read_bytes()
    path.write_bytes(whole.replace(struct.pack("<q", BASE.size), struct.pack("<q", 2**40)))
    with pytest.raises(CheckpointError, match="damaged at base|damaged at repeated"):
        read_weights_file(path)


@pytest.mark.parametrize("zipped", [True, False])
def test_files_by_torch_itself(tmp_path: Path, zipped: bool) -> None:
    torch = pytest.importorskip("torch")
    base = torch.randn(6, 8)
    state = {
        "base": base,
        "transposed": base.t(),
        "window": base[1:5, 2:6],
        "brain": torch.randn(7, 3).bfloat16(),
        "half": torch.randn(3).half(),
        "parameter": torch.nn.Parameter(torch.randn(3)),
        **torch.nn.Linear(4, 5).state_dict(prefix="linear."),
    }
    torch.save(state, tmp_path / "m.bin", _use_new_zipfile_serialization=zipped)
    tensors = read_weights_file(tmp_path / "m.bin")
    assert list(tensors) == list(state)
    for name, tensor in state.items():
        np.testing.assert_array_equal(tensors[name].to_float32(), tensor.detach().float().numpy())
