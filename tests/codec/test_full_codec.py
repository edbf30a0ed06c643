"""The full codec: its tensors, shards, decoding alone, recordings as its processor gives them."""

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from codec_files import FULL, Golden, full_config, random_codes, random_tensors, tiny_full_config
from numpy.typing import NDArray
from safetensors.numpy import save_file

from mosstalk.audio.loudness import normalise_loudness
from mosstalk.audio.read import read_clip
from mosstalk.audio.reference import prepare_reference
from mosstalk.checkpoint.checkpoint import open_checkpoint
from mosstalk.checkpoint.storage import StorageType, StoredTensor, from_float32
from mosstalk.codec.moss_audio_tokenizer.codec import MossAudioTokenizer
from mosstalk.codec.moss_audio_tokenizer.config import parse_config
from mosstalk.codec.moss_audio_tokenizer.weights import expected_tensors
from mosstalk.codec.registry import load_codec
from mosstalk.compute.backend import open_backend
from mosstalk.errors import CheckpointError, UsageError

FRAME = 1920
# Nano's names, and the full codec's for the same.
NAMES = [
    (".self_attn.in_proj.", ".self_attn.in_projs.0."),
    (".self_attn.out_proj.", ".self_attn.out_projs.0."),
    (".ffn.0.", ".linear1."),
    (".ffn.2.", ".linear2."),
]


class WithoutEncoder(dict[str, StoredTensor]):
    """Tensors of which the encoder's are there, and fail a test that reads one."""

    def __getitem__(self, name: str) -> StoredTensor:
        assert not is_for_encoding(name), name
        return super().__getitem__(name)


def is_for_encoding(name: str) -> bool:
    place = name.split(".")
    in_quantizer = place[0] == "quantizer" and not {"input_proj", "in_proj"}.isdisjoint(place)
    return place[0] == "encoder" or in_quantizer


def tokenizer(
    tensors: Mapping[str, StoredTensor], *, decode_only: bool = False
) -> MossAudioTokenizer:
    backend = open_backend("cpu", 1)
    return MossAudioTokenizer(tiny_full_config(), tensors, backend, decode_only=decode_only)


def write_shards(folder: Path, tensors: Mapping[str, StoredTensor]) -> None:
    """A directory as the full codec is published: two shards and their index, its own names."""
    arrays = {}
    for name, tensor in tensors.items():
        for nano, full in NAMES:
            name = name.replace(nano, full)
        arrays[name] = tensor.to_float32()
    files = {name: f"model-0000{1 + i % 2}-of-00002.safetensors" for i, name in enumerate(arrays)}
    for file in set(files.values()):
        save_file({name: arrays[name] for name in arrays if files[name] == file}, folder / file)
    index = {"metadata": {}, "weight_map": files}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    config = tiny_full_config() | {"model_type": "speech_tokenizer"}
    (folder / "config.json").write_text(json.dumps(config))


def noise(num_samples: int) -> NDArray[np.float32]:
    """[1, num_samples]"""
    return np.random.default_rng(0).standard_normal((1, num_samples)).astype(np.float32)


def test_tensors_of_the_published_full_codec(golden_dir: Path) -> None:
    """Spec voicegen.md 2.3: 1600 tensors, 1.7746 billion values; the list is the original's own."""
    expected = list(expected_tensors(parse_config(full_config())))
    assert len(expected) == 1600
    assert sum(int(np.prod(item.shape)) for item in expected) == pytest.approx(1.7746e9, rel=1e-4)
    path = golden_dir / "reference" / "tensors_codec_full_real.json"
    if not path.is_file():
        pytest.skip(f"{path.name} is not here")
    listed = {name: tuple(shape) for name, shape in json.loads(path.read_text())}
    for item in expected:
        (name,) = listed.keys() & {item.name, *item.aliases}
        assert listed.pop(name) == item.shape
    assert not listed


def test_decoding_takes_half_of_the_published_full_codec() -> None:
    """Spec voicegen.md 6.6: 685 tensors of the decoder and those the quantiser decodes with."""
    config = parse_config(full_config())
    decoding = {item.name: item for item in expected_tensors(config, decode_only=True)}
    assert len([name for name in decoding if name.startswith("decoder.")]) == 685
    assert len(decoding) == 685 + 3 + 32 * 4
    num_bytes = sum(4 * int(np.prod(item.shape)) for item in decoding.values())
    assert num_bytes == pytest.approx(3.55e9, rel=2e-3)
    others = {item.name for item in expected_tensors(config)} - decoding.keys()
    assert all(is_for_encoding(name) for name in others)
    assert not any(is_for_encoding(name) for name in decoding)


@pytest.mark.parametrize(
    ("name", "width"),
    [("decoder.0.output_proj.weight", 48), ("encoder.3.input_proj.weight", 32)],
)
def test_a_projection_between_equal_widths_is_used_where_it_is(name: str, width: int) -> None:
    """The full codec has none there, and its values pass as through the identity."""
    plain = random_tensors(tiny_full_config())
    assert name not in plain
    identity = np.eye(width, dtype=np.float32)
    codes, samples = [], []
    for rows in (None, identity, identity[::-1].copy()):
        added = {} if rows is None else {name: from_float32(name, rows, StorageType.F32)}
        codec = tokenizer(plain | added)
        codes.append(codec.encode(noise(12 * FRAME)))
        samples.append(codec.decode(random_codes(5, codec)))
    np.testing.assert_array_equal(codes[0], codes[1])
    np.testing.assert_array_equal(samples[0], samples[1])
    assert (codes[0] != codes[2]).any() == name.startswith("encoder.")
    assert (samples[0] != samples[2]).any() == name.startswith("decoder.")


def test_a_projection_between_other_widths_is_missed() -> None:
    tensors = random_tensors(tiny_full_config())
    del tensors["decoder.2.input_proj.weight"]
    with pytest.raises(CheckpointError, match=r"missing \(decoder.2.input_proj.weight\)"):
        tokenizer(tensors)


@pytest.mark.parametrize("decode_only", [False, True])
def test_shards_under_the_published_names(tmp_path: Path, decode_only: bool) -> None:
    tensors = random_tensors(tiny_full_config())
    write_shards(tmp_path, tensors)
    codec = load_codec(open_checkpoint(tmp_path), open_backend("cpu", 1), decode_only=decode_only)
    assert (codec.sample_rate, codec.num_channels, codec.frame_len) == (24000, 1, FRAME)
    assert codec.num_codebooks == 6
    whole = tokenizer(tensors)
    codes = random_codes(20, whole)
    np.testing.assert_array_equal(codec.start(20)(codes), whole.start(20)(codes))
    if not decode_only:
        wav = noise(5 * FRAME)
        np.testing.assert_array_equal(codec.encode(wav), whole.encode(wav))


def test_decoding_alone_neither_needs_nor_reads_the_encoder() -> None:
    tensors = random_tensors(tiny_full_config())
    whole = tokenizer(tensors)
    codes = random_codes(20, whole)
    without = {name: tensor for name, tensor in tensors.items() if not is_for_encoding(name)}
    for given in (without, WithoutEncoder(tensors)):
        codec = tokenizer(given, decode_only=True)
        np.testing.assert_array_equal(codec.decode(codes), whole.decode(codes))


def test_a_codec_opened_to_decode_cannot_encode() -> None:
    codec = tokenizer(random_tensors(tiny_full_config()), decode_only=True)
    with pytest.raises(UsageError, match="opened to decode only and cannot encode a recording"):
        codec.encode(noise(5 * FRAME))


def test_a_whole_codec_misses_its_encoder() -> None:
    tensors = random_tensors(tiny_full_config())
    without = {name: tensor for name, tensor in tensors.items() if not is_for_encoding(name)}
    with pytest.raises(CheckpointError, match=r"tensors missing \(encoder\.1\.input_proj\.weight"):
        tokenizer(without)


def test_decoding_alone_is_as_strict() -> None:
    tensors = random_tensors(tiny_full_config())
    tensors["decoder.9.bias"] = tensors["quantizer.output_proj.bias"]
    del tensors["quantizer.quantizers.3.codebook.weight"]
    with pytest.raises(CheckpointError, match=r"missing .*3\.codebook.* not part .*decoder\.9"):
        tokenizer(tensors, decode_only=True)


@pytest.mark.parametrize("name", FULL)
def test_golden_batch_codes(golden_dir: Path, name: str) -> None:
    """The original's batch of the recording and its first half; each row has its own length."""
    golden = Golden(golden_dir, name)
    codec = golden.codec(open_backend("cpu", 2))
    rows = golden.arrays["batch_codes"].transpose(1, 2, 0)
    for row, num_samples in zip(rows, (24_000, 12_000), strict=True):
        codes = codec.encode(golden.wav[:, :num_samples])
        assert len(codes) == num_samples // FRAME
        np.testing.assert_array_equal(codes, row[: len(codes)])


def test_golden_codes_of_references(golden_dir: Path) -> None:
    """A recording of 24 kHz, and one of 48 kHz with two channels, as the processor encodes them."""
    golden = Golden(golden_dir, "codec_full_e2e")
    codec = golden.codec(open_backend("cpu", 2))
    expected = np.load(golden_dir / "reference" / "delay_e2e.npz")
    clip = read_clip(golden_dir / "reference" / "ref_1s_stereo.wav", name="golden")
    prepared = prepare_reference(clip, codec.sample_rate, codec.num_channels, codec.frame_len)
    for samples, key in (
        (expected["loudness_in"][None], "ref_codes_loudnorm"),
        (prepared.samples, "ref_codes_from48k_stereo"),
    ):
        codes = codec.encode(normalise_loudness(samples))
        np.testing.assert_array_equal(codes, expected[key])
