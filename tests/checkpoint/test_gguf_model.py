"""GGUF files: round trips in every weight type, other programs' files, and damage."""

import json
from pathlib import Path

import gguf
import numpy as np
import pytest
from checkpoint_files import bf16, write_model
from small_disk import small_disk

from mosstalk.checkpoint.checkpoint import Checkpoint, open_checkpoint
from mosstalk.checkpoint.storage import StorageType, StoredTensor
from mosstalk.checkpoint.weights import as_weight
from mosstalk.checkpoint.write import write_gguf
from mosstalk.errors import CheckpointError, OutputError

RNG = np.random.default_rng(4)
WEIGHT_NORM = "quantizer.quantizers.15.out_proj.parametrizations.weight.original"
SHORT_NAME = "quantizer.quantizers.15.out_proj.weight_"


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape, np.float32)


@pytest.fixture
def checkpoint(tmp_path: Path) -> Checkpoint:
    """A small model with tensors of all native types, a codec and a tokeniser."""
    model = {
        "wte.weight": normal(10, 64),
        "half.weight": normal(4, 96).astype(np.float16),
        "brain.weight": bf16(normal(4, 96)),
        "odd.weight": normal(4, 30),
        "ln.bias": normal(64),
        "scalar": np.array(1.5, np.float32),
    }
    codec = {
        f"{WEIGHT_NORM}0": normal(8, 1, 1),
        f"{WEIGHT_NORM}1": normal(8, 64, 1),
        "quantizer.quantizers.15.codebook.weight": normal(16, 32),
        "decoder.1.input_proj.weight": normal(32, 64),
    }
    write_model(tmp_path / "m", model, note="naïve", nested={"a": [1, 2.5, None, True]})
    write_model(tmp_path / "m" / "audio_tokenizer", codec, "moss-audio-tokenizer", code_dim=8)
    (tmp_path / "m" / "tokenizer.model").write_bytes(bytes(range(256)))
    (tmp_path / "m" / "tokenizer.json").write_bytes('{"é": 1}'.encode())
    return open_checkpoint(tmp_path / "m")


def short(name: str) -> str:
    return name.replace(f"{WEIGHT_NORM}0", f"{SHORT_NAME}g").replace(
        f"{WEIGHT_NORM}1", f"{SHORT_NAME}v"
    )


def assert_same(actual: StoredTensor, expected: StoredTensor) -> None:
    assert actual.storage is expected.storage, actual.name
    assert actual.shape == expected.shape, actual.name
    np.testing.assert_array_equal(
        actual.data.view(np.uint8), expected.data.view(np.uint8), err_msg=actual.name
    ) if actual.shape else np.testing.assert_array_equal(actual.data, expected.data)


@pytest.mark.parametrize("storage", StorageType)
def test_round_trip_is_bit_equal(
    checkpoint: Checkpoint, tmp_path: Path, storage: StorageType
) -> None:
    out = tmp_path / "m.gguf"
    write_gguf(checkpoint, out, storage)
    back = open_checkpoint(out)
    assert back.kind == "gguf"
    assert back.config == checkpoint.config
    assert back.codec_config == checkpoint.codec_config
    assert back.tokenizer_model == checkpoint.tokenizer_model
    assert back.tokenizer_json == checkpoint.tokenizer_json == '{"é": 1}'.encode()
    assert back.identity == checkpoint.identity
    assert list(back.tensors) == list(checkpoint.tensors)
    for name, tensor in checkpoint.tensors.items():
        assert_same(back.tensors[name], as_weight(tensor, storage))
    assert back.codec_tensors is not None
    assert checkpoint.codec_tensors is not None
    assert list(back.codec_tensors) == [short(name) for name in checkpoint.codec_tensors]
    for name, tensor in checkpoint.codec_tensors.items():
        assert_same(back.codec_tensors[short(name)], as_weight(tensor, storage))


def test_storage_types_of_a_q8_0_file(checkpoint: Checkpoint, tmp_path: Path) -> None:
    write_gguf(checkpoint, tmp_path / "m.gguf", StorageType.Q8_0)
    back = open_checkpoint(tmp_path / "m.gguf")
    assert back.codec_tensors is not None
    held = {
        name: tensor.storage.value for name, tensor in (back.tensors | back.codec_tensors).items()
    }
    assert held == {
        "wte.weight": "q8_0",
        "half.weight": "q8_0",
        "brain.weight": "q8_0",
        "odd.weight": "f16",
        "ln.bias": "f32",
        "scalar": "f32",
        f"{SHORT_NAME}g": "f32",
        f"{SHORT_NAME}v": "f32",
        "quantizer.quantizers.15.codebook.weight": "f32",
        "decoder.1.input_proj.weight": "q8_0",
    }


def test_the_gguf_package_reads_our_files(checkpoint: Checkpoint, tmp_path: Path) -> None:
    write_gguf(checkpoint, tmp_path / "m.gguf", StorageType.Q8_0)
    reader = gguf.GGUFReader(tmp_path / "m.gguf")
    fields = {key: field.contents() for key, field in reader.fields.items()}
    assert fields["general.architecture"] == "moss_tts_nano"
    assert fields["mosstalk.format"] == 1
    assert json.loads(fields["mosstalk.config"]) == checkpoint.config
    assert bytes(fields["mosstalk.tokenizer_model"]) == checkpoint.tokenizer_model
    assert bytes(fields["mosstalk.tokenizer_json"]) == checkpoint.tokenizer_json
    tensors = {tensor.name: tensor for tensor in reader.tensors}
    assert all(len(name) <= 63 for name in tensors)
    wte = checkpoint.tensors["wte.weight"].to_float32()
    expected = gguf.quants.quantize(wte, gguf.GGMLQuantizationType.Q8_0)
    np.testing.assert_array_equal(tensors["model.wte.weight"].data, expected)
    assert tensors[f"codec.{SHORT_NAME}v"].shape.tolist() == [1, 64, 8]


def test_tensors_are_views_and_skipped_ones_are_gone(
    checkpoint: Checkpoint, tmp_path: Path
) -> None:
    write_gguf(checkpoint, tmp_path / "m.gguf", StorageType.NATIVE, skip=("o*.weight", "scalar"))
    back = open_checkpoint(tmp_path / "m.gguf")
    assert checkpoint.tensors.keys() - back.tensors.keys() == {"odd.weight", "scalar"}
    assert not any(tensor.data.flags.writeable for tensor in back.tensors.values())


def test_codec_alone(checkpoint: Checkpoint, tmp_path: Path) -> None:
    codec = open_checkpoint(checkpoint.path / "audio_tokenizer")
    write_gguf(codec, tmp_path / "codec.gguf", StorageType.NATIVE)
    back = open_checkpoint(tmp_path / "codec.gguf")
    assert back.config == {}
    assert back.codec_config == checkpoint.codec_config
    assert back.identity == checkpoint.identity
    joined = open_checkpoint(checkpoint.path, tmp_path / "codec.gguf")
    assert joined.identity == checkpoint.identity


@pytest.mark.parametrize(
    ("model", "codec"),
    [
        ("nano_a", "codec_nano_e2e"),
        ("nano_b", "codec_nano_narrow"),
        ("nano_c", "codec_nano_wide"),
        ("delay_small", "codec_full_narrow"),  # the longest names
    ],
)
def test_golden_checkpoints_round_trip(
    golden_dir: Path, tmp_path: Path, model: str, codec: str
) -> None:
    folder = golden_dir / "checkpoints"
    for name in (model, codec):
        if not (folder / name / "model.safetensors").is_file():
            pytest.skip(f"{folder / name} is not there")
    source = open_checkpoint(folder / model, folder / codec)
    write_gguf(source, tmp_path / "m.gguf", StorageType.NATIVE)
    back = open_checkpoint(tmp_path / "m.gguf")
    assert back.identity == source.identity
    for name, tensor in source.tensors.items():
        assert_same(back.tensors[name], tensor)
    assert back.codec_tensors is not None
    assert source.codec_tensors is not None
    assert len(back.codec_tensors) == len(source.codec_tensors)


def test_file_of_another_program_is_named_by_its_architecture(tmp_path: Path) -> None:
    writer = gguf.GGUFWriter(tmp_path / "m.gguf", "llama")
    writer.add_array("tokenizer.ggml.tokens", ["a", "b"])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    with pytest.raises(CheckpointError, match="GGUF file of a 'llama' model, not one by mosstalk"):
        open_checkpoint(tmp_path / "m.gguf")


def write_ours(path: Path, version: int = 1, **tensors: gguf.GGMLQuantizationType) -> None:
    """A file of our layout with one block in each tensor, of any GGML type."""
    writer = gguf.GGUFWriter(path, "moss_tts_nano")
    writer.add_uint32("mosstalk.format", version)
    writer.add_string("mosstalk.config", '{"model_type": "moss_tts_nano"}')
    for name, kind in tensors.items():
        block_len, block_bytes = gguf.GGML_QUANT_SIZES[kind]
        data = np.zeros((1, block_bytes), np.uint8)
        writer.add_tensor(name, data, raw_shape=(1, block_bytes), raw_dtype=kind)
        assert block_len
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def test_unknown_format_type_and_part_are_named(tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    write_ours(path, version=2)
    with pytest.raises(CheckpointError, match="has mosstalk format 2, and this version reads 1"):
        open_checkpoint(path)
    write_ours(path, **{"model.w": gguf.GGMLQuantizationType.Q4_K})
    with pytest.raises(CheckpointError, match=r"tensor model\.w has GGML type 12; only F32"):
        open_checkpoint(path)
    write_ours(path, w=gguf.GGMLQuantizationType.Q8_0)
    with pytest.raises(CheckpointError, match="tensor w of no part"):
        open_checkpoint(path)


def test_every_truncation_is_our_error(checkpoint: Checkpoint, tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    write_gguf(checkpoint, path, StorageType.NATIVE)
    whole = path.read_bytes()
    # Padding may be missing behind the last tensor, so the end is cut by more than that.
    for size in [*range(8, len(whole) - 40, 97), len(whole) - 40]:
        path.write_bytes(whole[:size])
        with pytest.raises(CheckpointError, match="is truncated|is damaged"):
            open_checkpoint(path)


def test_flipped_bytes_give_a_result_or_our_error(checkpoint: Checkpoint, tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    write_gguf(checkpoint, path, StorageType.NATIVE)
    whole = path.read_bytes()
    metadata_size = whole.index(b"model.wte.weight") + 900
    for position in RNG.integers(4, metadata_size, 150):
        damaged = bytearray(whole)
        damaged[position] ^= 1 << int(RNG.integers(8))
        path.write_bytes(damaged)
        try:
            open_checkpoint(path)
        except CheckpointError as error:
            assert "\n" not in str(error)


def test_too_long_name_is_refused_before_writing(tmp_path: Path) -> None:
    source = open_checkpoint(write_model(tmp_path / "m", {"w" * 58: normal(2)}))
    with pytest.raises(CheckpointError, match="names have at most 57 bytes"):
        write_gguf(source, tmp_path / "m.gguf", StorageType.NATIVE)
    assert not list(tmp_path.glob("*.gguf*"))


def test_failed_write_leaves_the_old_file_and_no_other(
    checkpoint: Checkpoint, tmp_path: Path
) -> None:
    out = tmp_path / "out" / "m.gguf"
    out.parent.mkdir()
    out.write_bytes(b"old")
    refused = pytest.raises(OutputError, match=r"cannot write .*m\.gguf: .*; free space or choose")
    with refused, small_disk(2000):
        write_gguf(checkpoint, out, StorageType.F32)
    assert [path.name for path in out.parent.iterdir()] == ["m.gguf"]
    assert out.read_bytes() == b"old"


@pytest.mark.parametrize("place", ["nowhere/m.gguf", "file/m.gguf", "folder.gguf"])
def test_place_that_cannot_be_written(checkpoint: Checkpoint, tmp_path: Path, place: str) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "folder.gguf").mkdir()
    with pytest.raises(OutputError, match=f"cannot write .*{place}: "):
        write_gguf(checkpoint, tmp_path / place, StorageType.NATIVE)
