"""A frame of two threads beside a process that keeps one core busy, against a frame alone.

python -m benchmarks.busy [--threads 2] [--frames 60] [--weight-type q8_0]
"""

import argparse
import json
import statistics
import subprocess
import sys
import time

from benchmarks.frame import CACHED_ROWS, SAMPLING, random_rows
from benchmarks.real_sizes import random_nano
from mosstalk.checkpoint.storage import StorageType
from mosstalk.compute.cpu.backend import CpuBackend
from mosstalk.models.moss_tts_nano.model import NanoModel
from mosstalk.models.moss_tts_nano.session import NanoSession

BURN = "while True: pass"


def frame_times(model: NanoModel, session: NanoSession, num_frames: int) -> list[float]:
    """Milliseconds of frames over the same cached rows."""
    decoder = model.frame_decoder(model.config.n_vq)
    assert session.hidden is not None
    times = []
    for i in range(num_frames):
        started = time.perf_counter()
        decoder.run(session.state, session.hidden, i, SAMPLING)
        times.append(1000 * (time.perf_counter() - started))
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--frames", type=int, default=60)
    parser.add_argument("--weight-type", default="q8_0")
    args = parser.parse_args()
    model = random_nano(CpuBackend(args.threads), StorageType.parse(args.weight_type))
    session = model.session()
    session.begin_generation(CACHED_ROWS + 1)
    session.prefill(random_rows(model, CACHED_ROWS))
    frame_times(model, session, 5)  # warm
    alone = frame_times(model, session, args.frames)
    burner = subprocess.Popen([sys.executable, "-c", BURN])
    try:
        time.sleep(0.5)
        beside = frame_times(model, session, args.frames)
    finally:
        burner.kill()
        burner.wait()
    result = {
        "threads": args.threads,
        args.weight_type: {
            "ms": round(statistics.median(beside), 3),
            "bound_ms": round(statistics.median(alone), 3),
            "ratio": round(statistics.median(beside) / statistics.median(alone), 3),
            "mean_ratio": round(statistics.mean(beside) / statistics.mean(alone), 3),
            "max_ms": round(max(beside), 3),
        },
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
