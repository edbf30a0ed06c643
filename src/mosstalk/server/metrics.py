"""What a server counts, as Prometheus reads it."""

from collections.abc import Iterator

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Histogram,
    ProcessCollector,
    generate_latest,
)
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from mosstalk.scheduler import Scheduler
from mosstalk.types import Summary

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_SECONDS = (0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.8, 1.2, 2.0, 5.0, 10.0, 30.0)
_FACTORS = (0.05, 0.1, 0.2, 0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 5.0)


class Metrics:
    """The figures of one server."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._registry = registry = CollectorRegistry()
        ProcessCollector(registry=registry)  # memory, processor time, open files
        registry.register(_SchedulerFigures(scheduler))
        self._requests = Counter(
            "mosstalk_requests",
            "Requests, by path of the API and status.",
            ["method", "path", "status"],
            registry=registry,
        )
        self._errors = Counter(
            "mosstalk_errors",
            "Errors that clients were told, by code.",
            ["code"],
            registry=registry,
        )
        self._stops = Counter(
            "mosstalk_speech",
            "Texts spoken, by reason to stop.",
            ["stop_reason"],
            registry=registry,
        )
        self._first_audio = Histogram(
            "mosstalk_first_audio_seconds",
            "From a text's arrival to its first audio.",
            buckets=_SECONDS,
            registry=registry,
        )
        self._real_time_factor = Histogram(
            "mosstalk_real_time_factor",
            "Seconds of work for a second of audio.",
            buckets=_FACTORS,
            registry=registry,
        )

    def count_request(self, method: str, path: str, status: int, code: str | None) -> None:
        """A request that has ended; `code` of its error."""
        self._requests.labels(method, path, str(status)).inc()
        if code is not None:
            self._errors.labels(code).inc()

    def count_speech(self, summary: Summary) -> None:
        """A text that has been spoken, or broken off."""
        self._stops.labels(summary.stop_reason).inc()
        if summary.frames:
            self._first_audio.observe(summary.ttfa_ms / 1000)
            self._real_time_factor.observe(summary.rtf)

    def text(self) -> bytes:
        """All figures in Prometheus' text format."""
        return generate_latest(self._registry)


class _SchedulerFigures(Collector):
    """A scheduler's own counts, read when they are asked for."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler

    def collect(self) -> Iterator[Metric]:
        stats = self._scheduler.stats()
        yield GaugeMetricFamily("mosstalk_streams", "Texts being spoken.", stats.streams)
        yield GaugeMetricFamily("mosstalk_queued", "Texts that wait.", stats.queued)
        yield CounterMetricFamily("mosstalk_refused", "Texts refused as busy.", stats.refused)
        yield CounterMetricFamily("mosstalk_frames", "Frames made.", stats.frames)
        yield CounterMetricFamily("mosstalk_rounds", "Passes that made frames.", stats.rounds)
        yield CounterMetricFamily("mosstalk_audio_seconds", "Audio made.", stats.audio_seconds)
        yield CounterMetricFamily("mosstalk_work_seconds", "Time computed.", stats.work_seconds)
