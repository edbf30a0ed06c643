"""The codec's tensors: names and shapes, legacy names, and what is derived from them."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from codec_files import random_codes, random_tensors, real_config, tiny_config

from mosstalk.checkpoint.storage import StoredTensor
from mosstalk.codec.moss_audio_tokenizer.codec import MossAudioTokenizer
from mosstalk.codec.moss_audio_tokenizer.config import parse_config
from mosstalk.codec.moss_audio_tokenizer.weights import expected_tensors, load_weights
from mosstalk.compute.backend import open_backend
from mosstalk.errors import CheckpointError

LEGACY = [
    (".self_attn.in_proj.weight", ".self_attn.in_proj_weight"),
    (".self_attn.in_proj.weight", ".self_attn.in_projs.0.weight"),
    (".self_attn.out_proj.weight", ".self_attn.out_projs.0.weight"),
    (".ffn.0.weight", ".linear1.weight"),
    (".ffn.2.weight", ".linear2.weight"),
    (".parametrizations.weight.original0", ".weight_g"),
    (".parametrizations.weight.original1", ".weight_v"),
]


def tokenizer(tensors: dict[str, StoredTensor]) -> MossAudioTokenizer:
    return MossAudioTokenizer(tiny_config(), tensors, open_backend("cpu", 1))


def test_tensors_of_the_published_codec(golden_dir: Path) -> None:
    """Spec nano.md 2.2: 374 tensors, 21,969,664 values; the list is the original's own."""
    expected = list(expected_tensors(parse_config(real_config())))
    assert len(expected) == 374
    assert sum(int(np.prod(item.shape)) for item in expected) == 21_969_664
    path = golden_dir / "reference" / "tensors_codec_real.json"
    if not path.is_file():
        pytest.skip(f"{path.name} is not here")
    listed = {name: tuple(shape) for name, shape, _ in json.loads(path.read_text())}
    assert {item.name: item.shape for item in expected} == listed


@pytest.mark.parametrize(("name", "legacy"), LEGACY)
def test_legacy_names_are_accepted(name: str, legacy: str) -> None:
    tensors = random_tensors(tiny_config())
    renamed = {key.replace(name, legacy): tensor for key, tensor in tensors.items()}
    assert renamed.keys() != tensors.keys()
    codec, other = tokenizer(tensors), tokenizer(renamed)
    codes = random_codes(3, codec)
    np.testing.assert_array_equal(codec.start(3)(codes), other.start(3)(codes))
    wav = np.random.default_rng(0).standard_normal((2, 4000)).astype(np.float32)
    np.testing.assert_array_equal(codec.encode(wav), other.encode(wav))


def test_weight_norm_is_multiplied_out() -> None:
    """Row = gain times direction over its length."""
    tensors = random_tensors(tiny_config())
    weights = load_weights(parse_config(tiny_config()), tensors)
    assert weights.encoder is not None
    searches, books = weights.encoder.searches, weights.codebooks
    folded = {
        "quantizer.input_proj": weights.encoder.quantizer_in,
        "quantizer.output_proj": weights.quantizer_out,
        **{f"quantizer.quantizers.{i}.in_proj": one.in_proj for i, one in enumerate(searches)},
        **{f"quantizer.quantizers.{i}.out_proj": book.out_proj for i, book in enumerate(books)},
    }
    for name, (weight, bias) in folded.items():
        gain = tensors[f"{name}.parametrizations.weight.original0"].to_float32()
        direction = tensors[f"{name}.parametrizations.weight.original1"].to_float32()
        length = np.sqrt(np.sum(direction.astype(np.float64) ** 2, axis=(1, 2), keepdims=True))
        expected = (gain * direction / length)[:, :, 0]
        np.testing.assert_allclose(weight.to_float32(), expected, rtol=2e-7, err_msg=name)
        np.testing.assert_array_equal(bias.to_float32(), tensors[f"{name}.bias"].to_float32())


def test_codes_are_searched_by_direction_and_looked_up_raw() -> None:
    tensors = random_tensors(tiny_config())
    weights = load_weights(parse_config(tiny_config()), tensors)
    assert weights.encoder is not None
    search, book = weights.encoder.searches[1], weights.codebooks[1]
    raw = tensors["quantizer.quantizers.1.codebook.weight"].to_float32()
    np.testing.assert_array_equal(book.codebook.to_float32(), raw)
    unit = raw / np.linalg.norm(raw, axis=1, keepdims=True)
    np.testing.assert_allclose(search.directions.to_float32(), unit, rtol=1e-6)


def test_quantiser_follows_the_formula() -> None:
    """Spec nano.md 5.3 in float64: the sum over codebooks of out_proj(row), then output_proj."""
    tensors = random_tensors(tiny_config())
    codec = tokenizer(tensors)
    codes = random_codes(6, codec)
    weights = codec.weights
    total = np.zeros((6, 16))
    for i, book in enumerate(weights.codebooks):
        matrix, bias = (tensor.to_float32().astype(np.float64) for tensor in book.out_proj)
        total += book.codebook.to_float32()[codes[:, i]] @ matrix.T + bias
    matrix, bias = (tensor.to_float32().astype(np.float64) for tensor in weights.quantizer_out)
    codec.start(6)(codes)
    vectors = codec.decoder.program.array(codec.decoder.outputs["vectors"])[:6]
    expected = total @ matrix.T + bias
    assert np.abs(vectors - expected).max() <= 1e-6 * np.abs(expected).max()


def test_a_missing_tensor_is_named() -> None:
    tensors = random_tensors(tiny_config())
    del tensors["decoder.0.input_proj.weight"]
    with pytest.raises(CheckpointError, match=r"missing \(decoder.0.input_proj.weight\)"):
        tokenizer(tensors)


def test_a_surplus_tensor_is_named() -> None:
    tensors = random_tensors(tiny_config())
    tensors["decoder.9.bias"] = replace(tensors["quantizer.input_proj.bias"], name="decoder.9.bias")
    with pytest.raises(CheckpointError, match="decoder.9.bias"):
        tokenizer(tensors)


def test_a_tensor_of_another_shape_is_named() -> None:
    tensors = random_tensors(tiny_config())
    name = "quantizer.quantizers.0.codebook.weight"
    tensors[name] = replace(tensors[name], shape=(41, 8))
    with pytest.raises(CheckpointError, match=r"codebook.weight is \[41, 8\], not \[40, 8\]"):
        tokenizer(tensors)
