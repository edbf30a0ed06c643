"""The codec's config.json: windows of the published sizes, and strictness."""

from collections.abc import Callable
from typing import Any

import pytest
from codec_files import full_config, patch, real_config, tiny_config

from mosstalk.codec.moss_audio_tokenizer.config import Stage, parse_config
from mosstalk.errors import CheckpointError

Change = Callable[[dict[str, Any]], object]


def test_windows_of_the_published_codec() -> None:
    """Spec nano.md 5.2: rate times context of each stage; two ports got these wrong."""
    config = parse_config(real_config())
    encoder = [(s.multiple, s.window) for s in config.encoder if isinstance(s, Stage)]
    decoder = [(s.multiple, s.window) for s in config.decoder if isinstance(s, Stage)]
    assert encoder == [(32, 1600), (16, 1200), (8, 800), (4, 500)]
    assert decoder == [(4, 500), (8, 800), (16, 1200), (32, 1600)]


def test_sizes_of_the_published_codec() -> None:
    config = parse_config(real_config())
    assert (config.sample_rate, config.num_channels, config.frame_len) == (48000, 2, 3840)
    assert config.frame_rate == 12.5
    assert (config.num_codebooks, config.codebook_size, config.codebook_dim) == (16, 1024, 8)


def test_windows_and_sizes_of_the_published_full_codec() -> None:
    """Spec voicegen.md 6.1, 6.2: 10 s in every stage."""
    config = parse_config(full_config())
    encoder = [(s.multiple, s.window) for s in config.encoder if isinstance(s, Stage)]
    decoder = [(s.multiple, s.window) for s in config.decoder if isinstance(s, Stage)]
    assert encoder == [(8, 1000), (4, 500), (2, 250), (1, 125)]
    assert decoder == encoder[::-1]
    assert (config.sample_rate, config.num_channels, config.frame_len) == (24000, 1, 1920)
    assert config.frame_rate == 12.5
    assert (config.num_codebooks, config.codebook_size, config.codebook_dim) == (32, 1024, 8)


@pytest.mark.parametrize("model_type", ["moss-audio-tokenizer", "speech_tokenizer"])
def test_the_full_codec_has_either_name(model_type: str) -> None:
    values = full_config() | {"model_type": model_type}
    assert parse_config(values) == parse_config(full_config())


def test_context_of_the_codec_serves_stages_without_their_own() -> None:
    values = real_config()
    del values["decoder_kwargs"][1]["context_duration"]
    values["causal_transformer_context_duration"] = 2.0
    stage = parse_config(values).decoder[1]
    assert isinstance(stage, Stage)
    assert stage.window == 100


def test_legacy_names_of_keys_are_accepted() -> None:
    values = real_config()
    values["channels_numbers"] = values.pop("number_channels")
    values["attention_backend"] = values.pop("attention_implementation")
    values["codec_compute_dtype"] = values.pop("compute_dtype")
    assert parse_config(values) == parse_config(real_config())


def test_sample_rate_alone_is_accepted() -> None:
    values = real_config()
    del values["sampling_rate"]
    assert parse_config(values) == parse_config(real_config())


def _set(key: str, value: object) -> Change:
    return lambda values: values.update({key: value})


def _in_stage(key: str, value: object) -> Change:
    return lambda values: values["decoder_kwargs"][1].update({key: value})


def _in_quantizer(key: str, value: object) -> Change:
    return lambda values: values["quantizer_kwargs"].update({key: value})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (_set("model_type", "encodec"), "model_type"),
        (_set("quantizer_type", "rvq"), "quantizer_type"),
        (_set("new_key", 1), "unknown key 'new_key'"),
        (_set("enable_channel_interleave", False), "enable_channel_interleave"),
        (_set("sample_rate", 24000), "sample_rate"),
        (_set("downsample_rate", 0), "downsample_rate"),
        (_set("downsample_rate", "3840"), "downsample_rate"),
        (lambda values: values.pop("downsample_rate"), "'downsample_rate' is missing"),
        (lambda values: values.pop("decoder_kwargs"), "'decoder_kwargs' is missing"),
        (lambda values: values.pop("quantizer_kwargs"), "'quantizer_kwargs' is missing"),
        (_in_stage("causal", False), "causal"),
        (_in_stage("gating", "silu"), "gating"),
        (_in_stage("norm", "rms_norm"), "norm"),
        (_in_stage("positional_embedding", "sin"), "positional_embedding"),
        (_in_stage("kv_repeat", 2), "unknown key 'kv_repeat'"),
        (_in_stage("module_type", "Conv"), "unknown module_type 'Conv'"),
        (_in_stage("input_dimension", 100), "takes 100 values, but gets 192"),
        (_in_stage("num_heads", 3), "3 heads"),
        (_in_quantizer("output_dim", 512), "output_dim"),
        (_in_quantizer("input_dim", 512), "output_dim"),
        (_in_quantizer("quantizer_type", "vq"), "quantizer_type"),
        (_in_quantizer("size", 1), "unknown key 'size'"),
        (lambda values: values["encoder_kwargs"].append(patch(2)), "encoder"),
        (lambda values: values["encoder_kwargs"].pop(), "encoder"),
        (lambda values: values["decoder_kwargs"].append(patch(2)), "unfold"),
        (lambda values: values["decoder_kwargs"].pop(), "decoder makes"),
    ],
)
def test_what_is_not_understood_is_an_error(change: Change, message: str) -> None:
    values = real_config()
    change(values)
    with pytest.raises(CheckpointError, match=message) as caught:
        parse_config(values)
    assert "\n" not in str(caught.value)


def test_mono_needs_no_interleaving() -> None:
    values = tiny_config()
    values |= {"number_channels": 1, "downsample_rate": 1600, "enable_channel_interleave": False}
    assert parse_config(values).num_channels == 1
