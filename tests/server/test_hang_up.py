"""Who hangs up frees a place at once; who comes when there is none is told when to come again."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest
from live_server import LiveServer, live, problem

from mosstalk import Speaker

# Some minutes of speech, in parts that a tiny model can hold.
LONG = {
    "input": "One of them says that it goes on and on, and the other one agrees. " * 40,
    "max_frames": 700,
    "response_format": "pcm",
}
FREE_SECONDS = 0.2


def hang_up_after(server: LiveServer, num_bytes: int, **fields: object) -> None:
    """Read so much of a long answer, then close the connection."""
    with server.http().stream("POST", "/v1/audio/speech", json={**LONG, **fields}) as response:
        assert response.status_code == 200
        count = 0
        for part in response.iter_raw():
            count += len(part)
            if count >= num_bytes:
                return


@pytest.mark.parametrize(
    "fields", [{}, {"response_format": "mp3"}, {"stream_format": "sse"}], ids=str
)
def test_a_client_that_hangs_up_frees_its_place(talker: Speaker, fields: dict[str, object]) -> None:
    with live(talker) as server:
        hang_up_after(server, 1, **fields)
        assert server.wait_until_idle(5) < FREE_SECONDS
        assert server.service.scheduler.stats().cancelled == 1


@contextmanager
def killed_at_the_end(process: subprocess.Popen[str]) -> Iterator[None]:
    """A test that fails leaves no process, and does not wait for it."""
    try:
        yield
    finally:
        process.kill()


def test_a_client_that_hangs_up_before_the_first_audio(talker: Speaker) -> None:
    """Of a request that waits in the queue, and of one that is answered whole."""
    with live(talker, max_streams=1) as server:
        body = json.dumps({**LONG, "stream": False}).encode()
        head = (
            f"POST /v1/audio/speech HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        clients = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(3)]
        for client in clients:
            client.sendall(head.encode() + body)
        server.wait_until_speaking(1)
        deadline = time.monotonic() + 5
        while server.service.scheduler.stats().queued < 2 and time.monotonic() < deadline:
            time.sleep(0.002)
        for client in reversed(clients):  # those that wait first
            client.close()
        assert server.wait_until_idle(5) < FREE_SECONDS


def test_hanging_up_leaves_the_others_as_they_are(talker: Speaker) -> None:
    with live(talker) as server:
        fields = {"max_frames": 60, "seed": 3, "response_format": "pcm"}
        alone = server.speak("Hello.", **fields).content
        noise = [threading.Thread(target=hang_up_after, args=(server, 1)) for _ in range(3)]
        for thread in noise:
            thread.start()
        among = server.speak("Hello.", **fields).content
        for thread in noise:
            thread.join()
        assert among == alone


def test_no_room_is_429_with_retry_after(talker: Speaker) -> None:
    with live(talker, max_streams=1, max_queue=0) as server:
        http = server.http()
        with http.stream("POST", "/v1/audio/speech", json=LONG):
            server.wait_until_speaking(1)
            response = server.speak("Hello.")
            error = problem(response, 429)
            assert error["code"] == "busy"
            assert int(response.headers["retry-after"]) >= 1
        server.wait_until_idle(5)
        assert server.speak("Hello.", max_frames=1).status_code == 200


def test_time_limit_breaks_a_stream_off(talker: Speaker) -> None:
    """With a status where nothing is sent yet; else the body has no end, so that it shows."""
    with live(talker, time_limit=0.3) as server:
        http, path = server.http(), "/v1/audio/speech"
        whole = http.post(path, json={**LONG, "stream": False})
        assert problem(whole, 503)["code"] == "time_limit"
        with pytest.raises(httpx2.RemoteProtocolError):
            http.post(path, json=LONG)
        response = http.post(path, json={**LONG, "stream_format": "sse"})
        events = response.text.strip().split("\n\n")
        assert json.loads(events[-1].removeprefix("data: "))["error"]["code"] == "time_limit"


def test_a_client_that_does_not_read_costs_bounded_memory(talker: Speaker) -> None:
    with live(talker) as server:
        client = socket.create_connection(("127.0.0.1", server.port))
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        body = json.dumps(LONG).encode()
        client.sendall(
            f"POST /v1/audio/speech HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode()
            + body
        )
        server.wait_until_speaking(1)
        frames = -1
        deadline = time.monotonic() + 20
        while frames != server.service.scheduler.stats().frames:  # until it waits for the reader
            assert time.monotonic() < deadline
            frames = server.service.scheduler.stats().frames
            time.sleep(0.5)
        assert server.service.scheduler.stats().streams == 1
        client.close()
        server.wait_until_idle(1)


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX systems")
def test_the_command_stops_gracefully(talker_path: Path, tmp_path: Path) -> None:
    """A stream that is under way is finished, nothing new is taken on, and the status is 0."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "mosstalk", "serve", "--model", str(talker_path)]
    command += ["--port", str(port), "--threads", "1", "--voices", str(tmp_path)]
    with (
        subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process,
        killed_at_the_end(process),
    ):
        assert process.stderr is not None
        assert json.loads(process.stderr.readline())["message"] == "listening"
        body = {"input": "Hello.", "max_frames": 300, "response_format": "pcm", "seed": 1}
        url = f"http://127.0.0.1:{port}/v1/audio/speech"
        with (
            httpx2.Client(timeout=60) as http,
            http.stream("POST", url, json=body) as response,
        ):
            parts = response.iter_raw()
            first = next(parts)
            process.send_signal(signal.SIGTERM)
            rest = b"".join(parts)
        assert len(first + rest) == pytest.approx(300 * 1_280 * 2 * 24 / 16, rel=0.01)
        lines = [json.loads(line) for line in process.stderr.read().splitlines()]
        assert process.wait(30) == 0
    assert lines[-1]["message"] == "stopped"
    assert [line["status"] for line in lines if line["message"] == "request"] == [200]
    assert "Hello" not in json.dumps(lines)
