"""Text in, audio out: load, prompt, prefill, step, decode. Read this first."""

import hashlib
import secrets
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from mosstalk.audio.clip import AudioClip
from mosstalk.audio.loudness import normalise_loudness
from mosstalk.audio.read import read_clip, read_file
from mosstalk.audio.reference import prepare_reference
from mosstalk.checkpoint.checkpoint import open_checkpoint
from mosstalk.checkpoint.hub import BUILT_IN, resolve_model
from mosstalk.checkpoint.storage import StorageType
from mosstalk.codec.codec import Codec
from mosstalk.codec.registry import load_codec
from mosstalk.compute.backend import Backend, open_backend
from mosstalk.compute.devices import chosen_device
from mosstalk.compute.self_test.trust import trusted
from mosstalk.design import Candidate
from mosstalk.errors import CheckpointError, UsageError
from mosstalk.models.identity import language_model_identity
from mosstalk.models.registry import family_for
from mosstalk.models.speech_model import SpeechModel
from mosstalk.speaking import SpeechRequest, Studio, Work, do_alone, resume, speak
from mosstalk.stream import Progress, SpeechStream
from mosstalk.text.normalise.dictionary import Dictionary
from mosstalk.text.prepare import prepare
from mosstalk.text.split import TextChunk, split_text
from mosstalk.turns import FairLock
from mosstalk.types import AudioChunk, SpeechOptions, SpeechSettings, Summary, Voice, VoiceOrigin
from mosstalk.voices import NO_VOICE, VoiceStore

# A voice, its name, or one for each speaker of a dialogue.
VoiceChoice = str | Voice | Sequence[str | Voice] | None


@dataclass(frozen=True, slots=True)
class Speech:
    """A finished text: its audio, and what is known about it."""

    audio: AudioClip
    summary: Summary

    @property
    def samples(self) -> NDArray[np.float32]:
        """float32 [channels, n]"""
        return self.audio.samples

    @property
    def sample_rate(self) -> int:
        """In Hz."""
        return self.audio.sample_rate

    def write(self, out: str | Path) -> None:
        """Write a `.wav` or `.flac` file, or "-" for standard output; see AudioClip.write."""
        self.audio.write(out)


def load(
    model: str | Path = BUILT_IN,
    *,
    device: str = "cpu",
    threads: int = 0,
    weight_type: str = "native",
    codec: str | Path | None = None,
    strict: bool = False,
) -> "Speaker":
    """Open a model.

    The first time on a device every op is tested there. One that computes wrong is not used:
    slower kernels or the cpu stand in for it, and `Speaker.warnings` says so.

    Args:
        model: "sprout" (built in), "nano" (after `mosstalk pull nano`), the path of a directory
            as published, or of a .gguf file.
        device: "cpu", "cuda", "vulkan", "auto" for the fastest of them by a simple rule (see
            compute/devices.py), or "reference" for the slow NumPy definition of it. A number
            chooses one of several GPUs: "cuda:1".
        threads: 0 for physical cores less one, at least 1, at most 4.
        weight_type: storage of the language model's matrices: native (as in the file), f32, f16,
            bf16 or q8_0.
        codec: directory of the codec, where it is not with the model.
        strict: let nothing stand in for a device that computes wrong.

    Raises:
        UsageError: an unknown name, a value outside its range, a package that is not installed.
        CheckpointError: files that are missing, damaged or do not belong together.
        DeviceError: a device that is not there or out of memory, or computes wrong, if `strict`
            or nothing can stand in for it.
    """
    storage = StorageType.parse(weight_type)
    path, known_codec = resolve_model(str(model))
    checkpoint = open_checkpoint(path, Path(codec) if codec else known_codec)
    family = family_for(checkpoint.config)
    backend = open_backend(chosen_device(device, checkpoint.model_bytes), threads)
    backend, warnings = trusted(backend, threads, strict=strict)
    speech_model = family.load(checkpoint, backend, storage)
    decode_only = not speech_model.max_voices
    speech_codec = load_codec(checkpoint, backend, decode_only=decode_only)
    if (
        speech_model.codec_sample_rate != speech_codec.sample_rate
        or speech_model.num_codebooks > speech_codec.num_codebooks
    ):
        raise CheckpointError(
            f"{path}: the model speaks {speech_model.num_codebooks} codebooks at "
            f"{speech_model.codec_sample_rate} Hz, but the codec has "
            f"{speech_codec.num_codebooks} at {speech_codec.sample_rate} Hz; name its own codec"
        )
    return Speaker(
        speech_model,
        speech_codec,
        backend,
        storage,
        codec_identity=checkpoint.identity,
        model_identity=language_model_identity(checkpoint),
        warnings=warnings,
    )


class Speaker:
    """A loaded model. Several streams may be open at a time; they take turns."""

    def __init__(
        self,
        model: SpeechModel[Any],
        codec: Codec,
        backend: Backend,
        storage: StorageType,
        *,
        codec_identity: str,
        model_identity: str,
        warnings: tuple[str, ...] = (),
    ) -> None:
        self.model = model
        self.codec = codec
        self.voices = VoiceStore()
        self.warnings = warnings  # of the loading; every Summary begins with them
        self._backend = backend
        self._storage = storage
        self.codec_identity = codec_identity  # what a voice must have been made with
        self.model_identity = model_identity
        self.lock = FairLock()  # programs work in buffers of their own: one call at a time

    @property
    def sample_rate(self) -> int:
        """Of all audio, in Hz."""
        return self.codec.sample_rate

    @property
    def num_channels(self) -> int:
        return self.codec.num_channels

    def say(
        self, text: str, voice: VoiceChoice = None, **options: Unpack[SpeechSettings]
    ) -> Speech:
        """Speak a whole text: `stream`, collected. Same arguments, same samples."""
        silence = np.zeros((self.num_channels, 0), np.float32)
        with self.stream(text, voice, **options) as stream:
            pieces = [silence, *(chunk.samples for chunk in stream)]
        return Speech(AudioClip(np.concatenate(pieces, axis=1), self.sample_rate), stream.summary)

    def stream(
        self, text: str, voice: VoiceChoice = None, **options: Unpack[SpeechSettings]
    ) -> SpeechStream:
        """Speak a text piece by piece, the first after one frame.

        Args:
            text: what to say; long texts are divided.
            voice: a saved voice or its name, or one for each speaker of a dialogue; "none" for a
                model that clones to go without.
            options: see SpeechOptions.

        Raises:
            UsageError: no text, an unknown voice, or an option outside its range.
        """
        progress = Progress()
        request = self.request(text, voice, **options)
        return SpeechStream(self._spoken(request, progress), progress, self.summarise(request))

    def request(
        self, text: str, voice: VoiceChoice = None, **options: Unpack[SpeechSettings]
    ) -> SpeechRequest:
        """What `stream` is asked for, checked and divided; `speak` works it off.

        Raises UsageError as `stream` does.
        """
        settings = SpeechOptions(**options)
        self.model.check(settings)
        voices = self._voices(voice)
        parts, warnings = self._parts(text, settings, bool(voices))
        return SpeechRequest(
            parts=parts,
            voices=voices,
            options=settings,
            max_frames=settings.max_frames or self.model.default_max_frames,
            seed=secrets.randbits(32) if settings.seed is None else settings.seed,
            warnings=(*self.warnings, *warnings),
        )

    def _parts(
        self, text: str, settings: SpeechOptions, has_voice: bool
    ) -> tuple[tuple[TextChunk, ...], tuple[str, ...]]:
        """The words of a text in the parts that are spoken one by one, and warnings."""
        model = self.model
        max_tokens = settings.max_tokens
        if max_tokens is None:
            max_tokens = model.default_max_tokens
        if settings.mode == "continuation":  # its prompt holds the recording: one chunk
            max_tokens = 0
        if not settings.normalize:
            clean, warnings = model.clean(text)
            return tuple(split_text(clean, max_tokens, model.count_tokens)), warnings
        words = None if settings.dictionary is None else Dictionary(settings.dictionary)
        stretches, warnings = prepare(text, model.clean, settings.language, words)
        in_one = settings.mode == "continuation" or not (has_voice or model.default_max_tokens)
        if len(stretches) > 1 and in_one:
            raise UsageError(
                "the text has a pause, but is spoken in one part here, as each part would get a "
                "voice of its own; leave the pause out"
            )
        parts: list[TextChunk] = []
        for stretch in stretches:
            parts += split_text(stretch.text, max_tokens, model.count_tokens)
            parts[-1] = replace(parts[-1], pause_seconds=stretch.pause_seconds)
        return tuple(parts), warnings

    def summarise(self, request: SpeechRequest) -> Callable[[Progress, float], Summary]:
        """What makes a summary of a stream's progress and its seconds of work."""

        def summary(progress: Progress, work_seconds: float) -> Summary:
            first = progress.first_audio
            return Summary(
                seed=request.seed,
                frames=progress.frames,
                seconds=progress.seconds,
                stop_reason=progress.stop_reason,
                rtf=work_seconds / progress.seconds if progress.seconds else 0.0,
                ttfa_ms=0.0 if first is None else 1000 * (first - progress.started),
                device=self._backend.name,
                weight_type=str(self._storage),
                retries=progress.retries,
                warnings=(*request.warnings, *progress.warnings),
            )

        return summary

    def make_voice(
        self, name: str, source: str | Path | bytes, transcript: str | None = None
    ) -> tuple[Voice, tuple[str, ...]]:
        """A voice from a recording (WAV, FLAC, OGG or MP3), and warnings about the recording.

        `source` is a file or, as bytes, a file's content. The voice is not saved:
        `speaker.voices.save` does that. Raises AudioError for a recording that cannot be read, is
        silent or shorter than a frame, UsageError for a model without voices.
        """
        if isinstance(source, bytes):
            content, called = source, "the recording"
        else:
            content, called = read_file(source, name=str(source)), str(source)  # may be a pipe
        clip = read_clip(content, name=called)
        codes, warnings = self._encode(clip)
        digest = hashlib.sha256(content).hexdigest()
        return self._voice_of(name, codes, digest, transcript), warnings

    def adopt(self, name: str, candidate: Candidate) -> tuple[Voice, tuple[str, ...]]:
        """A voice from a designed one, and warnings; see make_voice.

        The candidate comes from another model: this one clones what that one has designed.
        """
        codes, warnings = self._encode(candidate.audio)
        digest = hashlib.sha256(candidate.audio.samples.tobytes()).hexdigest()
        voice = self._voice_of(name, codes, digest, candidate.text)
        return replace(voice, origin=candidate.origin), warnings

    def design(
        self, description: str, text: str, count: int = 4, **options: Unpack[SpeechSettings]
    ) -> Iterator[Candidate]:
        """Voices for a description, each speaking `text`: one for each seed from the given one on.

        `text` is spoken whole. Raises UsageError for a model that follows no instruction.
        """
        first = options.get("seed")
        first = secrets.randbits(32) if first is None else first
        for seed in range(first, first + count):
            options |= {"instruction": description, "seed": seed, "max_tokens": 0}
            speech = self.say(text, **options)
            origin = VoiceOrigin(description, seed, self.model_identity, self.codec_identity)
            summary = speech.summary
            yield Candidate(speech.audio, text, origin, summary.stop_reason, summary.retries)

    def hear(self, voice: str | Voice) -> AudioClip:
        """A voice's recording as this model hears it: its codes, decoded.

        Raises UsageError for an unknown voice, or one that was made with another codec.
        """
        chosen = self._checked(self.voices.load(voice) if isinstance(voice, str) else voice)
        with self.lock:
            samples = self.codec.start(len(chosen.codes))(chosen.codes)
        return AudioClip(samples, self.sample_rate)

    def _spoken(
        self, request: SpeechRequest, progress: Progress
    ) -> Generator[AudioChunk, None, None]:
        """The step loop of a text by itself: each piece of work as soon as it is asked for."""
        studio = Studio(self.model, self.codec)
        talk = speak(request, studio, progress)
        work: Work | None = None
        try:
            while True:
                with self.lock:
                    item = resume(talk, work) if work is None or work.is_done else work
                    work = item if isinstance(item, Work) else None
                    if work is not None:
                        do_alone(work, studio)
                if item is None:
                    return
                if isinstance(item, AudioChunk):
                    yield item
        finally:
            talk.close()

    def _voices(self, choice: VoiceChoice) -> tuple[Voice, ...]:
        """The voices chosen, their transcripts cleaned as the text is."""
        if choice is None and self.model.needs_voice:
            raise UsageError(
                "this model clones a voice and is near silent without one; give --voice NAME or "
                f"--voice-ref CLIP, or ask for it with --voice {NO_VOICE}"
            )
        if choice is None or choice == NO_VOICE:
            return ()
        chosen = [choice] if isinstance(choice, str | Voice) else list(choice)
        if len(chosen) > self.model.max_voices:
            raise UsageError(self._too_many_voices(len(chosen)))
        voices = [self._checked(self.voices.load(v) if isinstance(v, str) else v) for v in chosen]
        return tuple(
            replace(voice, transcript=self.model.clean(voice.transcript)[0])
            if voice.transcript
            else voice
            for voice in voices
        )

    def _too_many_voices(self, count: int) -> str:
        if not self.model.max_voices:
            return (
                "this model makes a voice from its description and takes none; give --instruction "
                "instead"
            )
        return f"{count} voices were given, but this model takes {self.model.max_voices} at most"

    def _encode(self, clip: AudioClip) -> tuple[NDArray[np.int32], tuple[str, ...]]:
        codec = self.codec
        prepared = prepare_reference(clip, codec.sample_rate, codec.num_channels, codec.frame_len)
        samples = prepared.samples
        if self.model.levels_references:
            samples = normalise_loudness(samples)
        with self.lock:
            codes = codec.encode(samples)[:, : self.model.num_codebooks]
        return codes, prepared.warnings

    def _voice_of(
        self, name: str, codes: NDArray[np.int32], source_hash: str, transcript: str | None
    ) -> Voice:
        rate = self.codec.sample_rate
        return Voice(name, codes, rate, source_hash, self.codec_identity, transcript)

    def _checked(self, voice: Voice) -> Voice:
        if voice.codec_identity != self.codec_identity:
            raise UsageError(
                f"voice {voice.name!r} was made with another codec; add its recording again with "
                "this model"
            )
        return voice
