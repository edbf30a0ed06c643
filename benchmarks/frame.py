"""A frame and a prefill of MOSS-TTS-Nano at real size, against reading its weights once.

    python -m benchmarks.frame [--threads 2] [--frames 40] [--weight-types f32,f16,bf16,q8_0]

A frame is one program run: 17 local positions with sampling, then the global step over 300
cached rows. The bound is the time to read all weights that a frame uses once, at the speed that
the same threads read memory with, measured between the frames.
"""

import argparse
import json
import statistics
import time

import numpy as np

from benchmarks.memory import MemorySpeed
from benchmarks.real_sizes import random_nano
from mosstalk.checkpoint.storage import StorageType
from mosstalk.compute.cpu.backend import CpuBackend
from mosstalk.compute.sampling import SamplingParams
from mosstalk.models.moss_tts_nano.frame_decoder import FrameSampling
from mosstalk.models.moss_tts_nano.model import NanoModel
from mosstalk.models.moss_tts_nano.session import NanoSession

CACHED_ROWS = 300
PREFILL_ROWS = 200
SAMPLING = FrameSampling(
    SamplingParams(top_k=50),
    SamplingParams(temperature=0.8, top_k=25, top_p=0.95, repetition_penalty=1.2),
    seed=1,
)


def frame_bytes(model: NanoModel) -> int:
    """Bytes of the weights that a frame reads: all but the text embedding."""
    weights = model.weights
    total = sum(table.num_bytes for table in weights.audio_embeddings)
    for stack in (weights.global_stack, weights.local_stack):
        for block in stack.blocks:
            pairs = (block.ln_1, block.c_attn, block.c_proj, block.ln_2, block.fc_in, block.fc_out)
            total += sum(tensor.num_bytes for pair in pairs for tensor in pair)
    return total


def random_rows(model: NanoModel, count: int) -> np.ndarray:
    rng = np.random.default_rng(2)
    rows = rng.integers(0, 1024, (count, 1 + model.config.n_vq)).astype(np.int32)
    rows[: count // 2, 1:] = model.config.audio_pad_token_id
    return rows


def measure_frames(
    model: NanoModel, session: NanoSession, memory: MemorySpeed, num_frames: int
) -> tuple[list[float], list[float]]:
    """Milliseconds of each frame and of each pass over memory, in turns."""
    frames, reads = [], []
    decoder = model.frame_decoder(session.num_codebooks)
    assert session.hidden is not None
    for i in range(num_frames):
        reads.append(memory.read_ms())
        started = time.perf_counter()
        decoder.run(session.state, session.hidden, i, SAMPLING)  # at the same 300 rows each time
        frames.append(1000 * (time.perf_counter() - started))
    return frames, reads


def measure_prefill(session: NanoSession, rows: np.ndarray, times: int = 5) -> float:
    best = float("inf")
    for _ in range(times):
        session.reset_cache()
        started = time.perf_counter()
        session.prefill(rows)
        best = min(best, 1000 * (time.perf_counter() - started))
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--frames", type=int, default=40)
    parser.add_argument("--weight-types", default="f32,f16,bf16,q8_0")
    args = parser.parse_args()
    backend = CpuBackend(args.threads)
    result: dict[str, object] = {
        "threads": args.threads,
        "kernels": backend.kernels,
        "cached_rows": CACHED_ROWS,
    }
    print(f"{'weights':8} {'frame ms':>9} {'bound ms':>9} {'ratio':>6} {'prefill ms':>11}")
    for name in args.weight_types.split(","):
        model = random_nano(backend, StorageType.parse(name))
        session = model.session()
        session.begin_generation(CACHED_ROWS + 1)
        session.prefill(random_rows(model, CACHED_ROWS))
        memory = MemorySpeed(backend, frame_bytes(model))
        measure_frames(model, session, memory, 3)  # warm
        frames, reads = measure_frames(model, session, memory, args.frames)
        prefill_ms = measure_prefill(session, random_rows(model, PREFILL_ROWS))
        ms, bound_ms = statistics.median(frames), statistics.median(reads)
        result[name] = {
            "ms": round(ms, 3),
            "bound_ms": round(bound_ms, 3),
            "ratio": round(ms / bound_ms, 3),
            "min_ms": round(min(frames), 3),
            "max_ms": round(max(frames), 3),
            "prefill_ms": round(prefill_ms, 1),
            "weight_mb": round(frame_bytes(model) / 1e6, 1),
        }
        print(f"{name:8} {ms:9.2f} {bound_ms:9.2f} {ms / bound_ms:6.2f} {prefill_ms:11.1f}")
    print(json.dumps(result))


if __name__ == "__main__":
    main()
