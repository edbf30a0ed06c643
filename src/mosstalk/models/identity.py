"""A short hash of a language model, which tells what was made by which."""

from mosstalk.checkpoint.checkpoint import Checkpoint
from mosstalk.checkpoint.identity import codec_identity
from mosstalk.checkpoint.mapping import matches_any
from mosstalk.checkpoint.parts import Part
from mosstalk.checkpoint.storage import StoredTensor
from mosstalk.models.registry import family_for

# They say which attention kernel PyTorch takes, and people change them to run on a CPU.
_RUNTIME_KEYS = frozenset({"attn_implementation", "local_transformer_attn_implementation"})


def language_model_identity(checkpoint: Checkpoint) -> str:
    """16 hex digits, equal for one language model in any file format and weight type.

    What `Checkpoint.identity` is for the codec: it covers the config, all names and shapes, and
    values of those tensors that no weight type rounds.
    """
    config = {key: value for key, value in checkpoint.config.items() if key not in _RUNTIME_KEYS}
    return codec_identity(Part(config, language_model_tensors(checkpoint)))


def language_model_tensors(checkpoint: Checkpoint) -> dict[str, StoredTensor]:
    """Those that the family reads: converted files leave out the others."""
    unused = family_for(checkpoint.config).ignorable_tensors
    return {
        name: tensor for name, tensor in checkpoint.tensors.items() if not matches_any(name, unused)
    }
