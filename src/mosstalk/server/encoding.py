"""Audio in the formats that clients ask for, encoded while it is made.

Each encoder writes one header, and flushes what it holds at the end. A stream goes to a sink that
cannot seek; a whole response to one that can, so that its headers tell its length.
"""

import io
from abc import ABC, abstractmethod
from contextlib import suppress
from dataclasses import dataclass
from threading import Lock
from typing import Any, Literal, get_args

import av
import av.error
import numpy as np
from numpy.typing import NDArray

from mosstalk.audio.write import wav_header
from mosstalk.errors import OutputError
from mosstalk.server.frames import audio_frame, frame_samples
from mosstalk.server.tempo import Tempo

FormatName = Literal["mp3", "opus", "aac", "flac", "wav", "pcm"]
FORMATS: tuple[FormatName, ...] = get_args(FormatName)

PCM_RATE = 24_000  # Hz, one channel: what clients take OpenAI's headerless `pcm` for
_OGG_PAGE_US = 80_000  # the muxer would gather a second of packets
_WAV_HEADER_BYTES = 44


@dataclass(frozen=True, slots=True)
class _Codec:
    """How PyAV writes a format: its muxer, its encoder, and options of both."""

    muxer: str
    encoder: str
    bits_per_channel: int | None  # per second
    stream_options: dict[str, str]  # of the muxer, for a sink that cannot seek


_CODECS: dict[str, _Codec] = {
    "mp3": _Codec("mp3", "libmp3lame", 64_000, {"write_xing": "0"}),
    "opus": _Codec("ogg", "libopus", 48_000, {"page_duration": str(_OGG_PAGE_US)}),
    "aac": _Codec("adts", "aac", 64_000, {}),
    "flac": _Codec("flac", "flac", None, {}),
}
_CONTENT_TYPES: dict[FormatName, str] = {
    "mp3": "audio/mpeg",
    "opus": "audio/ogg; codecs=opus",
    "aac": "audio/aac",
    "flac": "audio/flac",
    "wav": "audio/wav",
    "pcm": f"audio/pcm; rate={PCM_RATE}; channels=1",
}


class Encoder(ABC):
    """Takes audio part by part and gives back the bytes that are ready."""

    @abstractmethod
    def push(self, samples: NDArray[np.float32]) -> bytes:
        """Bytes that are ready after [channels, n] samples; beyond [-1, 1] they are clipped."""

    @abstractmethod
    def finish(self) -> bytes:
        """The last bytes; nothing may follow."""


class SpokenEncoder:
    """An encoder behind a change of tempo, where one is asked for.

    One that is not finished must be closed: FFmpeg's encoders hold memory that Python does not see,
    and are parts of reference cycles. Calls may come from several threads.
    """

    def __init__(
        self, name: FormatName, sample_rate: int, num_channels: int, *, speed: float, whole: bool
    ) -> None:
        """`whole`: bytes come at the end only, with headers that know the length."""
        self._tempo = None if speed == 1 else Tempo(speed, sample_rate, num_channels)
        self._encoder = _open(name, sample_rate, num_channels, whole)
        self._lock = Lock()
        self._is_finished = False

    def push(self, samples: NDArray[np.float32]) -> bytes:
        """Bytes that are ready; raises OutputError for samples that are not numbers."""
        if not np.isfinite(samples).all():
            raise OutputError("the model made audio that is not numbers; try another seed")
        with self._lock:
            if self._is_finished:  # closed on another thread
                return b""
            return self._encoder.push(self._tempo.push(samples) if self._tempo else samples)

    def finish(self) -> bytes:
        """The last bytes."""
        with self._lock:
            if self._is_finished:
                return b""
            self._is_finished = True
            last = self._encoder.push(self._tempo.finish()) if self._tempo else b""
            return last + self._encoder.finish()

    def close(self) -> None:
        """Give back what it holds; a second time, and after `finish`, it does nothing."""
        with suppress(av.error.FFmpegError):  # of a file that nobody reads
            self.finish()


def content_type(name: FormatName) -> str:
    """Of a format."""
    return _CONTENT_TYPES[name]


def pcm16(samples: NDArray[np.float32]) -> bytes:
    """Interleaved 16-bit samples, as files of ours hold them, of [channels, n]."""
    return _quantised(samples).tobytes()


def _quantised(samples: NDArray[np.float32]) -> NDArray[np.int16]:
    """[n, channels] of [channels, n]."""
    scaled = np.rint(np.clip(samples, -1.0, 1.0) * np.float32(32767.0))
    return np.ascontiguousarray(scaled.T, dtype="<i2")


def _open(name: FormatName, sample_rate: int, num_channels: int, whole: bool) -> Encoder:
    if name == "wav":
        return _Wav(sample_rate, num_channels, whole)
    if name == "pcm":
        return _Pcm(sample_rate)
    return _Container(_CODECS[name], sample_rate, num_channels, whole)


class _Wav(Encoder):
    def __init__(self, sample_rate: int, num_channels: int, whole: bool) -> None:
        self._form = sample_rate, num_channels
        self._parts: list[bytes] | None = [] if whole else None
        self._header = b"" if whole else wav_header(*self._form, None)

    def push(self, samples: NDArray[np.float32]) -> bytes:
        data = pcm16(samples)
        if self._parts is not None:
            self._parts.append(data)
            return b""
        header, self._header = self._header, b""
        return header + data

    def finish(self) -> bytes:
        if self._parts is None:
            return self._header
        data = b"".join(self._parts)
        return wav_header(*self._form, len(data)) + data


class _Pcm(Encoder):
    def __init__(self, sample_rate: int) -> None:
        self._sample_rate = sample_rate
        self._resampler = (
            None if sample_rate == PCM_RATE else av.AudioResampler("flt", "mono", PCM_RATE)
        )

    def push(self, samples: NDArray[np.float32]) -> bytes:
        mono = samples.mean(axis=0, keepdims=True, dtype=np.float32)
        if self._resampler is None:
            return pcm16(mono)
        if not mono.shape[1]:
            return b""
        return self._resampled(audio_frame(mono, self._sample_rate))

    def finish(self) -> bytes:
        return b"" if self._resampler is None else self._resampled(None)

    def _resampled(self, frame: av.AudioFrame | None) -> bytes:
        assert self._resampler is not None
        return b"".join(pcm16(frame_samples(f, 1)) for f in self._resampler.resample(frame))


class _Pipe:
    """Where a muxer writes a stream: it cannot seek."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def write(self, data: bytes) -> int:
        self._parts.append(bytes(data))
        return len(data)

    def take(self) -> bytes:
        """What was written since the last time."""
        data = b"".join(self._parts)
        self._parts.clear()
        return data


class _Container(Encoder):
    """A format that PyAV encodes."""

    def __init__(self, codec: _Codec, sample_rate: int, num_channels: int, whole: bool) -> None:
        self._sample_rate = sample_rate
        self._sink: io.BytesIO | _Pipe = io.BytesIO() if whole else _Pipe()
        options = {"flush_packets": "1"} | ({} if whole else codec.stream_options)
        self._container = av.open(self._sink, "w", format=codec.muxer, container_options=options)
        stream: Any = self._container.add_stream(
            codec.encoder,
            rate=_encoder_rate(codec.encoder, sample_rate),
            layout="mono" if num_channels == 1 else "stereo",
        )
        if codec.bits_per_channel is not None:
            stream.bit_rate = codec.bits_per_channel * num_channels
        self._stream = stream

    def push(self, samples: NDArray[np.float32]) -> bytes:
        if samples.shape[1]:
            lossless = self._stream.codec_context.name == "flac"
            data = _quantised(samples).T if lossless else np.clip(samples, -1.0, 1.0)
            self._container.mux(self._stream.encode(audio_frame(data, self._sample_rate)))
        return self._sink.take() if isinstance(self._sink, _Pipe) else b""

    def finish(self) -> bytes:
        self._container.mux(self._stream.encode(None))
        self._container.close()
        return self._sink.take() if isinstance(self._sink, _Pipe) else self._sink.getvalue()


def _encoder_rate(encoder: str, sample_rate: int) -> int:
    """The sample rate itself where the encoder takes it, else the one it knows best."""
    rates = av.codec.Codec(encoder, "w").audio_rates
    return sample_rate if rates is None or sample_rate in rates else 48_000
