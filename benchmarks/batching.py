"""Frames per second of 1 to 8 streams together, and how long a late request waits for its audio.

    python -m benchmarks.batching --tokenizer FILE [--threads 2] [--frames 40] [--rounds 3]

MOSS-TTS-Nano and its codec at real size with random weights, through the scheduler: prompts, frames
and decoding are all in the figures. Frames are counted while all streams are being spoken. The late
requests come while seven streams run: with the voice of these, and with a voice that is new.
"""

import argparse
import json
import statistics
import time
from pathlib import Path
from threading import Thread

import numpy as np

from benchmarks.real_sizes import NANO_CONFIG, random_codec, random_tensors
from benchmarks.speech import TEXT, VOICE_FRAMES, never_stop
from mosstalk import Scheduler, Speaker, Voice
from mosstalk.checkpoint.storage import StorageType
from mosstalk.compute.cpu.backend import CpuBackend
from mosstalk.models.moss_tts_nano.config import parse_config
from mosstalk.models.moss_tts_nano.model import NanoModel
from mosstalk.models.moss_tts_nano.speech import NanoSpeech
from mosstalk.models.moss_tts_nano.weights import expected_tensors
from mosstalk.scheduled_stream import ScheduledStream
from mosstalk.text.tokenizer import Tokenizer

STREAMS = (1, 2, 4, 8)


def random_speaker(tokenizer: Path, threads: int, storage: StorageType) -> Speaker:
    """Speaks until its cap."""
    backend = CpuBackend(threads)
    tensors = random_tensors(expected_tensors(parse_config(NANO_CONFIG)), storage)
    never_stop(tensors)
    model = NanoModel(NANO_CONFIG, tensors, backend)
    speech = NanoSpeech(model, Tokenizer(tokenizer.read_bytes()))
    codec = random_codec(backend)
    return Speaker(speech, codec, backend, storage, codec_identity="", model_identity="")


def random_voice(speaker: Speaker, seed: int) -> Voice:
    codes = np.random.default_rng(seed).integers(0, 1024, (VOICE_FRAMES, 16)).astype(np.int32)
    return Voice(f"random {seed}", codes, speaker.sample_rate, "", speaker.codec_identity)


def drained(stream: ScheduledStream) -> ScheduledStream:
    """The stream, read as fast as it comes on a thread of its own."""
    Thread(target=lambda: [None for _ in stream], daemon=True).start()
    return stream


def wait_for_first_audio(streams: list[ScheduledStream]) -> None:
    while any(stream.progress.first_audio is None for stream in streams):
        time.sleep(0.002)


def frames_per_second(scheduler: Scheduler, voice: Voice, count: int, frames: int) -> float:
    """Of `count` streams together, each about `frames` long."""
    cap = 10 * frames  # so that none ends
    streams = [drained(scheduler.submit(TEXT, voice, seed=i, max_frames=cap)) for i in range(count)]
    wait_for_first_audio(streams)
    started, before = time.perf_counter(), scheduler.stats().frames
    while scheduler.stats().frames < before + count * frames:
        time.sleep(0.002)
    made, seconds = scheduler.stats().frames - before, time.perf_counter() - started
    close(scheduler, streams)
    return made / seconds


def first_audio_ms(scheduler: Scheduler, voices: list[Voice], others: int) -> list[float]:
    """Of late requests one after another, one for each voice, while `others` streams run."""
    voice = voices[0]
    running = [
        drained(scheduler.submit(TEXT, voice, seed=i, max_frames=1500)) for i in range(others)
    ]
    wait_for_first_audio(running)
    waited = []
    for i, chosen in enumerate(voices):
        with scheduler.submit(TEXT, chosen, seed=100 + i, max_frames=4) as late:
            next(late)
            waited.append(late.summary.ttfa_ms)
    close(scheduler, running)
    return waited


def close(scheduler: Scheduler, streams: list[ScheduledStream]) -> None:
    for stream in streams:
        stream.close()
    while scheduler.stats().streams:
        time.sleep(0.002)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tokenizer", type=Path, required=True, help="tokenizer.model of Nano")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--frames", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--weight-type", default="q8_0")
    args = parser.parse_args()
    speaker = random_speaker(args.tokenizer, args.threads, StorageType.parse(args.weight_type))
    voice = random_voice(speaker, 0)
    found: dict[int, list[float]] = {count: [] for count in STREAMS}
    with Scheduler(speaker, max(STREAMS)) as scheduler:
        frames_per_second(scheduler, voice, max(STREAMS), 4)  # warm
        for _ in range(args.rounds):
            for count in STREAMS:
                found[count].append(frames_per_second(scheduler, voice, count, args.frames))
        known = first_audio_ms(scheduler, [voice] * (1 + 2 * args.rounds), max(STREAMS) - 1)
        new = [voice, *(random_voice(speaker, 1 + i) for i in range(args.rounds))]
        unknown = first_audio_ms(scheduler, new, max(STREAMS) - 1)[1:]
    best = {count: max(rates) for count, rates in found.items()}
    for count, rates in found.items():
        ratio = statistics.median(rates) / statistics.median(found[1])
        print(
            f"{count} streams: {best[count]:6.1f} frames/s, median {statistics.median(rates):6.1f}"
            f" ({ratio:.2f} x one)"
        )
    result = {
        "threads": args.threads,
        "kernels": CpuBackend(args.threads).kernels,
        "weight_type": args.weight_type,
        "frames_per_second": {str(count): round(rate, 1) for count, rate in best.items()},
        "speedup_of_8": round(best[8] / best[1], 2),
        "late_first_audio_ms": round(statistics.median(known[1:]), 1),
        "late_first_audio_new_voice_ms": round(statistics.median(unknown), 1),
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
