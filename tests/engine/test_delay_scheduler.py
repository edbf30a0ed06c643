"""Models of the delay family in a batch: each run gets what it gets alone, retries included."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tiny_delay import write_tiny_delay

import mosstalk
from mosstalk import CheckpointError, Scheduler, Speaker
from mosstalk.models.moss_tts_delay.backbone import Backbone
from mosstalk.scheduled_stream import ScheduledStream

TEXT = "Hello there."


@pytest.fixture(scope="module")
def designer(tmp_path_factory: pytest.TempPathFactory) -> Speaker:
    return mosstalk.load(write_tiny_delay(tmp_path_factory.mktemp("voicegen")), threads=1)


def options_of(seed: int) -> dict[str, Any]:
    options: dict[str, Any] = {"seed": seed, "max_frames": 5 + 7 * (seed % 4)}
    if seed % 3 == 0:
        options["instruction"] = "a warm, low, unhurried woman"
    if seed % 5 == 1:
        options["temperature"] = 0.7
    return options


def samples_of(stream: ScheduledStream) -> NDArray[np.float32]:
    return np.concatenate([np.zeros((1, 0), np.float32), *(c.samples for c in stream)], axis=1)


def test_runs_with_retries_get_what_each_gets_alone(designer: Speaker) -> None:
    expected = [designer.say(TEXT, **options_of(seed)) for seed in range(20)]
    assert {speech.summary.retries for speech in expected} >= {0, 1, 2}
    rounds = {}
    for max_streams in (1, 3, 8):
        with Scheduler(designer, max_streams) as scheduler:
            streams = [scheduler.submit(TEXT, **options_of(seed)) for seed in range(20)]
            found = [samples_of(stream) for stream in streams]
            rounds[max_streams] = scheduler.stats().rounds
        for samples, stream, speech in zip(found, streams, expected, strict=True):
            np.testing.assert_array_equal(samples, speech.samples)
            for name in ("frames", "retries", "stop_reason", "warnings"):
                assert getattr(stream.summary, name) == getattr(speech.summary, name)
    assert rounds[8] < rounds[1] / 2  # a round makes a row of each


def test_a_run_that_breaks_down_leaves_the_others_alone(
    designer: Speaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = [designer.say(TEXT, **options_of(seed)) for seed in range(3)]
    run_streams = Backbone.run_streams
    calls = []

    def broken(self: Backbone, state: Any, rows: Any, streams: Any) -> Any:
        found = run_streams(self, state, rows, streams)
        calls.append(streams)
        if 1 in streams and len(calls) > 3:
            found[list(streams).index(1)] = CheckpointError("row 1 is damaged")
        return found

    monkeypatch.setattr(Backbone, "run_streams", broken)
    with Scheduler(designer, 3) as scheduler:
        streams = [scheduler.submit(TEXT, **options_of(seed)) for seed in range(3)]
        for i in (0, 2):
            np.testing.assert_array_equal(samples_of(streams[i]), expected[i].samples)
        with pytest.raises(CheckpointError, match="damaged"):
            samples_of(streams[1])
