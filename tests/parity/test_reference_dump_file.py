"""A dump's file is read back as it was written, or not at all."""

import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from reference_dumps import RECORDED

from mosstalk.errors import CheckpointError, OutputError, UsageError
from mosstalk.parity.reference.dump_file import (
    FORMAT,
    VERSION,
    ArrayReader,
    DumpFile,
    read_dump_file,
    write_dump_file,
)
from mosstalk.parity.reference.nano_probe import read_nano_dump

META: dict[str, object] = {"format": FORMAT, "version": VERSION, "text": "夜 ☾", "peak": 0.1}
ARRAYS: dict[str, NDArray[Any]] = {
    "ids": np.arange(6, dtype=np.int32).reshape(2, 3),
    "reals": np.array([0.1, -1e-45, 3e38, 1 / 3], np.float32),
}
BOTH = pytest.mark.parametrize("suffix", [".npz", ".json"])


def assert_same(found: DumpFile, expected: DumpFile) -> None:
    assert dict(found.meta) == dict(expected.meta)
    assert found.arrays.keys() == expected.arrays.keys()
    for name, array in expected.arrays.items():
        assert found.arrays[name].dtype == array.dtype
        assert found.arrays[name].shape == array.shape
        assert found.arrays[name].tobytes() == array.tobytes()


@BOTH
def test_what_was_written_is_read(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"dump{suffix}"
    write_dump_file(path, DumpFile(META, ARRAYS))
    assert_same(read_dump_file(path), DumpFile(META, ARRAYS))


def test_both_forms_hold_the_same(tmp_path: Path) -> None:
    recorded = read_dump_file(RECORDED)
    path = tmp_path / "recorded.JSON"
    write_dump_file(path, recorded)
    assert_same(read_dump_file(path), recorded)


@BOTH
def test_a_dump_is_the_same_bytes_each_time(tmp_path: Path, suffix: str) -> None:
    paths = [tmp_path / f"{name}{suffix}" for name in "ab"]
    for path in paths:
        write_dump_file(path, DumpFile(META, ARRAYS))
    assert paths[0].read_bytes() == paths[1].read_bytes()


def test_the_recorded_dump_is_small_and_names_its_origin() -> None:
    assert RECORDED.stat().st_size < 100_000
    origin = read_nano_dump(read_dump_file(RECORDED), str(RECORDED)).origin
    assert origin.versions["transformers"] == "4.57.6"
    assert {"modeling_moss_tts_nano.py", "audio_tokenizer/modeling_moss_audio_tokenizer.py"} <= set(
        origin.code
    )


@pytest.mark.parametrize("name", ["dump.txt", "dump", "dump.npz.gz"])
def test_other_names_are_usage_errors(tmp_path: Path, name: str) -> None:
    for act in (read_dump_file, lambda path: write_dump_file(path, DumpFile(META, ARRAYS))):
        with pytest.raises(UsageError, match=r"ends in \.npz or \.json"):
            act(tmp_path / name)


@BOTH
def test_a_file_that_is_not_there(tmp_path: Path, suffix: str) -> None:
    with pytest.raises(CheckpointError, match="does not exist; make it with `mosstalk parity dump"):
        read_dump_file(tmp_path / f"none{suffix}")


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(OutputError):
        write_dump_file(tmp_path / "none" / "dump.npz", DumpFile(META, ARRAYS))


@pytest.mark.parametrize("part", [0.0, 0.01, 0.3, 0.9, 0.999])
@BOTH
def test_a_file_that_is_cut_off(tmp_path: Path, suffix: str, part: float) -> None:
    path = tmp_path / f"dump{suffix}"
    write_dump_file(path, read_dump_file(RECORDED))
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * part)])
    with pytest.raises(CheckpointError):
        read_dump_file(path)


@pytest.mark.parametrize("seed", range(24))
@BOTH
def test_a_byte_that_was_changed(tmp_path: Path, suffix: str, seed: int) -> None:
    """Either it does not matter (a zip's dates, a space), or the dump is refused."""
    path = tmp_path / f"dump{suffix}"
    written = DumpFile(META, ARRAYS)
    write_dump_file(path, written)
    data = bytearray(path.read_bytes())
    generator = np.random.default_rng(seed)
    data[generator.integers(len(data))] ^= 1 << int(generator.integers(8))
    path.write_bytes(bytes(data))
    try:
        found = read_dump_file(path)
    except CheckpointError:
        return
    assert_same(found, written)


def edit(path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    values = json.loads(path.read_text("utf-8"))
    change(values)
    path.write_text(json.dumps(values), encoding="utf-8")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda v: v["meta"].update(text="day"), "was changed"),
        (lambda v: v["meta"].pop("digest"), "was changed"),
        (lambda v: v["meta"].update(format="other"), "is not a dump"),
        (lambda v: v["meta"].pop("format"), "is not a dump"),
        (lambda v: v["meta"].update(version=2), "version 2"),
        (lambda v: v.pop("arrays"), "is not a dump"),
        (lambda v: v.pop("meta"), "is not a dump"),
        (lambda v: v["arrays"].pop("ids"), "was changed"),
        (lambda v: v["arrays"]["ids"]["values"].__setitem__(0, 7), "was changed"),
        (lambda v: v["arrays"]["ids"]["values"].pop(), "'ids' is damaged"),
        (lambda v: v["arrays"]["ids"].update(shape=[4, 2]), "'ids' is damaged"),
        (lambda v: v["arrays"]["ids"].update(shape=[3, 2]), "was changed"),
        (lambda v: v["arrays"]["ids"].update(dtype="O"), "'ids' is object"),
        (lambda v: v["arrays"]["ids"].update(dtype="no"), "'ids' is damaged"),
        (lambda v: v["arrays"]["ids"].update(values="text"), "'ids' is damaged"),
        (lambda v: v["arrays"]["ids"]["values"].__setitem__(0, 2**40), "'ids' is damaged"),
        (lambda v: v["arrays"]["reals"]["values"].__setitem__(0, 1e60), "was changed"),
        (lambda v: v["arrays"]["reals"].update(dtype="float64"), "'reals' is float64"),
        (lambda v: v["arrays"].update(ids=[1, 2]), "'ids' is damaged"),
    ],
)
def test_a_json_that_was_changed(
    tmp_path: Path, change: Callable[[dict[str, Any]], object], message: str
) -> None:
    path = tmp_path / "dump.json"
    write_dump_file(path, DumpFile(META, ARRAYS))
    edit(path, change)
    with pytest.raises(CheckpointError, match=message):
        read_dump_file(path)


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b"not json", b"\xff\xfe", b'{"meta": {}}'])
def test_a_json_of_something_else(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "dump.json"
    path.write_bytes(content)
    with pytest.raises(CheckpointError):
        read_dump_file(path)


def _npy() -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, np.arange(3))
    return buffer.getvalue()


def _zip(**members: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in members.items():
            archive.writestr(f"{name}.npy", content)
    return buffer.getvalue()


def _pickled() -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, meta=np.array([{"a": 1}], object))
    return buffer.getvalue()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"PK\x03\x04",
        b"not a zip",
        _npy(),
        _zip(),
        _zip(a=_npy()),
        _zip(meta=b"text"),
        _zip(meta=_npy(), a=b"text"),
        _pickled(),
    ],
)
def test_an_npz_of_something_else(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "dump.npz"
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match="damaged"):
        read_dump_file(path)


def test_a_reader_names_what_is_wrong() -> None:
    reader = ArrayReader({**ARRAYS, "extra": np.zeros(1, np.float32)}, "file")
    assert reader.ids("ids", (2, None)).shape == (2, 3)
    assert reader.ids("none", (0, 3)).shape == (0, 3)
    for shape in ((3, None), (None,), (None, None, None)):
        with pytest.raises(CheckpointError, match="file: 'ids' is int32"):
            reader.ids("ids", shape)
    with pytest.raises(CheckpointError, match="'none' is missing"):
        reader.ids("none", (None,))
    with pytest.raises(CheckpointError, match="'reals' is float32"):
        reader.ids("reals", (None,))
    with pytest.raises(CheckpointError, match="'reals' has values outside 0 to 1"):
        reader.reals("reals", (None,), 0.0, 1.0)
    with pytest.raises(CheckpointError, match="unknown arrays, such as 'extra'"):
        reader.finish()


def test_ids_below_zero_and_numbers_that_are_none() -> None:
    arrays = {"ids": np.array([-1], np.int32), "reals": np.array([np.nan], np.float32)}
    with pytest.raises(CheckpointError, match="below 0"):
        ArrayReader(arrays, "file").ids("ids", (1,))
    with pytest.raises(CheckpointError, match="not finite"):
        ArrayReader(arrays, "file").reals("reals", (1,))
