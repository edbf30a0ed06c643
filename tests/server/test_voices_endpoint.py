"""/v1/audio/voices: upload, list, use, delete; and what is no recording, or asks too much."""

import base64
import io
from pathlib import Path

import httpx2
import numpy as np
import pytest
import soundfile
from live_server import LiveServer, live, problem
from tiny_model import SAMPLE_RATE

from mosstalk import Speaker
from mosstalk.server.voices import MAX_UPLOAD_BYTES

PATH = "/v1/audio/voices"


def upload(http: httpx2.Client, content: bytes, **fields: str) -> httpx2.Response:
    return http.post(PATH, data=fields, files={"file": ("clip.wav", content)})


def names(http: httpx2.Client) -> list[str]:
    voices = http.get(PATH).json()["voices"]
    assert all(set(voice) >= {"id", "name"} for voice in voices)
    return [voice["id"] for voice in voices]


def wav(samples: np.ndarray[tuple[int], np.dtype[np.float32]], rate: int = SAMPLE_RATE) -> bytes:
    content = io.BytesIO()
    soundfile.write(content, samples, rate, "FLOAT", format="WAV")
    return content.getvalue()


def test_a_voice_is_uploaded_used_and_deleted(cloner: Speaker, recording: bytes) -> None:
    with live(cloner) as server:
        http = server.http()
        assert names(http) == []
        speech = {"max_frames": 3, "seed": 1, "response_format": "pcm"}
        error = problem(server.speak("Hi.", **speech), 400)
        assert error["param"] == "voice" and PATH in error["message"]
        made = upload(http, recording, name="ada", transcript="Words.")
        assert made.status_code == 201, made.text
        assert made.json()["id"] == "ada" and made.json()["frames"] > 0
        assert names(http) == ["default", "ada"]
        assert http.get(PATH).json()["voices"][1]["transcript"] == "Words."
        spoken = server.speak("Hi.", voice="ada", **speech).content
        assert spoken == server.speak("Hi.", voice="alloy", **speech).content  # the default
        assert spoken == server.speak("Hi.", **speech).content
        assert spoken != server.speak("Hi.", voice="none", **speech).content
        direct = cloner.make_voice("ada", recording, "Words.")[0]
        assert np.array_equal(cloner.voices.load("ada").codes, direct.codes)
        assert problem(upload(http, recording, name="ada"), 409)["param"] == "name"
        assert upload(http, recording, name="ada", replace="true").status_code == 201
        assert http.delete(f"{PATH}/ada").json() == {"id": "ada", "deleted": True}
        assert names(http) == []
        assert problem(http.delete(f"{PATH}/ada"), 404)["code"] == "unknown_voice"


def test_a_voice_called_default_is_the_default(cloner: Speaker, recording: bytes) -> None:
    with live(cloner) as server:
        http = server.http()
        upload(http, recording, name="ada")
        upload(http, recording[: len(recording) // 2 // 8 * 8], name="default")
        upload(
            http,
            wav(np.sin(np.arange(16_000, dtype=np.float32) / 7)),
            name="default",
            replace="true",
        )
        assert names(http) == ["ada", "default"]
        speech = {"max_frames": 3, "seed": 1, "response_format": "pcm"}
        chosen = server.speak("Hi.", voice="echo", **speech).content
        assert chosen == server.speak("Hi.", voice="default", **speech).content
        assert chosen != server.speak("Hi.", voice="ada", **speech).content


@pytest.mark.parametrize("name", ["../x", "a/b", "", "none", "x" * 80, "a b", ".hidden", "C:\\x"])
def test_names_that_are_no_names(
    cloner: Speaker, recording: bytes, name: str, tmp_path: Path
) -> None:
    with live(cloner) as server:
        problem(upload(server.http(), recording, name=name), 400)
        problem(server.http().delete(f"{PATH}/..%2f..%2fx"), 404)
    assert not list(tmp_path.rglob("*.safetensors"))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "empty"),
        (b"These are words in a file that is called a recording.", "not audio"),
        (b"RIFF\xff\xff\xff\xffWAVE", "not audio"),
        (wav(np.zeros(16_000, np.float32)), "silent"),
        (wav(np.full(16_000, np.nan, np.float32)), "not numbers"),
        (wav(np.ones(40, np.float32)), "at least"),
        (wav(np.ones(130 * 1_000, np.float32), 1_000), "130 s"),
    ],
    ids=["empty", "text", "header", "silence", "nan", "short", "long"],
)
def test_what_is_no_voice_is_refused(cloner: Speaker, content: bytes, words: str) -> None:
    with live(cloner) as server:
        error = problem(upload(server.http(), content, name="ada"), 400)
        assert words in error["message"]
        assert names(server.http()) == []


def test_a_long_recording_is_refused_before_it_is_decoded(cloner: Speaker) -> None:
    """Silence of hours is some kilobytes of FLAC."""
    content = io.BytesIO()
    with soundfile.SoundFile(content, "w", 8_000, 1, "PCM_16", format="FLAC") as file:
        for _ in range(60):
            file.write(np.zeros(8_000 * 60, np.int16))
    assert len(content.getvalue()) < 500_000
    with live(cloner) as server:
        error = problem(upload(server.http(), content.getvalue(), name="ada"), 400)
        assert error["code"] == "recording_too_long"


def test_a_large_file_is_refused(cloner: Speaker) -> None:
    with live(cloner) as server:
        content = bytes(MAX_UPLOAD_BYTES + 1)
        problem(upload(server.http(), content, name="ada"), 413)
        problem(upload(server.http(), bytes(2 * MAX_UPLOAD_BYTES), name="ada"), 413)


def test_forms_that_are_wrong(cloner: Speaker, recording: bytes) -> None:
    with live(cloner) as server:
        http = server.http()
        problem(http.post(PATH, json={"name": "ada"}), 415)
        problem(http.post(PATH, data={"name": "ada"}), 415)
        kind = {"content-type": "multipart/form-data"}
        problem(http.post(PATH, content=b"x", headers=kind), 400)
        kind = {"content-type": "multipart/form-data; boundary=b"}
        problem(http.post(PATH, content=b"\xff\r\n--b", headers=kind), 400)
        problem(http.post(PATH, files={"file": ("x.wav", recording)}), 400)
        problem(upload(http, recording, name="ada", path="/etc/passwd"), 400)
        problem(upload(http, recording, name="ada", replace="maybe"), 400)
        problem(upload(http, recording, name="ada", origin="{}", transcript="Words."), 400)
        many = [("file", ("x.wav", recording)), ("file", ("y.wav", recording))]
        problem(http.post(PATH, data={"name": "ada"}, files=many), 400)
        assert names(http) == []


def test_voices_are_designed_here_and_kept_there(designer: Speaker, cloner: Speaker) -> None:
    asked = {"description": "A calm voice.", "text": "Good day.", "count": 2, "seed": 4}
    with live(designer) as server:
        http = server.http()
        made = http.post(f"{PATH}/design", json=asked)
        assert made.status_code == 200, made.text
        candidates = made.json()["candidates"]
        assert [candidate["seed"] for candidate in candidates] == [4, 5]
        again = http.post(f"{PATH}/design", json=asked | {"count": 1}).json()["candidates"]
        assert again == candidates[:1]
        assert names(http) == ["default"]
        problem(http.post(PATH, data={"name": "ada"}, files={"file": b"x"}), 400)
        assert problem(server.speak("Hi.", voice="ada"), 400)["param"] == "voice"
        described = server.speak("Good day.", instructions="A calm voice.", seed=4)
        assert described.status_code == 200
    first = candidates[0]
    recorded = base64.b64decode(first["audio"])
    samples, rate = soundfile.read(io.BytesIO(recorded))
    assert rate == designer.sample_rate and len(samples) / rate == pytest.approx(first["seconds"])
    import json

    with live(cloner) as server:
        fields = {
            "name": "calm",
            "transcript": first["text"],
            "origin": json.dumps(first["origin"]),
        }
        assert upload(server.http(), recorded, **fields).status_code == 201
        listed = server.http().get(PATH).json()["voices"][1]
        assert listed["origin"] == first["origin"]
        problem(server.http().post(f"{PATH}/design", json=asked), 400)


def test_a_damaged_voice_hides_no_other(shared: LiveServer) -> None:
    folder = shared.service.speaker.voices.folder
    folder.mkdir(parents=True, exist_ok=True)
    damaged = folder / "broken.voice.safetensors"
    damaged.write_bytes(b"damaged")
    try:
        assert names(shared.http()) == ["default"]
        problem(shared.speak("Hi.", voice="broken"), 400)
    finally:
        damaged.unlink()
