"""OpenAI's own Python client, unmodified, against a server of the built-in model."""

import base64
import io
import json

import av
import numpy as np
import openai
import pytest
import soundfile
from live_server import LiveServer, live
from numpy.typing import NDArray

from mosstalk import Speaker
from mosstalk.audio.resample import resample
from mosstalk.server.encoding import FORMATS, FormatName, content_type

TEXT = "The kettle sang in the morning."


def decoded(content: bytes, name: str) -> tuple[NDArray[np.float64], int]:
    """Samples of the first channel, and their rate."""
    if name == "pcm":
        return np.frombuffer(content, "<i2") / 32768, 24_000
    with av.open(io.BytesIO(content)) as container:
        frames = [frame.to_ndarray() for frame in container.decode(audio=0)]
        rate = container.streams.audio[0].rate
    samples = np.concatenate([frame[0] for frame in frames]).astype(np.float64)
    return (samples / 32768 if frames[0].dtype == np.int16 else samples), rate


def likeness(heard: NDArray[np.float64], true: NDArray[np.float64]) -> float:
    """Correlation of two recordings of one rate, at the delay where it is largest."""
    size = len(heard) + len(true)
    product = np.fft.irfft(np.fft.rfft(heard, size) * np.conj(np.fft.rfft(true, size)))
    return float(product.max() / np.sqrt((heard**2).sum() * (true**2).sum()))


@pytest.fixture(scope="module")
def spoken(built_in: LiveServer) -> NDArray[np.float64]:
    """What `TEXT` sounds like, exactly."""
    speech = built_in.service.speaker.say(TEXT, seed=7)
    return speech.samples[0].astype(np.float64)


@pytest.mark.parametrize("name", FORMATS)
def test_openai_client_gets_every_format(
    built_in: LiveServer, spoken: NDArray[np.float64], name: FormatName
) -> None:
    response = built_in.client().audio.speech.create(
        model="tts-1", voice="alloy", input=TEXT, response_format=name, extra_body={"seed": 7}
    )
    assert response.response.headers["content-type"] == content_type(name)
    assert response.response.headers["x-seed"] == "7"
    samples, rate = decoded(response.content, name)
    true_seconds = len(spoken) / built_in.service.speaker.sample_rate
    # mp3 and aac begin and end with a frame or two of padding.
    assert true_seconds - 1e-9 <= len(samples) / rate <= true_seconds + 0.15
    own_rate = built_in.service.speaker.sample_rate
    true = resample(spoken[None].astype(np.float32), own_rate, rate)[0].astype(np.float64)
    assert likeness(samples, true) > 0.95
    if name in ("wav", "flac"):
        sent = np.rint(samples * 32768).astype(np.int16)
        assert np.array_equal(sent, np.rint(spoken.astype(np.float32) * np.float32(32767)))


@pytest.mark.parametrize("name", ["mp3", "flac", "wav", "opus"])
def test_soundfile_reads_whole_responses(
    built_in: LiveServer, spoken: NDArray[np.float64], name: FormatName
) -> None:
    response = built_in.speak(TEXT, response_format=name, stream=False, seed=7)
    samples, rate = soundfile.read(io.BytesIO(response.content))
    own_rate = built_in.service.speaker.sample_rate
    assert len(samples) / rate == pytest.approx(len(spoken) / own_rate, abs=0.01)


def test_openai_client_default_is_mp3(built_in: LiveServer) -> None:
    response = built_in.client().audio.speech.create(model="tts-1", voice="nova", input=TEXT)
    assert response.response.headers["content-type"] == "audio/mpeg"
    with av.open(io.BytesIO(response.content)) as container:
        assert container.format.name == "mp3"


@pytest.mark.parametrize("name", FORMATS)
def test_openai_client_streams(built_in: LiveServer, name: FormatName) -> None:
    """The parts of a stream are the same file, and come one by one."""
    request = {"model": "sprout", "voice": "alloy", "input": TEXT, "response_format": name}
    client = built_in.client()
    with client.audio.speech.with_streaming_response.create(
        **request,
        extra_body={"seed": 7},  # type: ignore[arg-type]
    ) as response:
        parts = list(response.iter_bytes())
    assert len(parts) > 3
    whole = client.audio.speech.create(**request, extra_body={"seed": 7})  # type: ignore[arg-type]
    if name != "opus":  # an Ogg stream has a serial number of its own
        assert b"".join(parts) == whole.content
    assert len(decoded(b"".join(parts), name)[0]) == len(decoded(whole.content, name)[0])


def test_openai_client_events(built_in: LiveServer) -> None:
    request = {"model": "sprout", "voice": "alloy", "input": TEXT, "response_format": "wav"}
    client = built_in.client()
    with client.audio.speech.with_streaming_response.create(
        **request,
        stream_format="sse",
        extra_body={"seed": 7},  # type: ignore[arg-type]
    ) as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        lines = [line for line in response.iter_lines() if line]
    events = [json.loads(line.removeprefix("data: ")) for line in lines]
    audio = b"".join(base64.b64decode(event["audio"]) for event in events[:-1])
    assert {event["type"] for event in events[:-1]} == {"speech.audio.delta"}
    whole = client.audio.speech.create(**request, extra_body={"seed": 7})  # type: ignore[arg-type]
    assert audio == whole.content
    done = events[-1]
    assert done["type"] == "speech.audio.done"
    assert done["usage"]["total_tokens"] == (
        done["usage"]["input_tokens"] + done["usage"]["output_tokens"]
    )
    assert done["usage"]["output_tokens"] == done["frames"] > 0
    assert (done["seed"], done["stop_reason"]) == (7, "end")


def test_openai_client_is_told_all_of_a_whole_response(built_in: LiveServer) -> None:
    response = built_in.client().audio.speech.create(
        model="sprout",
        voice="alloy",
        input=TEXT,
        response_format="wav",
        extra_body={"stream": False, "seed": 7},
    )
    headers = response.response.headers
    samples, rate = soundfile.read(io.BytesIO(response.content))
    assert headers["x-stop-reason"] == "end"
    assert float(headers["x-audio-seconds"]) == pytest.approx(len(samples) / rate, abs=1e-3)
    assert int(headers["x-frames"]) > 0
    assert float(headers["x-real-time-factor"]) > 0
    assert int(headers["content-length"]) == len(response.content)


@pytest.mark.parametrize("speed", [0.25, 0.5, 1.5, 2.0, 4.0])
def test_openai_client_speed(
    built_in: LiveServer, spoken: NDArray[np.float64], speed: float
) -> None:
    response = built_in.client().audio.speech.create(
        model="sprout",
        voice="alloy",
        input=TEXT,
        response_format="wav",
        speed=speed,
        extra_body={"seed": 7},
    )
    samples, rate = decoded(response.content, "wav")
    assert len(samples) == pytest.approx(len(spoken) / speed, rel=0.03, abs=0.06 * rate)


def test_openai_client_models(built_in: LiveServer) -> None:
    client = built_in.client()
    assert [model.id for model in client.models.list()] == ["sprout"]
    assert client.models.retrieve("sprout").id == "sprout"
    with pytest.raises(openai.NotFoundError) as caught:
        client.models.retrieve("whisper")
    assert caught.value.code == "model_not_found"


def test_openai_client_wrong_key(talker: Speaker) -> None:
    with live(talker, api_key="a long secret") as server:
        request = {"model": "tiny", "voice": "alloy", "input": "Hi.", "response_format": "wav"}
        extra = {"max_frames": 2}
        with pytest.raises(openai.AuthenticationError) as caught:
            server.client("a wrong one").audio.speech.create(**request, extra_body=extra)  # type: ignore[arg-type]
        assert caught.value.code == "invalid_api_key"
        client = server.client("a long secret")
        assert client.audio.speech.create(**request, extra_body=extra).content[:4] == b"RIFF"  # type: ignore[arg-type]


def test_openai_client_wrong_voice(built_in: LiveServer) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        built_in.client().audio.speech.create(model="tts-1", voice="nobody", input=TEXT)
    assert caught.value.code == "unknown_voice"
    assert caught.value.param == "voice"
    assert "default" in str(caught.value)
