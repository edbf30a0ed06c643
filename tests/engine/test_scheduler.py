"""Many requests at a time: each gets what it gets alone, and none can harm the others."""

import asyncio
import gc
import random
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tiny_model import FRAME_LEN, SAMPLE_RATE, write_tiny_model

import mosstalk
from mosstalk import BusyError, Scheduler, Speaker, TimeLimitError, UsageError, Voice
from mosstalk.models.moss_tts_nano import speech as nano_speech
from mosstalk.models.moss_tts_nano.frame_decoder import FrameDecoder
from mosstalk.scheduled_stream import BUFFER_SECONDS, ScheduledStream
from mosstalk.types import Summary

Samples = NDArray[np.float32]
Ask = tuple[str, str | Voice, dict[str, Any]]  # text, voice, options

_WORDS = ("one", "short", "sentence", "is", "here", "and", "then", "comes", "another", "longer")
_LONG: Ask = ("Hello.", "none", {"seed": 1, "max_frames": 700})


@pytest.fixture(scope="module")
def free_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that ends when chance decides."""
    return write_tiny_model(tmp_path_factory.mktemp("models") / "free", push=1.5)


@pytest.fixture
def free_speaker(free_path: Path) -> Speaker:
    return mosstalk.load(free_path, threads=1)


def text_of(generator: random.Random) -> str:
    sentences = [
        " ".join(generator.choices(_WORDS, k=generator.randint(2, 9))).capitalize() + "."
        for _ in range(generator.randint(1, 4))
    ]
    return " ".join(sentences)


def asks_of(voice: Voice, count: int, seed: int) -> list[Ask]:
    """Requests that differ in all that a request can: text, voice, seed, length, sampling."""
    generator = random.Random(seed)
    other = replace(voice, codes=(voice.codes[:7] + 5) % 64, transcript="What it says.")
    asks: list[Ask] = []
    for i in range(count):
        options: dict[str, Any] = {
            "seed": generator.randrange(1000),
            "max_frames": generator.choice([1, 3, 9, 20, 33]),
            "max_tokens": generator.choice([0, 12, 75]),
        }
        if i % 3 == 1:
            options["temperature"] = generator.choice([0.0, 0.5, 1.7])
            options["top_k"] = generator.choice([1, 5, 40])
        if i % 5 == 2:
            options["num_codebooks"] = generator.choice([1, 3])
        if i % 4 == 3:
            options |= {"repetition_penalty": 1.9, "top_p": 0.6}
        chosen: str | Voice = (voice, other, "none")[generator.randrange(3)]
        if chosen is other and i % 2:
            options["mode"] = "continuation"
        asks.append((text_of(generator), chosen, options))
    return asks


def alone(speaker: Speaker, asks: list[Ask]) -> list[tuple[Samples, Summary]]:
    said = [speaker.say(text, voice, **options) for text, voice, options in asks]
    return [(speech.samples, speech.summary) for speech in said]


def submit(scheduler: Scheduler, ask: Ask) -> ScheduledStream:
    text, voice, options = ask
    return scheduler.submit(text, voice, **options)


def samples_of(stream: ScheduledStream) -> Samples:
    pieces = [chunk.samples for chunk in stream]
    return np.concatenate(pieces, axis=1) if pieces else np.zeros((2, 0), np.float32)


def told(summary: Summary) -> dict[str, object]:
    """All that does not depend on time or, as a sum, on the pieces that it came in."""
    values = summary.as_dict()
    timely = ("rtf", "ttfa_ms", "seconds")
    return {name: values[name] for name in values if name not in timely}


def until(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.001)


def is_speaking(stream: ScheduledStream) -> Callable[[], bool]:
    return lambda: stream.progress.first_audio is not None


@pytest.mark.parametrize("max_streams", [1, 3, 8])
def test_twenty_requests_get_what_each_gets_alone(
    free_speaker: Speaker, voice: Voice, max_streams: int
) -> None:
    asks = asks_of(voice, 20, seed=7)
    expected = alone(free_speaker, asks)
    assert len({summary.frames for _, summary in expected}) > 6
    assert {summary.stop_reason for _, summary in expected} >= {"end", "max_frames"}
    with Scheduler(free_speaker, max_streams) as scheduler:
        streams = [submit(scheduler, ask) for ask in asks]
        found = [samples_of(stream) for stream in streams]
        stats = scheduler.stats()
    for samples, stream, (alone_samples, summary) in zip(found, streams, expected, strict=True):
        np.testing.assert_array_equal(samples, alone_samples)
        assert told(stream.summary) == told(summary)
    assert (stats.done, stats.failed, stats.cancelled) == (20, 0, 0)
    assert stats.frames == sum(summary.frames for _, summary in expected)
    assert stats.audio_seconds == pytest.approx(sum(s.seconds for _, s in expected))
    assert 0 < stats.work_seconds < 60
    if max_streams == 8:
        assert stats.rounds < stats.frames / 2  # a round makes a frame of each


@pytest.mark.parametrize("weight_type", ["f16", "bf16", "q8_0"])
def test_packed_weights_get_the_same_bits_in_company(
    free_path: Path, voice: Voice, weight_type: str
) -> None:
    speaker = mosstalk.load(free_path, threads=2, weight_type=weight_type)
    asks = asks_of(voice, 9, seed=3)
    with Scheduler(speaker, 8) as scheduler:
        found = [samples_of(stream) for stream in [submit(scheduler, ask) for ask in asks]]
    for samples, (expected, _) in zip(found, alone(speaker, asks), strict=True):
        np.testing.assert_array_equal(samples, expected)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_requests_that_join_and_leave_at_random_frames(
    free_speaker: Speaker, voice: Voice, seed: int
) -> None:
    generator = random.Random(seed)
    asks = asks_of(voice, 16, seed=seed)
    expected = alone(free_speaker, asks)
    pieces: list[list[Samples]] = [[] for _ in asks]
    cancelled = set(generator.sample(range(len(asks)), 5))
    left, running = list(range(len(asks))), dict[int, ScheduledStream]()
    with Scheduler(free_speaker, 5) as scheduler:
        while left or running:
            if left and (not running or generator.random() < 0.4):
                index = left.pop(0)
                running[index] = submit(scheduler, asks[index])
            index = generator.choice(list(running))
            chunk = next(running[index], None)
            if chunk is not None:
                pieces[index].append(chunk.samples)
            if chunk is None or (index in cancelled and generator.random() < 0.3):
                running.pop(index).close()
        until(lambda: scheduler.stats().streams == 0)
    for index, (samples, _) in enumerate(expected):
        found = np.concatenate([np.zeros((2, 0), np.float32), *pieces[index]], axis=1)
        until_here = found.shape[1] if index in cancelled else samples.shape[1]
        np.testing.assert_array_equal(found, samples[:, :until_here])


def test_voices_and_parts_of_many_streams_at_once(speaker: Speaker, voice: Voice) -> None:
    """More voices than prefixes are kept, all new, all at the same time."""
    voices = [replace(voice, codes=(voice.codes + shift) % 64) for shift in range(12)]
    asks: list[Ask] = [
        ("One here. Two there.", chosen, {"seed": 1, "max_frames": 4, "max_tokens": 6})
        for chosen in voices
    ]
    with Scheduler(speaker, 6) as scheduler:
        found = [samples_of(stream) for stream in [submit(scheduler, ask) for ask in asks]]
    for samples, (expected, _) in zip(found, alone(speaker, asks), strict=True):
        np.testing.assert_array_equal(samples, expected)


def test_speaking_alone_beside_a_batch(speaker: Speaker, voice: Voice) -> None:
    ask: Ask = ("Hello there.", voice, {"seed": 3, "max_frames": 12})
    (expected, _) = alone(speaker, [ask])[0]
    with Scheduler(speaker, 2) as scheduler:
        streams = [submit(scheduler, _LONG), submit(scheduler, ask)]
        (beside, _) = alone(speaker, [ask])[0]
        np.testing.assert_array_equal(samples_of(streams[1]), expected)
        streams[0].close()
    np.testing.assert_array_equal(beside, expected)


def test_a_request_that_is_too_long_for_a_seat_speaks_beside_the_others(
    talker_path: Path, voice: Voice, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nano_speech, "_SEAT_ROWS", 128)
    speaker = mosstalk.load(talker_path, threads=1)
    asks: list[Ask] = [
        ("Hello.", voice, {"seed": seed, "max_frames": frames})
        for seed, frames in ((1, 9), (2, 200), (3, 15))
    ]
    with Scheduler(speaker, 3) as scheduler:
        found = [samples_of(stream) for stream in [submit(scheduler, ask) for ask in asks]]
    for samples, (expected, _) in zip(found, alone(speaker, asks), strict=True):
        np.testing.assert_array_equal(samples, expected)


def test_closing_frees_the_place_at_once(speaker: Speaker, voice: Voice) -> None:
    ask: Ask = ("Hello there.", voice, {"seed": 3, "max_frames": 30})
    (expected, _) = alone(speaker, [ask])[0]
    with Scheduler(speaker, 2) as scheduler:
        first, second = submit(scheduler, _LONG), submit(scheduler, ask)
        third = submit(scheduler, ask)
        next(first)
        made = first.progress.frames
        first.close()
        np.testing.assert_array_equal(samples_of(second), expected)
        np.testing.assert_array_equal(samples_of(third), expected)
        assert next(first, None) is None
        assert first.summary.stop_reason == "cancelled"
        assert made <= first.summary.frames < 700
        assert scheduler.stats().cancelled == 1


def test_closing_stops_within_a_frame(speaker: Speaker, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pass that has begun is the last one that makes a frame of a closed stream."""
    run_rows, streams = FrameDecoder.run_rows, list[ScheduledStream]()
    made: list[int] = []

    def closing(*args: Any) -> Any:
        if streams and streams[0].progress.frames == 5 and not made:
            made.append(5)
            streams[0].close()
        return run_rows(*args)

    monkeypatch.setattr(FrameDecoder, "run_rows", closing)
    with Scheduler(speaker, 1) as scheduler:
        streams.append(submit(scheduler, _LONG))
        until(lambda: scheduler.stats().cancelled == 1)
        assert streams[0].progress.frames == 6
        assert scheduler.stats().streams == 0


def test_a_queued_request_can_be_closed(speaker: Speaker) -> None:
    with Scheduler(speaker, 1, max_queue=1) as scheduler:
        first, second = submit(scheduler, _LONG), submit(scheduler, _LONG)
        second.close()
        third = submit(scheduler, ("Hello.", "none", {"max_frames": 2}))  # in its place
        first.close()
        assert samples_of(third).shape[1] == 2 * FRAME_LEN
        assert second.summary.frames == 0


def test_no_room_is_said_with_a_time_to_try_again(speaker: Speaker) -> None:
    with Scheduler(speaker, 2, max_queue=1) as scheduler:
        streams = [submit(scheduler, _LONG) for _ in range(3)]
        until(lambda: scheduler.stats().streams == 2)
        with pytest.raises(BusyError, match="2 texts are being spoken and 1 wait") as caught:
            submit(scheduler, _LONG)
        assert 1 <= caught.value.retry_after < 600
        assert scheduler.stats().refused == 1
        assert (scheduler.stats().streams, scheduler.stats().queued) == (2, 1)
        for stream in streams:
            stream.close()
        until(lambda: scheduler.stats().streams == 0)
        assert samples_of(submit(scheduler, ("Hello.", "none", {"max_frames": 1}))).size


def test_first_come_first_served(speaker: Speaker) -> None:
    asks: list[Ask] = [("Hello.", "none", {"seed": i, "max_frames": 6}) for i in range(6)]
    with Scheduler(speaker, 1) as scheduler:
        streams = [submit(scheduler, ask) for ask in asks]
        for stream in streams:
            samples_of(stream)
    began = [stream.progress.first_audio for stream in streams]
    assert began == sorted(began, key=lambda at: at or 0.0)


def test_what_a_request_must_not_ask_is_said_at_once(speaker: Speaker, voice: Voice) -> None:
    with Scheduler(speaker) as scheduler:
        for ask in (
            ("Hello.", None, {}),
            ("", "none", {}),
            ("Hello.", "nobody", {}),
            ("Hello.", "none", {"temperature": -1.0}),
        ):
            with pytest.raises(UsageError):
                submit(scheduler, ask)  # type: ignore[arg-type]
        assert scheduler.stats().queued == scheduler.stats().streams == 0


def test_an_error_is_the_request_s_alone(speaker: Speaker, voice: Voice) -> None:
    asks: list[Ask] = [("Hello there.", voice, {"seed": i, "max_frames": 20}) for i in range(3)]
    too_long: Ask = ("Hello.", voice, {"max_frames": 5000})
    no_transcript: Ask = ("Hello.", voice, {"mode": "continuation"})
    with Scheduler(speaker, 4) as scheduler:
        streams = [submit(scheduler, ask) for ask in asks]
        bad = [submit(scheduler, too_long), submit(scheduler, no_transcript)]
        found = [samples_of(stream) for stream in streams]
        for stream, match in zip(bad, ("max-frames", "transcript"), strict=True):
            with pytest.raises(UsageError, match=match):
                next(stream)
            assert next(stream, None) is None
        assert (scheduler.stats().failed, scheduler.stats().done) == (2, 3)
    for samples, (expected, _) in zip(found, alone(speaker, asks), strict=True):
        np.testing.assert_array_equal(samples, expected)


def test_a_pass_that_breaks_down_ends_its_streams_and_nothing_else(
    speaker: Speaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_rows = FrameDecoder.run_rows
    with Scheduler(speaker, 1) as scheduler:
        monkeypatch.setattr(FrameDecoder, "run_rows", lambda *args: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            samples_of(submit(scheduler, _LONG))
        monkeypatch.setattr(FrameDecoder, "run_rows", run_rows)
        after = samples_of(submit(scheduler, ("Hello.", "none", {"max_frames": 2})))
    assert after.shape[1] == 2 * FRAME_LEN


def test_a_slow_consumer_stops_its_own_stream_alone(speaker: Speaker) -> None:
    (expected, _) = alone(speaker, [_LONG])[0]
    assert expected.shape[1] / SAMPLE_RATE > 2 * BUFFER_SECONDS
    largest = 8 * FRAME_LEN / SAMPLE_RATE
    with Scheduler(speaker, 2) as scheduler:
        slow = submit(scheduler, _LONG)
        until(lambda: not slow.has_room)
        other = samples_of(submit(scheduler, _LONG))
        held = slow.progress.seconds
        assert BUFFER_SECONDS <= held <= BUFFER_SECONDS + largest
        pieces = [next(slow).samples for _ in range(10)]
        until(lambda: slow.progress.seconds > held)
        np.testing.assert_array_equal(np.concatenate([*pieces, samples_of(slow)], 1), expected)
    np.testing.assert_array_equal(other, expected)


def test_a_request_over_its_time(speaker: Speaker) -> None:
    with Scheduler(speaker, 1, time_limit=0.3) as scheduler:
        first, second = submit(scheduler, _LONG), submit(scheduler, _LONG)
        for stream in (first, second):  # neither reads, so the first never ends
            until(lambda stream=stream: stream.progress.started + 0.3 < time.monotonic())
        for stream in (first, second):
            with pytest.raises(TimeLimitError, match="0.3 s"):
                samples_of(stream)
        until(lambda: scheduler.stats().failed == 2)
        assert scheduler.stats().streams == 0
        assert samples_of(submit(scheduler, ("Hello.", "none", {"max_frames": 1}))).size


def test_close_finishes_what_was_taken_on(speaker: Speaker) -> None:
    scheduler = Scheduler(speaker, 1)
    streams = [submit(scheduler, _LONG) for _ in range(2)]  # longer than what is kept for a reader
    scheduler.close()
    with pytest.raises(BusyError, match="closed"):
        submit(scheduler, _LONG)
    (expected, _) = alone(speaker, [_LONG])[0]
    for stream in streams:
        np.testing.assert_array_equal(samples_of(stream), expected)
    scheduler.close()


def test_close_can_cancel(speaker: Speaker) -> None:
    scheduler = Scheduler(speaker, 1)
    streams = [submit(scheduler, _LONG) for _ in range(3)]
    next(streams[0])
    scheduler.close(finish=False)
    assert [next(stream, None) for stream in streams] == [None] * 3
    assert {stream.summary.stop_reason for stream in streams} == {"cancelled"}
    assert scheduler.stats().cancelled == 3


def test_an_error_in_its_block_cancels(speaker: Speaker) -> None:
    with pytest.raises(KeyError), Scheduler(speaker, 1) as scheduler:
        stream = submit(scheduler, _LONG)
        raise KeyError
    assert stream.summary.stop_reason == "cancelled"


def test_reading_in_an_event_loop(speaker: Speaker, voice: Voice) -> None:
    asks: list[Ask] = [("Hello there.", voice, {"seed": i, "max_frames": 15}) for i in range(5)]

    async def read(stream: ScheduledStream) -> Samples:
        return np.concatenate([chunk.samples async for chunk in stream], axis=1)

    async def read_all(scheduler: Scheduler) -> list[Samples]:
        return await asyncio.gather(*[read(submit(scheduler, ask)) for ask in asks])

    with Scheduler(speaker, 3) as scheduler:
        found = asyncio.run(read_all(scheduler))
        bad = submit(scheduler, ("Hello.", voice, {"max_frames": 5000}))
        with pytest.raises(UsageError):
            asyncio.run(read(bad))
    for samples, (expected, _) in zip(found, alone(speaker, asks), strict=True):
        np.testing.assert_array_equal(samples, expected)


def test_an_event_loop_that_gives_up_a_stream(speaker: Speaker) -> None:
    async def give_up(scheduler: Scheduler) -> None:
        first, waiting = submit(scheduler, _LONG), submit(scheduler, _LONG)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(anext(waiting), 0.05)
        first.close()
        waiting.close()

    with Scheduler(speaker, 1) as scheduler:
        asyncio.run(give_up(scheduler))
        until(lambda: scheduler.stats().cancelled == 2)
        assert samples_of(submit(scheduler, ("Hello.", "none", {"max_frames": 1}))).size


@pytest.mark.parametrize(
    "limits", [{"max_streams": 0}, {"max_queue": -1}, {"time_limit": 0.0}], ids=str
)
def test_limits_that_cannot_be(speaker: Speaker, limits: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=next(iter(limits))):
        Scheduler(speaker, **limits)


def test_three_hundred_requests_leave_nothing_behind(speaker: Speaker, voice: Voice) -> None:
    def resident_kb() -> int:
        status = Path("/proc/self/status")
        if not status.exists():
            return 0
        return int(next(x for x in status.read_text().splitlines() if "VmRSS" in x).split()[1])

    threads = set(threading.enumerate())  # some of other tests' may end meanwhile
    with Scheduler(speaker, 4, max_queue=400) as scheduler:

        def speak(count: int) -> None:
            streams = [
                scheduler.submit("Hello there.", voice, seed=i, max_frames=3) for i in range(count)
            ]
            for i, stream in enumerate(streams):
                if i % 7 == 3:
                    stream.close()
                else:
                    samples_of(stream)
            until(lambda: scheduler.stats().streams == 0)

        speak(300)  # what waits to be read takes memory too, and the system may keep it
        gc.collect()
        before = resident_kb()
        for _ in range(2):
            speak(300)
            gc.collect()
        assert resident_kb() - before < 4_000
        assert len(set(threading.enumerate()) - threads) == 1
        studio = scheduler._studio
        assert studio.seats is not None and studio.codec_seats is not None
        assert studio.seats.num_free == studio.codec_seats.num_free == 4
    assert not set(threading.enumerate()) - threads
