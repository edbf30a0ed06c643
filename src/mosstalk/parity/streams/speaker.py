"""Requests that take turns through the engine, as an application makes them."""

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from mosstalk.engine import Speaker
from mosstalk.models.moss_tts_delay.members import TTSD
from mosstalk.models.moss_tts_delay.speech import DelaySpeech
from mosstalk.parity.comparison import Comparison
from mosstalk.stream import SpeechStream
from mosstalk.types import SpeechSettings, Voice
from mosstalk.voices import NO_VOICE

Samples = NDArray[np.float32]  # [channels, n]

_VOICE_FRAMES = 12
_VOICE_CODES = 16  # no codebook has fewer
_CANCELLED = 0  # index of the request that is closed
_HOT = 3.0  # temperature at which a seed shows
_TEXTS = (
    "One short line.",
    "The second has rather more to say, and takes a breath. Then it goes on for a while.",
    "Numbers: one, two, three, four, and so on.",
    "Who is there? Nobody answers.",
)
_INSTRUCTIONS = ("A tired old man.", "A warm, low, unhurried woman's voice.")


@dataclass(frozen=True, slots=True)
class Asked:
    """The arguments of one `Speaker.stream`."""

    name: str
    text: str
    voice: str | Voice
    settings: SpeechSettings


@dataclass(frozen=True, slots=True)
class Subject:
    """What every check of the engine works on."""

    speaker: Speaker
    asked: tuple[Asked, ...]
    seed: int
    _alone: dict[int, Samples] = field(default_factory=dict)

    def alone(self, index: int) -> Samples:
        """What a request hears when there is no other."""
        if index not in self._alone:
            self._alone[index] = _joined(self, list(_chunks(self.stream(index))))
        return self._alone[index]

    def seconds(self, index: int) -> float:
        """Of the audio that a request heard alone, if it has been made."""
        heard = self._alone.get(index)
        return 0.0 if heard is None else heard.shape[1] / self.speaker.sample_rate

    def stream(self, index: int) -> SpeechStream:
        asked = self.asked[index]
        return self.speaker.stream(asked.text, asked.voice, **asked.settings)


def make_subject(speaker: Speaker, count: int, frames: int, seed: int) -> Subject:
    """Requests of different texts and seeds, of two voices and of none, greedy and sampled."""
    voices: list[str | Voice] = [NO_VOICE, *_voices(speaker, seed)]
    member = speaker.model.member if isinstance(speaker.model, DelaySpeech) else None
    asked = []
    for i in range(count):
        settings: SpeechSettings = {"seed": seed + i, "max_frames": frames, "max_tokens": 20}
        if i % 2 == 0:
            settings["temperature"] = 0.0
        if member is not None:
            settings["instruction"] = _INSTRUCTIONS[i % len(_INSTRUCTIONS)]
            settings["force_audio_start"] = i % 3 != 2
        text = f"{_TEXTS[i % len(_TEXTS)]} {i + 1}."
        if member is TTSD:  # it speaks dialogues
            text, settings["max_tokens"] = f"[S1] {text}", 0
        asked.append(Asked(f"speaker {i}", text, voices[i % len(voices)], settings))
    return Subject(speaker, tuple(asked), seed)


def _voices(speaker: Speaker, seed: int) -> list[Voice]:
    """Of random codes; none for a model that takes no voice."""
    if not speaker.model.max_voices:
        return []
    shape = (2, _VOICE_FRAMES, speaker.model.num_codebooks)
    codes = np.random.default_rng((seed, 2)).integers(_VOICE_CODES, size=shape, dtype=np.int32)
    rate, identity = speaker.sample_rate, speaker.codec_identity
    return [Voice(f"voice {i}", codes[i], rate, "", identity) for i in range(2)]


def check_interleaved(subject: Subject, comparison: Comparison) -> None:
    """All streams from the start, chunk by chunk in shuffled order."""
    count = len(subject.asked)
    heard = _take_turns(subject, [subject.stream(i) for i in range(count)], salt=1)
    for i in range(count):
        _compare(subject, comparison, i, heard[i])


def check_late(subject: Subject, comparison: Comparison) -> None:
    """One stream is opened when each of the others has handed out a chunk."""
    count = len(subject.asked)
    streams = [subject.stream(i) for i in range(count - 1)]
    first = [_chunks(stream, most=1) for stream in streams]
    streams.append(subject.stream(count - 1))
    heard = _take_turns(subject, streams, salt=2)
    for i, chunks in enumerate([*first, []]):
        _compare(subject, comparison, i, [*chunks, *heard[i]])


def check_cancelled(subject: Subject, comparison: Comparison) -> None:
    """One stream is closed after its first chunk; the others go on."""
    count = len(subject.asked)
    streams = [subject.stream(i) for i in range(count)]
    first = [_chunks(stream, most=1) for stream in streams]
    streams[_CANCELLED].close()
    heard = _take_turns(subject, streams, salt=3)
    comparison.require(not heard[_CANCELLED], "a closed stream handed out a chunk")
    beginning = _joined(subject, first[_CANCELLED])
    expected = subject.alone(_CANCELLED)[:, : beginning.shape[1]]
    _compare_samples(
        comparison, f"{subject.asked[_CANCELLED].name}, until closed", expected, beginning
    )
    for i in range(count):
        if i != _CANCELLED:
            _compare(subject, comparison, i, [*first[i], *heard[i]])


def check_seed(subject: Subject, comparison: Comparison) -> None:
    """Control: another seed says a text otherwise."""
    asked = subject.asked[0]
    hot = replace(asked, settings={**asked.settings, "temperature": _HOT})
    heard = []
    for seed in (subject.seed, subject.seed + 1):
        settings: SpeechSettings = {**hot.settings, "seed": seed}
        stream = subject.speaker.stream(hot.text, hot.voice, **settings)
        heard.append(_joined(subject, _chunks(stream)))
    length = min(samples.shape[1] for samples in heard)
    expected, found = (samples[:, :length] for samples in heard)
    if expected.any():
        comparison.add("another seed", expected, found)
    else:  # the model stops before it says anything
        comparison.add_ids("frames", np.zeros(1), np.zeros(1))


def _take_turns(subject: Subject, streams: list[SpeechStream], salt: int) -> list[list[Samples]]:
    """Ask the streams for chunks in random order until all have ended."""
    generator = np.random.default_rng((subject.seed, salt))
    heard: list[list[Samples]] = [[] for _ in streams]
    going = list(range(len(streams)))
    while going:
        index = int(generator.choice(going))
        chunks = _chunks(streams[index], most=1)
        heard[index] += chunks
        if not chunks:
            going.remove(index)
    return heard


def _chunks(stream: SpeechStream, most: int | None = None) -> list[Samples]:
    """The next chunks, all or at most so many."""
    heard: list[Samples] = []
    while most is None or len(heard) < most:
        chunk = next(stream, None)
        if chunk is None:
            break
        heard.append(chunk.samples)
    return heard


def _joined(subject: Subject, chunks: list[Samples]) -> Samples:
    nothing = np.zeros((subject.speaker.num_channels, 0), np.float32)
    return np.concatenate([nothing, *chunks], axis=1)


def _compare(subject: Subject, comparison: Comparison, index: int, chunks: list[Samples]) -> None:
    name = subject.asked[index].name
    expected, found = subject.alone(index), _joined(subject, chunks)
    comparison.add_ids(f"{name}, length", np.array(expected.shape), np.array(found.shape))
    if expected.shape == found.shape:
        _compare_samples(comparison, name, expected, found)


def _compare_samples(comparison: Comparison, name: str, expected: Samples, found: Samples) -> None:
    """A model may stop before it says anything: then there are pauses, or nothing at all."""
    if expected.any():
        comparison.add(f"{name}, samples", expected, found)
    elif expected.size:
        comparison.add_ids(f"{name}, pauses", expected, found)
