"""Which models and voices a server has, and which of them a client's names stand for."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

from mosstalk.engine import Speaker, VoiceChoice
from mosstalk.errors import CheckpointError, UsageError
from mosstalk.server.errors import ApiError
from mosstalk.types import Voice
from mosstalk.voices import NO_VOICE

DEFAULT_VOICE = "default"
# What clients send who know OpenAI's service only.
_OPENAI_MODELS = ("tts-1", "tts-1-hd", "gpt-4o-mini-tts")
_OPENAI_VOICES = frozenset(
    [
        "alloy",
        "ash",
        "ballad",
        "cedar",
        "coral",
        "echo",
        "fable",
        "marin",
        "nova",
        "onyx",
        "sage",
        "shimmer",
        "verse",
    ]
)


class Catalogue:
    """The one model of a server, and the voices that it can use."""

    def __init__(self, speaker: Speaker, model: str) -> None:
        """`model`: as it was asked for: a name or a path, of which the last part is the id."""
        self._speaker = speaker
        self.model_id = Path(model).name.removesuffix(".gguf") or model

    @property
    def designs(self) -> bool:
        """Whether the model makes voices from descriptions, and takes none."""
        return not self._speaker.model.max_voices

    def check_model(self, name: str | None) -> None:
        """Raise ApiError unless a client's name for a model stands for the one that is here."""
        if name not in (None, self.model_id) and not str(name).startswith(_OPENAI_MODELS):
            raise ApiError(
                404,
                f"there is no model {name!r}; this server has {self.model_id!r}",
                "model_not_found",
                param="model",
            )

    def voices(self) -> list[Voice]:
        """The saved voices that belong to the model's codec, by name, but for damaged ones."""
        if self.designs:
            return []
        store, found = self._speaker.voices, []
        for name in store.names():
            try:
                voice = store.load(name)
            except (CheckpointError, UsageError):  # damaged, or removed just now
                continue
            if voice.codec_identity == self._speaker.codec_identity:
                found.append(voice)
        return found

    def listing(self) -> list[dict[str, Any]]:
        """What clients are shown, the default first."""
        voices = self.voices()
        names = [voice.name for voice in voices]
        listed = [_about(voice) for voice in voices]
        if DEFAULT_VOICE not in names and (names or not self._speaker.model.needs_voice):
            listed.insert(0, {"id": DEFAULT_VOICE, "name": DEFAULT_VOICE})
        return listed

    def choose(self, name: str | None) -> VoiceChoice:
        """The voice that a client's name stands for: a saved one, or the default.

        The default is the voice saved as `default`; else a model that needs one gets the first.
        Raises ApiError, with the names that there are.
        """
        voices = {voice.name: voice for voice in self.voices()}
        if name in voices:
            return voices[name]
        if name == NO_VOICE and not self.designs:
            return NO_VOICE
        if name is None or name == DEFAULT_VOICE or name in _OPENAI_VOICES:
            if DEFAULT_VOICE in voices:
                return voices[DEFAULT_VOICE]
            if not self._speaker.model.needs_voice or self.designs:
                return None
            if voices:
                return next(iter(voices.values()))
        raise ApiError(400, self._unknown(name), "unknown_voice", param="voice")

    def _unknown(self, name: str | None) -> str:
        if self.designs:
            return f"this model takes no voice such as {name!r}; describe one in instructions"
        known = ", ".join([entry["id"] for entry in self.listing()])
        if not known:
            return "this model clones a voice, and none is saved here; POST one to /v1/audio/voices"
        return f"there is no voice {name!r}; voices here: {known}"


def _about(voice: Voice) -> dict[str, Any]:
    return {
        "id": voice.name,
        "name": voice.name,
        "frames": len(voice.codes),
        "transcript": voice.transcript,
        "origin": None if voice.origin is None else asdict(voice.origin),
    }
