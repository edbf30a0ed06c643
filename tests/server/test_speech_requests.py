"""POST /v1/audio/speech: the same audio as without a server, and refusals in one shape."""

import json
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import httpx2
import numpy as np
import pytest
from live_server import LiveServer, live, problem

import mosstalk
from mosstalk import Speaker
from mosstalk.server.encoding import PCM_RATE, SpokenEncoder
from mosstalk.server.guard import MAX_JSON_BYTES
from mosstalk.server.requests import MAX_INPUT_CHARACTERS

JSON = {"content-type": "application/json"}
SHORT = {"max_frames": 3, "seed": 1, "response_format": "pcm"}


def pcm(speaker: Speaker, text: str, **options: int) -> bytes:
    """What the format `pcm` holds of a text spoken without a server."""
    speech = speaker.say(text, "none", **options)  # type: ignore[arg-type]
    encoder = SpokenEncoder("pcm", speech.sample_rate, speaker.num_channels, speed=1, whole=True)
    return encoder.push(speech.samples) + encoder.finish()


def test_pcm_is_what_the_speaker_says(shared: LiveServer) -> None:
    response = shared.speak("Hello.", **SHORT)
    assert response.content == pcm(shared.service.speaker, "Hello.", max_frames=3, seed=1)
    seconds = 3 * 1_280 / shared.service.speaker.sample_rate
    assert len(response.content) / 2 / PCM_RATE == pytest.approx(seconds, abs=1e-3)


def test_parallel_requests_are_equal_to_serial_ones(built_in: LiveServer) -> None:
    path, http = "/v1/audio/speech", built_in.http()
    texts = [f"Number {index} is on its way, said the kettle." for index in range(12)]

    def speak(index: int) -> bytes:
        fields = {"input": texts[index], "seed": index, "response_format": "pcm"}
        response = http.post(path, json=fields)
        assert response.status_code == 200
        return response.content

    serial = [speak(index) for index in range(len(texts))]
    with ThreadPoolExecutor(12) as pool:
        parallel = list(pool.map(speak, range(len(texts))))
    assert parallel == serial
    assert len(set(serial)) == len(texts)


def test_same_seed_same_audio_another_seed_another(shared: LiveServer) -> None:
    one, same, other = (
        shared.speak("Hi.", max_frames=3, seed=seed, response_format="wav").content
        for seed in (5, 5, 6)
    )
    assert one == same != other


def test_a_seed_that_was_drawn_can_be_given_again(shared: LiveServer) -> None:
    first = shared.speak("Hi.", max_frames=3, response_format="wav")
    again = shared.speak(
        "Hi.", max_frames=3, response_format="wav", seed=int(first.headers["x-seed"])
    )
    assert again.content == first.content


def test_cap_is_told(shared: LiveServer) -> None:
    response = shared.speak("Hi.", max_frames=2, stream=False)
    assert response.headers["x-stop-reason"] == "max_frames"
    assert response.headers["x-frames"] == "2"


def test_no_audio_is_an_error_of_its_own(mute_path: object) -> None:
    with live(mosstalk.load(str(mute_path), threads=1)) as server:
        for fields in ({}, {"stream": False}, {"stream_format": "sse"}):
            assert problem(server.speak("Hi.", **fields), 422)["code"] == "no_audio"


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"input": ""}, "input"),
        ({"input": None}, "input"),
        ({"input": 3}, "input"),
        ({"input": ["Hi."]}, "input"),
        ({"input": "x" * (MAX_INPUT_CHARACTERS + 1)}, "input"),
        ({"input": "   \n"}, None),
        ({"voice": "nobody"}, "voice"),
        ({"voice": "../../etc/passwd"}, "voice"),
        ({"voice": "http://169.254.169.254/latest"}, "voice"),
        ({"voice": "{{7*7}}"}, "voice"),
        ({"voice": {"id": "nobody"}}, "voice"),
        ({"response_format": "xyz"}, "response_format"),
        ({"response_format": "MP3"}, "response_format"),
        ({"speed": 0}, "speed"),
        ({"speed": 5}, "speed"),
        ({"speed": "fast"}, "speed"),
        ({"seed": -1}, "seed"),
        ({"seed": 2**63}, "seed"),
        ({"seed": 1.5}, "seed"),
        ({"seed": True}, "seed"),
        ({"temperature": -1}, None),
        ({"top_p": 7}, None),
        ({"top_k": -1}, "top_k"),
        ({"max_frames": 0}, "max_frames"),
        ({"max_frames": 10**9}, "max_frames"),
        ({"stream": "yes"}, "stream"),
        ({"stream": False, "stream_format": "sse"}, None),
        ({"stream": False, "input": "x" * 10_001}, "input"),
        ({"stream_format": "ndjson"}, "stream_format"),
        ({"instructions": "Speak softly."}, None),
        ({"language": "klingon"}, None),
        ({"reference": "/etc/passwd"}, "reference"),
        ({"model": ""}, "model"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_bad_values_are_named(
    shared: LiveServer, fields: dict[str, object], param: str | None
) -> None:
    response = shared.http().post(
        "/v1/audio/speech", json={"input": "Hi.", "max_frames": 2, **fields}
    )
    error = problem(response, 400)
    assert param is None or error["param"] == param or str(error["param"]).startswith(param)
    assert "Traceback" not in response.text


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999"])
@pytest.mark.parametrize("field", ["speed", "temperature", "top_p"])
def test_values_that_are_not_numbers(shared: LiveServer, field: str, number: str) -> None:
    body = f'{{"input": "Hi.", "{field}": {number}}}'
    problem(shared.http().post("/v1/audio/speech", content=body, headers=JSON), 400)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"null",
        b"[]",
        b'"Hi."',
        b"\xff\xfe",
        b'{"input": "\\ud800"}',
        b'{"input": "Hi.", "input": 3}',
        b"[" * 100_000,
        b'{"input": "Hi."} and more',
    ],
    ids=range(10),
)
def test_broken_json(shared: LiveServer, body: bytes) -> None:
    problem(shared.http().post("/v1/audio/speech", content=body, headers=JSON), 400)


def test_other_content_types_are_refused(shared: LiveServer) -> None:
    """A web page can send a form or plain text anywhere without asking, but not JSON."""
    http = shared.http()
    body = json.dumps({"input": "Hi."})
    for kind in ("text/plain", "application/x-www-form-urlencoded"):
        response = http.post("/v1/audio/speech", content=body, headers={"content-type": kind})
        assert problem(response, 415)["code"] == "wrong_content_type"


def test_giant_bodies_are_refused(shared: LiveServer) -> None:
    """Whether their size is told before or not."""
    body = b'{"input": "' + b"x" * MAX_JSON_BYTES + b'"}'
    http = shared.http()
    error = problem(http.post("/v1/audio/speech", content=body, headers=JSON), 413)
    assert error["code"] == "too_large"
    parts = (body[start : start + 2**16] for start in range(0, len(body), 2**16))
    with suppress(httpx2.TransportError):  # when the server hangs up before all is sent
        problem(http.post("/v1/audio/speech", content=parts, headers=JSON), 413)
    assert shared.speak("Hi.", max_frames=1).status_code == 200


def test_unknown_model_is_named_and_openai_names_are_taken(shared: LiveServer) -> None:
    assert problem(shared.speak("Hi.", model="whisper"), 404)["param"] == "model"
    for name in ("tiny", "tts-1", "tts-1-hd", "gpt-4o-mini-tts"):
        assert shared.speak("Hi.", model=name, max_frames=1).status_code == 200


def test_unknown_paths_and_methods(shared: LiveServer) -> None:
    http = shared.http()
    assert problem(http.get("/v1/audio/speech"), 405)["code"] == "method_not_allowed"
    assert problem(http.get("/v1/nothing"), 404)["code"] == "not_found"
    assert problem(http.get("/../../etc/passwd"), 404)["code"] == "not_found"


@pytest.mark.parametrize(
    "text", ["α  π β", "你好", "😊", "！！！", "...", "10", "[S1]嗯。", "\u0000a", "<break/>"]
)
def test_odd_texts_are_spoken_or_refused(shared: LiveServer, text: str) -> None:
    assert shared.speak(text, max_frames=2).status_code in (200, 400)


def test_whole_and_streamed_audio_are_the_same(shared: LiveServer) -> None:
    streamed = shared.speak("Hi.", max_frames=9, seed=2, response_format="wav").content
    whole = shared.speak("Hi.", max_frames=9, seed=2, response_format="wav", stream=False).content
    assert streamed[44:] == whole[44:]
    assert streamed[40:44] == b"\xff" * 4
    assert int.from_bytes(whole[40:44], "little") == len(whole) - 44
    assert np.frombuffer(whole[44:], "<i2").any()
