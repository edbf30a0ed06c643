"""Text to speech on your own machine with the MOSS models.

speaker = mosstalk.load()                      # the built-in voice; or "nano", a path
speech = speaker.say("Hello.", seed=7)
speech.write("hello.wav")
for chunk in speaker.stream("A long text ..."):
    ...                                        # chunk.samples: float32 [channels, n]
"""

from mosstalk.audio.clip import AudioClip
from mosstalk.design import Candidate
from mosstalk.engine import Speaker, Speech, load
from mosstalk.errors import (
    AudioError,
    BusyError,
    CheckpointError,
    DeviceError,
    DownloadError,
    MosstalkError,
    OutputError,
    TimeLimitError,
    UsageError,
)
from mosstalk.scheduled_stream import ScheduledStream
from mosstalk.scheduler import Scheduler, SchedulerStats
from mosstalk.stream import SpeechStream
from mosstalk.types import AudioChunk, SpeechOptions, Summary, Voice, VoiceOrigin

__version__ = "0.1.0"
__all__ = [
    "AudioChunk",
    "AudioClip",
    "AudioError",
    "BusyError",
    "Candidate",
    "CheckpointError",
    "DeviceError",
    "DownloadError",
    "MosstalkError",
    "OutputError",
    "ScheduledStream",
    "Scheduler",
    "SchedulerStats",
    "Speaker",
    "SpeechOptions",
    "SpeechStream",
    "Speech",
    "Summary",
    "TimeLimitError",
    "UsageError",
    "Voice",
    "VoiceOrigin",
    "load",
]
