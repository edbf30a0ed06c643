"""A server on a free port of this machine, for as long as a test needs it."""

import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import httpx2
import openai
import uvicorn

from mosstalk import Speaker
from mosstalk.scheduler import Scheduler
from mosstalk.server.run import server_config
from mosstalk.server.service import Service
from mosstalk.server.settings import ServerSettings

_START_SECONDS = 10
TIMEOUT_SECONDS = 60


@dataclass(frozen=True)
class LiveServer:
    """A server that is up."""

    port: int
    service: Service
    server: uvicorn.Server
    opened: ExitStack  # closed before the server ends

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def client(self, api_key: str = "none needed") -> openai.OpenAI:
        """OpenAI's own client, led here."""
        client = openai.OpenAI(
            base_url=f"{self.url}/v1", api_key=api_key, max_retries=0, timeout=TIMEOUT_SECONDS
        )
        return self.opened.enter_context(client)

    def http(self, **headers: str) -> httpx2.Client:
        """A client without any knowledge."""
        client = httpx2.Client(
            base_url=self.url, headers=headers, timeout=TIMEOUT_SECONDS, verify=False
        )
        return self.opened.enter_context(client)

    def speak(self, text: str, **fields: Any) -> httpx2.Response:
        """A response that is read whole."""
        return self.http().post("/v1/audio/speech", json={"input": text, **fields})

    def wait_until_idle(self, seconds: float) -> float:
        """Seconds until no text is spoken and none waits; fails after `seconds`."""
        started = time.perf_counter()
        while time.perf_counter() - started < seconds:
            stats = self.service.scheduler.stats()
            if not stats.streams and not stats.queued:
                return time.perf_counter() - started
            time.sleep(0.002)
        raise AssertionError(f"still busy after {seconds} s: {self.service.scheduler.stats()}")

    def wait_until_speaking(self, count: int) -> None:
        """Until `count` texts are spoken."""
        deadline = time.monotonic() + _START_SECONDS
        while self.service.scheduler.stats().streams < count:
            assert time.monotonic() < deadline, self.service.scheduler.stats()
            time.sleep(0.002)


@contextmanager
def live(
    speaker: Speaker,
    *,
    model: str = "tiny",
    api_key: str | None = None,
    origins: tuple[str, ...] = (),
    max_streams: int = 4,
    max_queue: int = 32,
    time_limit: float | None = None,
) -> Iterator[LiveServer]:
    """Serve until the block is left; open streams are cancelled then."""
    scheduler = Scheduler(speaker, max_streams, max_queue, time_limit)
    service = Service(speaker, scheduler, model)
    settings = ServerSettings(port=0, api_key=api_key, origins=origins)
    config = server_config(service, settings)
    config.timeout_graceful_shutdown = 1
    server = uvicorn.Server(config)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            deadline = time.monotonic() + _START_SECONDS
            while not server.started:
                assert thread.is_alive() and time.monotonic() < deadline
                time.sleep(0.01)
            with ExitStack() as opened:
                yield LiveServer(listener.getsockname()[1], service, server, opened)
        finally:
            server.should_exit = True
            thread.join(TIMEOUT_SECONDS)
            assert not thread.is_alive()


def problem(response: httpx2.Response, status: int) -> dict[str, Any]:
    """The error object of a response, whose form is checked."""
    assert response.status_code == status, response.text
    body = json.loads(response.text)
    assert set(body) == {"error"}
    error: dict[str, Any] = body["error"]
    assert set(error) == {"message", "type", "code", "param"}
    assert error["message"] and error["type"] and error["code"]
    return error
