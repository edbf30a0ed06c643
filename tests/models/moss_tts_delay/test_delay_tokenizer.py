"""Where the delay family's tokeniser comes from."""

from dataclasses import replace
from pathlib import Path

import pytest
from byte_bpe import byte_json
from delay_models import delay_config, random_tensors

from mosstalk.checkpoint.checkpoint import Checkpoint, open_checkpoint
from mosstalk.checkpoint.storage import StorageType
from mosstalk.checkpoint.write import write_gguf, write_safetensors
from mosstalk.errors import CheckpointError
from mosstalk.models.moss_tts_delay.config import parse_config
from mosstalk.models.moss_tts_delay.tokenizer import check_tokenizer, load_tokenizer


@pytest.fixture
def checkpoint() -> Checkpoint:
    """A small model in memory, with a tokeniser of 259 ids."""
    config = delay_config()
    return Checkpoint(
        path=Path("a-model"),
        kind="directory",
        config=config,
        tensors=random_tensors(config),
        codec_config=None,
        codec_tensors=None,
        tokenizer_model=None,
        identity="",
        tokenizer_json=byte_json(),
    )


@pytest.mark.parametrize("name", ["model.gguf", "model"])
def test_the_tokeniser_travels_with_a_converted_model(
    checkpoint: Checkpoint, tmp_path: Path, name: str
) -> None:
    write = write_gguf if name.endswith(".gguf") else write_safetensors
    write(checkpoint, tmp_path / name, StorageType.F16)
    written = load_tokenizer(open_checkpoint(tmp_path / name))
    given = load_tokenizer(checkpoint)
    assert written.special_ids == given.special_ids
    assert written.encode("né <|im_end|>") == given.encode("né <|im_end|>")


def test_a_checkpoint_without_a_tokeniser_says_so(checkpoint: Checkpoint) -> None:
    with pytest.raises(CheckpointError, match="a-model: tokenizer.json is missing; fetch it again"):
        load_tokenizer(replace(checkpoint, tokenizer_json=None))


def test_a_broken_tokeniser_is_named_with_its_checkpoint(checkpoint: Checkpoint) -> None:
    with pytest.raises(CheckpointError, match="a-model: tokenizer.json: not a tokeniser"):
        load_tokenizer(replace(checkpoint, tokenizer_json=b"<html>"))


def test_a_tokeniser_of_another_model_is_refused(checkpoint: Checkpoint) -> None:
    tokenizer, config = load_tokenizer(checkpoint), parse_config(checkpoint.config)
    with pytest.raises(CheckpointError, match="has 259 ids, but the model knows 128"):
        check_tokenizer(checkpoint, tokenizer, config)
    check_tokenizer(checkpoint, tokenizer, replace(config, vocab_size=259))


def test_the_config_may_leave_chat_ids_to_the_tokeniser(checkpoint: Checkpoint) -> None:
    """Spec voicegen.md 1.3: VoiceGenerator's may have none."""
    bare = {key: value for key, value in checkpoint.config.items() if key != "im_end_token_id"}
    special_ids = {**load_tokenizer(checkpoint).special_ids, "<|im_end|>": 99}
    assert parse_config(bare, special_ids).im_end_token_id == 99
