"""/metrics, /health, logs, and the page's files."""

import json
import logging
import threading
from pathlib import Path

import httpx2
import pytest
from live_server import LiveServer, live
from prometheus_client.parser import text_string_to_metric_families
from starlette.testclient import TestClient

from mosstalk import Speaker
from mosstalk.scheduler import Scheduler
from mosstalk.server.app import build_app
from mosstalk.server.log import LOGGER, JsonLines
from mosstalk.server.service import Service
from mosstalk.server.settings import ServerSettings


def figures(http: httpx2.Client) -> dict[str, float]:
    found = {}
    for family in text_string_to_metric_families(http.get("/metrics").text):
        for sample in family.samples:
            labels = ",".join(f"{k}={v}" for k, v in sorted(sample.labels.items()))
            found[f"{sample.name}{{{labels}}}" if labels else sample.name] = sample.value
    return found


def test_metrics_count_what_happened(talker: Speaker) -> None:
    with live(talker) as server:
        http = server.http()
        server.speak("Hi.", max_frames=5)
        server.speak("Hi.", max_frames=5)
        server.speak("Hi.", voice="nobody")
        http.get("/v1/some/words/that/somebody/typed")
        found = figures(http)
    assert found["mosstalk_frames_total"] == 10
    assert found["mosstalk_streams"] == found["mosstalk_queued"] == 0
    assert found["mosstalk_audio_seconds_total"] == pytest.approx(10 * 0.08)
    assert found["mosstalk_speech_total{stop_reason=max_frames}"] == 2
    assert found["mosstalk_first_audio_seconds_count"] == 2
    assert found["mosstalk_real_time_factor_count"] == 2
    assert found["mosstalk_errors_total{code=unknown_voice}"] == 1
    labels = "method=POST,path=/v1/audio/speech,status=200"
    assert found[f"mosstalk_requests_total{{{labels}}}"] == 2
    assert not [name for name in found if "typed" in name]
    assert found["process_resident_memory_bytes"] > 1e6


def test_health_tries_to_speak(talker: Speaker) -> None:
    with live(talker) as server:
        made = server.service.scheduler.stats().frames
        answer = server.http().get("/health")
        assert answer.json() == {"status": "ok", "streams": 0, "queued": 0}
        assert server.service.scheduler.stats().frames == made + 1
        server.http().get("/health")  # kept for some seconds
        assert server.service.scheduler.stats().frames == made + 1


def test_health_is_bad_when_the_scheduler_is_gone(talker: Speaker) -> None:
    with live(talker) as server:
        server.service.scheduler.close(finish=False)
        from mosstalk.server import health

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(health, "_LIMIT_SECONDS", 0.2)
            assert server.http().get("/health").status_code == 503


def test_health_is_good_while_there_is_no_room(talker: Speaker) -> None:
    with live(talker, max_streams=1, max_queue=0) as server:
        long = {"input": "One of them goes on and on. " * 40, "max_frames": 700}
        with server.http().stream("POST", "/v1/audio/speech", json=long):
            server.wait_until_speaking(1)
            assert server.http().get("/health").status_code == 200


def test_logs_are_json_without_a_word_of_the_text(
    talker: Speaker, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, LOGGER.name), live(talker) as server:
        server.speak("Secret words.", max_frames=2, seed=3)
        server.speak("Secret words.", voice="Secret")
        server.http().get("/v1/Secret?Secret=1", headers={"X-Request-Id": "id-1"})
    lines = [JsonLines().format(record) for record in caplog.records if record.name == LOGGER.name]
    entries = [json.loads(line) for line in lines]
    assert len(entries) == 3
    assert entries[0]["status"] == 200 and entries[0]["frames"] == 2
    assert entries[0]["stop_reason"] == "max_frames" and entries[0]["characters"] == 13
    assert entries[1]["status"] == 400 and entries[1]["code"] == "unknown_voice"
    assert entries[2]["request_id"] == "id-1"
    assert "Secret" not in "".join(lines)


def test_unexpected_errors_are_logged_and_not_told(
    talker: Speaker, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("an inner secret")

    with caplog.at_level(logging.INFO, LOGGER.name), live(talker) as server:
        server.service.catalogue.choose = fail  # type: ignore[method-assign,assignment]
        answer = server.speak("Hi.")
        assert answer.status_code == 500
        assert answer.json()["error"]["code"] == "internal_error"
        assert "secret" not in answer.text
        assert len(answer.headers.get_list("x-request-id")) == 1
    assert "an inner secret" in caplog.text
    assert [r for r in caplog.records if getattr(r, "fields", {}).get("status") == 500]


@pytest.fixture
def page(tmp_path: Path) -> Path:
    folder = tmp_path / "page"
    folder.mkdir()
    (folder / "index.html").write_text("<!doctype html><title>page</title>")
    (folder / "page.js").write_text("1")
    (tmp_path / "outside.txt").write_text("outside")
    return folder


def test_page_is_served_with_a_strict_policy(talker: Speaker, page: Path) -> None:
    service = Service(talker, Scheduler(talker), "tiny")
    with TestClient(
        build_app(service, ServerSettings(), page), base_url="http://127.0.0.1"
    ) as client:
        answer = client.get("/")
        assert answer.status_code == 200 and "<title>page</title>" in answer.text
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy and "http" not in policy and "unsafe" not in policy
        assert client.get("/page.js").headers["content-type"].startswith("text/javascript")
        for path in ("/../outside.txt", "/%2e%2e/outside.txt", "/..%2foutside.txt", "/nothing"):
            assert client.get(path).json()["error"]["code"] == "not_found"
        assert client.post("/nothing").status_code == 404
        assert client.get("/v1/audio/speech").status_code == 405
    assert threading.active_count() < 50


def test_without_a_page_there_is_none(talker: Speaker, tmp_path: Path) -> None:
    service = Service(talker, Scheduler(talker), "tiny")
    app = build_app(service, ServerSettings(), tmp_path)
    with TestClient(app, base_url="http://127.0.0.1") as client:
        assert client.get("/").status_code == 404
        assert client.get("/v1/models").status_code == 200


def test_openapi_names_all_endpoints(shared: LiveServer) -> None:
    document = shared.http().get("/openapi.json").json()
    assert document["openapi"] == "3.1.0"
    assert set(document["paths"]) == {
        "/v1/audio/speech",
        "/v1/audio/voices",
        "/v1/audio/voices/design",
        "/v1/audio/voices/{voice}",
        "/v1/models",
        "/v1/models/{model}",
        "/health",
    }
