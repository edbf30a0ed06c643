"""Configs as transformers writes them: keys that say nothing about the model are no errors."""

from typing import Any

import pytest
from delay_models import delay_config
from tiny_model import CONFIG

from mosstalk.errors import CheckpointError
from mosstalk.models.moss_tts_delay.config import parse_config as parse_delay
from mosstalk.models.moss_tts_nano.config import parse_config as parse_nano

# What transformers 4.57 writes of any model, less what these models use.
EVERYWHERE = [
    "_name_or_path",
    "add_cross_attention",
    "architectures",
    "bad_words_ids",
    "begin_suppress_tokens",
    "bos_token_id",
    "chunk_size_feed_forward",
    "cross_attention_hidden_size",
    "decoder_start_token_id",
    "diversity_penalty",
    "do_sample",
    "dtype",
    "early_stopping",
    "encoder_no_repeat_ngram_size",
    "eos_token_id",
    "exponential_decay_length_penalty",
    "finetuning_task",
    "forced_bos_token_id",
    "forced_eos_token_id",
    "id2label",
    "is_decoder",
    "is_encoder_decoder",
    "label2id",
    "length_penalty",
    "max_length",
    "min_length",
    "no_repeat_ngram_size",
    "num_beam_groups",
    "num_beams",
    "num_return_sequences",
    "output_attentions",
    "output_hidden_states",
    "output_scores",
    "prefix",
    "problem_type",
    "pruned_heads",
    "remove_invalid_values",
    "repetition_penalty",
    "return_dict",
    "return_dict_in_generate",
    "sep_token_id",
    "suppress_tokens",
    "task_specific_params",
    "temperature",
    "tf_legacy_loss",
    "tie_encoder_decoder",
    "tokenizer_class",
    "top_k",
    "top_p",
    "torchscript",
    "transformers_version",
    "typical_p",
    "use_bfloat16",
]
GPT2 = [
    "attn_pdrop",
    "embd_pdrop",
    "initializer_range",
    "n_ctx",
    "n_positions",
    "resid_pdrop",
    "reorder_and_upcast_attn",
    "summary_activation",
    "summary_first_dropout",
    "summary_proj_to_labels",
    "summary_type",
    "summary_use_proj",
    "use_cache",
]
QWEN3 = ["attention_dropout", "initializer_range", "max_window_layers", "use_cache"]


def filled(config: dict[str, Any], keys: list[str]) -> dict[str, Any]:
    """The config with the keys that it lacks, as null or false where a value would matter."""
    falsy = {"add_cross_attention", "is_decoder", "is_encoder_decoder", "tie_encoder_decoder"}
    return {key: False if key in falsy else None for key in keys} | config


def test_nano_config_with_all_keys_of_the_published_file() -> None:
    plain: dict[str, Any] = dict(CONFIG)
    gpt2 = filled(plain["gpt2_config"], [*EVERYWHERE, *GPT2, "pad_token_id"])
    top = filled(
        plain,
        [
            *EVERYWHERE,
            *("attn_implementation", "audio_tokenizer_pretrained_name_or_path", "auto_map"),
            *("initializer_range", "local_transformer_attn_implementation", "tokenizer_use_fast"),
        ],
    )
    assert parse_nano(top | {"gpt2_config": gpt2}) == parse_nano(plain)


def test_delay_config_with_all_keys_of_transformers() -> None:
    plain = delay_config()
    qwen3 = filled(plain["language_config"], [*EVERYWHERE, *QWEN3, "pad_token_id"])
    top = filled(plain, [*EVERYWHERE, "auto_map", "initializer_range"])
    assert parse_delay(top | {"language_config": qwen3}) == parse_delay(plain)


@pytest.mark.parametrize("key", ["rope_base_2", "n_layers"])
def test_unknown_key_is_still_an_error(key: str) -> None:
    plain: dict[str, Any] = dict(CONFIG)
    with pytest.raises(CheckpointError, match=f"unknown key '{key}'"):
        parse_nano(plain | {"gpt2_config": plain["gpt2_config"] | {key: 1}})
