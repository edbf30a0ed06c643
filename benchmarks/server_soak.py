"""Many mixed requests to one server: some are broken off, some are wrong; its memory must not grow.

python -m benchmarks.server_soak [--requests 2000] [--clients 8] [--model sprout]

Starts `mosstalk serve` as a process of its own. Prints a JSON object; the exit status is 1 where an
answer was not the expected one, a place stayed taken, or memory grew by more than two per cent.
"""

import argparse
import http.client
import json
import random
import re
import statistics
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

WARM_REQUESTS = 200  # after which memory is read the first time
MAX_GROWTH = 1.02
TEXTS = ("Yes.", "The kettle sang.", "It rained. Then it stopped.", "Seven is a number, said he.")
LONG_TEXT = "It rained for a day, and then it stopped, and nobody knew why. " * 4
FORMATS = ("mp3", "wav", "pcm", "flac", "opus", "aac")
WRONG = (
    {"input": ""},
    {"input": "Hi.", "voice": "nobody"},
    {"input": "Hi.", "speed": 9},
    {"input": "Hi.", "response_format": "xyz"},
    {"input": "Hi.", "seed": -1},
    {"text": "Hi."},
)
TIMEOUT_SECONDS = 120


@dataclass(frozen=True)
class Outcome:
    """What became of a request."""

    kind: str
    is_expected: bool
    first_byte_ms: float | None = None


def send(port: int, body: object) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_SECONDS)
    content = json.dumps(body)
    connection.request("POST", "/v1/audio/speech", content, {"Content-Type": "application/json"})
    return connection, connection.getresponse()


def request(port: int, number: int) -> Outcome:
    """A request chosen by its number: one in ten is wrong, one in ten is broken off."""
    chance = random.Random(number)
    if number % 10 == 3:
        connection, response = send(port, chance.choice(WRONG))
        is_error = "error" in json.loads(response.read())
        connection.close()
        return Outcome("wrong", response.status == 400 and is_error)
    body = {
        "input": chance.choice(TEXTS),
        "response_format": chance.choice(FORMATS),
        "speed": chance.choice((1.0, 1.0, 1.0, 1.3)),
        "stream": chance.random() < 0.8,
        "seed": number,
    }
    if number % 10 == 7:
        connection, response = send(port, body | {"stream": True, "input": LONG_TEXT})
        response.read(chance.randint(1, 4_000))
        connection.close()
        return Outcome("broken off", response.status == 200)
    started = time.perf_counter()
    connection, response = send(port, body)
    first = response.read(1)
    first_byte_ms = 1000 * (time.perf_counter() - started)
    rest = response.read()
    connection.close()
    is_expected = response.status == 200 and len(first + rest) > 1_000
    return Outcome("spoken", is_expected, first_byte_ms if body["stream"] else None)


def figure(port: int, name: str) -> float:
    """One of /metrics."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_SECONDS)
    connection.request("GET", "/metrics")
    found = re.search(rf"^{name} (\S+)$", connection.getresponse().read().decode(), re.MULTILINE)
    connection.close()
    assert found is not None, name
    return float(found[1])


def soak(port: int, num_requests: int, num_clients: int) -> tuple[dict[str, object], bool]:
    outcomes: list[Outcome] = []
    memory: list[float] = []
    started = time.perf_counter()
    with ThreadPoolExecutor(num_clients) as pool:
        for first in range(0, num_requests, WARM_REQUESTS):
            numbers = range(first, min(first + WARM_REQUESTS, num_requests))
            outcomes += pool.map(lambda number: request(port, number), numbers)
            memory.append(figure(port, "process_resident_memory_bytes"))
            print(f"{numbers.stop}: {memory[-1] / 2**20:.1f} MiB", file=sys.stderr, flush=True)
    first_bytes = sorted(o.first_byte_ms for o in outcomes if o.first_byte_ms is not None)
    growth = memory[-1] / memory[0]
    unexpected = sum(not outcome.is_expected for outcome in outcomes)
    time.sleep(1)
    left = figure(port, "mosstalk_streams") + figure(port, "mosstalk_queued")
    report = {
        "requests": Counter(outcome.kind for outcome in outcomes),
        "unexpected": unexpected,
        "streams_left": left,
        "seconds": round(time.perf_counter() - started, 1),
        "memory_mib_after_200": round(memory[0] / 2**20, 1),
        "memory_mib_at_the_end": round(memory[-1] / 2**20, 1),
        "growth": round(growth, 4),
        "first_byte_ms_p50": round(statistics.median(first_bytes), 1),
        "first_byte_ms_p95": round(first_bytes[len(first_bytes) * 95 // 100], 1),
        "frames": figure(port, "mosstalk_frames_total"),
    }
    return report, not unexpected and not left and growth <= MAX_GROWTH


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--requests", type=int, default=2_000)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--model", default="sprout")
    args = parser.parse_args()
    command = [sys.executable, "-m", "mosstalk", "serve", "--port", "0", "--model", args.model]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        port = int(json.loads(server.stderr.readline())["address"].rpartition(":")[2])
        with ThreadPoolExecutor(1) as log:
            reading = log.submit(server.stderr.read)  # its log must not fill the pipe
            try:
                report, is_well = soak(port, args.requests, args.clients)
            finally:
                server.terminate()
            lines = [json.loads(line) for line in reading.result().splitlines()]
        report["server_errors"] = sum(line["level"] == "error" for line in lines)
    print(json.dumps(report, indent=2))
    return 0 if is_well and not report["server_errors"] else 1


if __name__ == "__main__":
    sys.exit(main())
