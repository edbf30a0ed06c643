"""The tokeniser of a checkpoint of the delay family (spec voicegen.md 1.2)."""

from mosstalk.checkpoint.checkpoint import Checkpoint
from mosstalk.errors import CheckpointError
from mosstalk.models.moss_tts_delay.config import DelayConfig
from mosstalk.text.bpe_tokenizer import BpeTokenizer


def load_tokenizer(checkpoint: Checkpoint) -> BpeTokenizer:
    """The tokeniser in `tokenizer.json`; raises CheckpointError where it is missing or broken.

    It comes before the config, which may leave the ids of the chat tokens to it.
    """
    if checkpoint.tokenizer_json is None:
        raise CheckpointError(f"{checkpoint.path}: tokenizer.json is missing; fetch it again")
    return BpeTokenizer(checkpoint.tokenizer_json, name=f"{checkpoint.path}: tokenizer.json")


def check_tokenizer(checkpoint: Checkpoint, tokenizer: BpeTokenizer, config: DelayConfig) -> None:
    """Raises CheckpointError where the tokeniser has ids that the model does not know."""
    if tokenizer.vocab_size > config.vocab_size:
        raise CheckpointError(
            f"{checkpoint.path}: tokenizer.json has {tokenizer.vocab_size} ids, but the model "
            f"knows {config.vocab_size}; they do not belong together"
        )
