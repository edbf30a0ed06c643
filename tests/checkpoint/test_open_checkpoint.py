"""Opening directories: weights in each layout, the codec's places, and what is missing."""

import json
from pathlib import Path

import numpy as np
import pytest
from checkpoint_files import (
    View,
    torch_pickle,
    write_model,
    write_safetensors_file,
    write_torch_zip,
)

from mosstalk.checkpoint.checkpoint import open_checkpoint
from mosstalk.errors import CheckpointError, UsageError

W = np.arange(6, dtype=np.float32).reshape(2, 3)
CODEC_ARRAYS = {"quantizer.codebook.weight": W, "out.weight": W + 1}
CODEC_TYPE = "moss-audio-tokenizer"


def test_directory_with_everything(tmp_path: Path) -> None:
    write_model(tmp_path, {"w": W}, hidden_size=3)
    write_model(tmp_path / "audio_tokenizer", CODEC_ARRAYS, CODEC_TYPE)
    (tmp_path / "tokenizer.model").write_bytes(b"pieces")
    (tmp_path / "tokenizer.json").write_bytes(b"{}")
    checkpoint = open_checkpoint(tmp_path)
    assert checkpoint.path == tmp_path
    assert checkpoint.kind == "directory"
    assert checkpoint.config == {"model_type": "moss_tts_nano", "hidden_size": 3}
    assert checkpoint.tensors.keys() == {"w"}
    assert checkpoint.codec_config == {"model_type": CODEC_TYPE}
    assert checkpoint.codec_tensors is not None
    assert checkpoint.codec_tensors.keys() == CODEC_ARRAYS.keys()
    assert checkpoint.tokenizer_model == b"pieces"
    assert checkpoint.tokenizer_json == b"{}"
    assert len(checkpoint.identity) == 16


def test_directory_without_codec_and_tokenizer(tmp_path: Path) -> None:
    checkpoint = open_checkpoint(write_model(tmp_path, {"w": W}))
    assert checkpoint.codec_config is None
    assert checkpoint.codec_tensors is None
    assert checkpoint.tokenizer_model is None
    assert checkpoint.tokenizer_json is None
    assert checkpoint.identity == ""


@pytest.mark.parametrize("model_type", ["moss-audio-tokenizer", "moss-audio-tokenizer-nano"])
def test_codec_alone(tmp_path: Path, model_type: str) -> None:
    checkpoint = open_checkpoint(write_model(tmp_path, CODEC_ARRAYS, model_type))
    assert checkpoint.config == {}
    assert checkpoint.tensors == {}
    assert checkpoint.codec_config == {"model_type": model_type}
    with pytest.raises(UsageError, match="is a codec itself"):
        open_checkpoint(tmp_path, tmp_path)


def test_named_codec_wins_over_the_one_inside(tmp_path: Path) -> None:
    write_model(tmp_path / "lm", {"w": W})
    write_model(tmp_path / "lm" / "audio_tokenizer", CODEC_ARRAYS, CODEC_TYPE, code_dim=1)
    write_model(tmp_path / "codec", CODEC_ARRAYS, CODEC_TYPE, code_dim=2)
    checkpoint = open_checkpoint(tmp_path / "lm", tmp_path / "codec")
    assert checkpoint.codec_config == {"model_type": CODEC_TYPE, "code_dim": 2}
    from_model = open_checkpoint(tmp_path / "lm", tmp_path / "lm")
    assert from_model.codec_config == {"model_type": CODEC_TYPE, "code_dim": 1}


def test_codec_that_is_none_is_refused(tmp_path: Path) -> None:
    write_model(tmp_path / "lm", {"w": W})
    with pytest.raises(CheckpointError, match="'moss_tts_nano', which is no MOSS audio tokenizer"):
        open_checkpoint(tmp_path / "lm", tmp_path / "lm")
    write_model(tmp_path / "lm" / "audio_tokenizer", {"w": W}, "encodec")
    with pytest.raises(CheckpointError, match="'encodec', which is no MOSS audio tokenizer"):
        open_checkpoint(tmp_path / "lm")


def write_shards(directory: Path) -> Path:
    write_model(directory, {})
    (directory / "model.safetensors").unlink()
    write_safetensors_file(directory / "model-1.safetensors", {"a": W, "b": W})
    write_safetensors_file(directory / "model-2.safetensors", {"c": W})
    files = {"a": "model-1.safetensors", "b": "model-1.safetensors", "c": "model-2.safetensors"}
    index = directory / "model.safetensors.index.json"
    index.write_text(json.dumps({"metadata": {}, "weight_map": files}))
    return index


def test_shards_are_joined(tmp_path: Path) -> None:
    write_shards(tmp_path)
    assert open_checkpoint(tmp_path).tensors.keys() == {"a", "b", "c"}


def test_missing_shard_is_named(tmp_path: Path) -> None:
    write_shards(tmp_path)
    (tmp_path / "model-2.safetensors").unlink()
    with pytest.raises(CheckpointError, match="names model-2.safetensors, which is not there"):
        open_checkpoint(tmp_path)


@pytest.mark.parametrize(
    ("weight_map", "message"),
    [
        ({"a": "model-1.safetensors", "x": "model-1.safetensors"}, "disagree on 2 tensors.* b"),
        ({"a": "../model-1.safetensors"}, "outside its folder; refusing"),
        ({}, "no weight_map"),
        ([], "no weight_map"),
    ],
)
def test_index_that_does_not_fit_is_refused(
    tmp_path: Path, weight_map: object, message: str
) -> None:
    write_shards(tmp_path).write_text(json.dumps({"weight_map": weight_map}))
    with pytest.raises(CheckpointError, match=message):
        open_checkpoint(tmp_path)


def test_pytorch_model_bin(tmp_path: Path) -> None:
    write_model(tmp_path, {})
    (tmp_path / "model.safetensors").unlink()
    view = {"w": View(0, (2, 3), (3, 1))}
    write_torch_zip(tmp_path / "pytorch_model.bin", torch_pickle(view, [W]), [W])
    np.testing.assert_array_equal(open_checkpoint(tmp_path).tensors["w"].data, W)


def test_missing_things_are_listed(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"nowhere does not exist; give a directory with"):
        open_checkpoint(tmp_path / "nowhere")
    with pytest.raises(CheckpointError, match=r"no config.json; .*pytorch_model\.bin"):
        open_checkpoint(tmp_path)
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(CheckpointError, match=r"no weights; looked for model\.safetensors, "):
        open_checkpoint(tmp_path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"a": 1,', "config.json is not valid JSON"),
        ("[1]", "holds a JSON list, not an object"),
        ("[" * 100_000, "config.json is not valid JSON"),
        ("\udcff", "config.json is not valid JSON"),
    ],
)
def test_damaged_config_is_our_error(tmp_path: Path, text: str, message: str) -> None:
    write_model(tmp_path, {"w": W})
    (tmp_path / "config.json").write_text(text, errors="surrogateescape")
    with pytest.raises(CheckpointError, match=message) as caught:
        open_checkpoint(tmp_path)
    assert "\n" not in str(caught.value)


def test_weights_file_alone_asks_for_its_directory(tmp_path: Path) -> None:
    write_safetensors_file(tmp_path / "m.safetensors", {"w": W})
    with pytest.raises(CheckpointError, match="weights alone; give its directory"):
        open_checkpoint(tmp_path / "m.safetensors")


def identity_of(directory: Path, arrays: dict[str, np.ndarray], **config: object) -> str:
    return open_checkpoint(write_model(directory, arrays, CODEC_TYPE, **config)).identity


def test_identity_tells_codecs_apart(tmp_path: Path) -> None:
    reference = identity_of(tmp_path / "a", CODEC_ARRAYS, code_dim=3)
    assert identity_of(tmp_path / "b", CODEC_ARRAYS, code_dim=3, dtype="float32") == reference
    changed = CODEC_ARRAYS | {"quantizer.codebook.weight": W + 1e-3}
    renamed = {name.replace("out", "exit"): array for name, array in CODEC_ARRAYS.items()}
    others = [
        identity_of(tmp_path / "c", CODEC_ARRAYS, code_dim=4),
        identity_of(tmp_path / "d", changed, code_dim=3),
        identity_of(tmp_path / "e", renamed, code_dim=3),
    ]
    assert len({reference, *others}) == 4
