"""Reads a foreign config.json strictly: every key is used, named as unused, or an error."""

from collections.abc import Mapping
from typing import TypeVar

from mosstalk.errors import CheckpointError

T = TypeVar("T", int, float, str, bool)

# What transformers writes into every config: defaults of its own generator, which is not used.
TRANSFORMERS_KEYS = (
    "add_cross_attention", "bad_words_ids", "begin_suppress_tokens", "chunk_size_feed_forward",
    "cross_attention_hidden_size", "decoder_start_token_id", "diversity_penalty", "do_sample",
    "early_stopping", "encoder_no_repeat_ngram_size", "exponential_decay_length_penalty",
    "finetuning_task", "forced_bos_token_id", "forced_eos_token_id", "id2label",
    "is_decoder", "is_encoder_decoder", "label2id", "length_penalty", "max_length", "min_length",
    "no_repeat_ngram_size", "num_beam_groups", "num_beams", "num_return_sequences",
    "output_attentions", "output_hidden_states", "output_scores", "prefix", "problem_type",
    "pruned_heads", "remove_invalid_values", "repetition_penalty", "return_dict",
    "return_dict_in_generate", "sep_token_id", "suppress_tokens", "task_specific_params",
    "temperature", "tf_legacy_loss", "tie_encoder_decoder", "tokenizer_class", "top_k", "top_p",
    "torchscript", "typical_p", "use_bfloat16",
)  # fmt: skip


class ConfigReader:
    """Takes typed values out of a JSON object and remembers which keys were asked for.

    All methods raise CheckpointError that names `what` and the key.
    """

    def __init__(self, values: Mapping[str, object], what: str) -> None:
        self._values = values
        self._what = what
        self._known: set[str] = set()

    def get(self, key: str, kind: type[T], default: T | None = None) -> T:
        """The value of `key`, which must be a `kind` (an int serves as a float)."""
        self._known.add(key)
        value = self._values.get(key, default)
        if value is None:
            raise CheckpointError(f"{self._what}: {key!r} is missing")
        if kind is float and type(value) is int:
            value = float(value)
        if type(value) is not kind:
            raise CheckpointError(
                f"{self._what}: {key!r} is {value!r}, not of type {kind.__name__}"
            )
        return value

    def size(self, key: str) -> int:
        """A whole number of at least 1."""
        value = self.get(key, int)
        if value < 1:
            raise CheckpointError(f"{self._what}: {key!r} is {value}, but must be at least 1")
        return value

    def require(self, key: str, *allowed: object) -> None:
        """`key`, if it is there, must have one of the values that this code implements."""
        self._known.add(key)
        if key in self._values and self._values[key] not in allowed:
            names = " or ".join(map(repr, allowed))
            raise CheckpointError(
                f"{self._what}: {key!r} is {self._values[key]!r}; only {names} is supported"
            )

    def child(self, key: str) -> "ConfigReader":
        """The JSON object at `key`."""
        self._known.add(key)
        value = self._values.get(key)
        if not isinstance(value, Mapping):
            raise CheckpointError(f"{self._what}: {key!r} is missing or not an object")
        return ConfigReader(value, f"{self._what}, {key}")

    def children(self, key: str) -> list["ConfigReader"]:
        """The list of JSON objects at `key`."""
        self._known.add(key)
        value = self._values.get(key)
        if not isinstance(value, list) or not all(isinstance(item, Mapping) for item in value):
            raise CheckpointError(f"{self._what}: {key!r} is missing or not a list of objects")
        return [ConfigReader(item, f"{self._what}, {key}[{i}]") for i, item in enumerate(value)]

    def has(self, key: str) -> bool:
        return self._values.get(key) is not None

    def ignore(self, *keys: str) -> None:
        """Keys that may be there and have no effect here."""
        self._known.update(keys)

    def finish(self) -> None:
        """Raise if any key was neither used nor named as ignored."""
        unknown = sorted(set(self._values) - self._known)
        if unknown:
            raise CheckpointError(
                f"{self._what}: unknown {'key' if len(unknown) == 1 else 'keys'} "
                f"{', '.join(map(repr, unknown))}; this version does not know what they change"
            )
