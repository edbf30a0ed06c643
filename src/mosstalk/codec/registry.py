"""Codecs by the `model_type` of their config.json."""

from mosstalk.checkpoint.checkpoint import Checkpoint
from mosstalk.codec.codec import Codec
from mosstalk.codec.moss_audio_tokenizer.codec import MossAudioTokenizer
from mosstalk.compute.backend import Backend
from mosstalk.errors import CheckpointError


def load_codec(checkpoint: Checkpoint, backend: Backend, *, decode_only: bool = False) -> Codec:
    """The codec of a checkpoint; raises CheckpointError if it has none.

    `decode_only` serves a model that takes no recordings: the encoder's tensors are neither
    needed nor read, and encoding raises UsageError.

    Its weights stay as they are stored: the weight type asked for is the language model's.
    """
    if checkpoint.codec_config is None or checkpoint.codec_tensors is None:
        raise CheckpointError(
            f"{checkpoint.path} holds no codec; put it into its folder audio_tokenizer or name it "
            "with --codec"
        )
    return MossAudioTokenizer(
        checkpoint.codec_config, checkpoint.codec_tensors, backend, decode_only=decode_only
    )
