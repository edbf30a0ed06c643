"""The model, codec and device that a parity command works on."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from mosstalk.checkpoint.checkpoint import Checkpoint, open_checkpoint
from mosstalk.checkpoint.hub import resolve_model
from mosstalk.checkpoint.storage import StorageType, StoredTensor
from mosstalk.codec.moss_audio_tokenizer.codec import MossAudioTokenizer
from mosstalk.compute.backend import Backend, open_backend
from mosstalk.compute.devices import chosen_device
from mosstalk.compute.self_test.trust import trusted
from mosstalk.engine import Speaker, load
from mosstalk.errors import UsageError
from mosstalk.models.moss_tts_delay.model import DelayModel
from mosstalk.models.moss_tts_delay.tokenizer import load_tokenizer
from mosstalk.models.moss_tts_nano.model import NanoModel
from mosstalk.models.registry import family_for
from mosstalk.parity.family.delay import DelayLanguageModel
from mosstalk.parity.family.language_model import LanguageModel
from mosstalk.parity.family.nano import NanoLanguageModel

# Relative to the largest value. The cpu backend promises the same bits; NumPy's matrix product
# sums in another order for other numbers of rows; GPUs promise what rounding allows.
AUTO_TOLERANCE = {"cpu": 0.0, "reference": 1e-5, "cuda": 1e-4, "vulkan": 1e-4}

Setting = str | int | float


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """What the user names: see `mosstalk.load`."""

    model: str
    codec: str | None = None
    backend: str = "cpu"
    threads: int = 0  # 0: automatic
    weight_type: str = "native"

    def open(self) -> "Opened":
        """Open the files and the device; nothing stands in for a device that computes wrong.

        Raises UsageError for names that are not known, CheckpointError for files that are
        missing or damaged, DeviceError for a device that fails its self-test.
        """
        storage = StorageType.parse(self.weight_type)
        path, known_codec = resolve_model(self.model)
        checkpoint = open_checkpoint(path, Path(self.codec) if self.codec else known_codec)
        device = chosen_device(self.backend, checkpoint.model_bytes)
        backend, _ = trusted(open_backend(device, self.threads), self.threads, strict=True)
        return Opened(self, checkpoint, backend, storage)

    def speaker(self) -> Speaker:
        """The whole engine, as a user of the package gets it."""
        return load(
            self.model,
            device=self.backend,
            threads=self.threads,
            weight_type=self.weight_type,
            codec=self.codec,
            strict=True,
        )


@dataclass(frozen=True, slots=True)
class Opened:
    """An opened choice. Models are made when asked for: a check needs some of them only."""

    choice: ModelChoice
    checkpoint: Checkpoint
    backend: Backend
    storage: StorageType

    @property
    def settings(self) -> dict[str, Setting]:
        """What every report begins with."""
        return {
            "model": self.choice.model,
            "backend": self.backend.name,
            "threads": self.backend.threads,
            "weight_type": str(self.storage),
        }

    @property
    def has_language_model(self) -> bool:
        return bool(self.checkpoint.config)

    @property
    def has_codec(self) -> bool:
        return self.checkpoint.codec_config is not None

    def language_model(self, storage: StorageType | None = None) -> LanguageModel:
        """The language model, its matrices stored as `storage` (default: as chosen).

        Raises UsageError for a codec alone.
        """
        checkpoint, model = self.checkpoint, self._load(storage)
        if isinstance(model, NanoModel):
            return NanoLanguageModel(model, checkpoint.tokenizer_model)
        assert isinstance(model, DelayModel), type(model)
        tokenizer = None if checkpoint.tokenizer_json is None else load_tokenizer(checkpoint)
        return DelayLanguageModel(model, tokenizer)

    def nano(self) -> NanoModel:
        """The language model; raises UsageError if it is none of MOSS-TTS-Nano's architecture."""
        model = self._load()
        if not isinstance(model, NanoModel):
            raise UsageError(
                f"{self.checkpoint.path}: this check knows models of type moss_tts_nano only"
            )
        return model

    def delay(self) -> DelayModel:
        """The language model; raises UsageError if it is none of the delay family."""
        model = self._load()
        if not isinstance(model, DelayModel):
            raise UsageError(
                f"{self.checkpoint.path}: this check knows models of type moss_tts_delay only"
            )
        return model

    def _load(self, storage: StorageType | None = None) -> object:
        checkpoint = self.checkpoint
        if not checkpoint.config:
            raise UsageError(f"{checkpoint.path} is a codec alone; give a language model")
        family = family_for(checkpoint.config)
        return family.load_language_model(checkpoint, self.backend, storage or self.storage)

    def codec(self) -> MossAudioTokenizer:
        """The codec; raises UsageError where there is none."""
        checkpoint = self.checkpoint
        if checkpoint.codec_config is None or checkpoint.codec_tensors is None:
            raise UsageError(f"{checkpoint.path} has no codec; name it with --codec")
        return self.codec_of(checkpoint.codec_config, checkpoint.codec_tensors)

    def codec_of(
        self, config: Mapping[str, object], tensors: Mapping[str, StoredTensor]
    ) -> MossAudioTokenizer:
        """A codec of tensors; of its decoder alone where they hold no encoder."""
        has_encoder = any(name.startswith("encoder.") for name in tensors)
        return MossAudioTokenizer(config, tensors, self.backend, decode_only=not has_encoder)

    def tolerance(self, asked: float | None) -> float:
        """The one asked for, else the backend's (AUTO_TOLERANCE)."""
        return AUTO_TOLERANCE[self.backend.name] if asked is None else asked
