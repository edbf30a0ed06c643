"""A step of MOSS-VoiceGenerator at real size, against reading its weights once.

    python -m benchmarks.delay_step [--threads 2] [--steps 20] [--weight-types bf16,q8_0]
                                    [--sustained 500]

A step is one row through the backbone over 300 cached rows, then the heads of the slots and of
all codebooks. The bound is the time to read all weights that a step uses once, at the speed that
the same threads read memory with, measured between the steps. `--sustained` makes so many steps
more in one go, each over all rows before it.
"""

import argparse
import json
import resource
import statistics
import time
from dataclasses import fields

import numpy as np

from benchmarks.memory import MemorySpeed
from benchmarks.real_sizes import random_voice_generator
from mosstalk.checkpoint.storage import StorageType
from mosstalk.compute.cpu.backend import CpuBackend
from mosstalk.models.moss_tts_delay.model import DelayModel
from mosstalk.models.moss_tts_delay.session import DelaySession

CACHED_ROWS = 300
READ_BYTES = 2**30  # of memory in one measurement of its speed; far beyond any cache


def step_bytes(model: DelayModel) -> int:
    """Bytes of the weights that a step reads: all but the text embedding and the text head."""
    weights = model.weights
    total = weights.norm.num_bytes + sum(head.num_bytes for head in weights.audio_heads)
    for block in weights.blocks:
        total += sum(getattr(block, field.name).num_bytes for field in fields(block))
    return total


def random_rows(model: DelayModel, count: int) -> np.ndarray:
    """Half a prompt of text, half rows of codes."""
    config, rng = model.config, np.random.default_rng(2)
    rows = rng.integers(0, 1024, (count, 1 + config.n_vq)).astype(np.int32)
    rows[: count // 2, 1:] = config.audio_pad_code
    rows[count // 2 :, 0] = config.audio_assistant_gen_slot_token_id
    return rows


def step_ms(session: DelaySession, row: np.ndarray) -> float:
    """Milliseconds of one row and of what the next is drawn from."""
    started = time.perf_counter()
    session.step(row)
    session.slot_logits()
    session.audio_logits()
    return 1000 * (time.perf_counter() - started)


def measure_steps(
    session: DelaySession, row: np.ndarray, memory: MemorySpeed, bound_reads: float, num_steps: int
) -> tuple[list[float], list[float]]:
    """Milliseconds of each step and of each pass over as much memory, in turns."""
    steps, bounds = [], []
    for _ in range(num_steps):
        bounds.append(memory.read_ms() * bound_reads)
        session.truncate(CACHED_ROWS)  # the same rows before it each time
        steps.append(step_ms(session, row))
    return steps, bounds


def measure(
    model: DelayModel, backend: CpuBackend, num_steps: int, sustained: int
) -> dict[str, float]:
    rows = random_rows(model, CACHED_ROWS + 1)
    session = model.session()
    session.begin_generation(CACHED_ROWS + 1 + sustained)
    started = time.perf_counter()
    session.prefill(rows[:CACHED_ROWS])
    prefill_ms = 1000 * (time.perf_counter() - started)
    memory, bound_reads = MemorySpeed(backend, READ_BYTES), step_bytes(model) / READ_BYTES
    measure_steps(session, rows[-1], memory, bound_reads, 2)  # warm
    steps, bounds = measure_steps(session, rows[-1], memory, bound_reads, num_steps)
    ms, bound_ms = statistics.median(steps), statistics.median(bounds)
    result = {
        "ms": round(ms, 2),
        "bound_ms": round(bound_ms, 2),
        "ratio": round(ms / bound_ms, 3),
        "min_ms": round(min(steps), 2),
        "max_ms": round(max(steps), 2),
        "min_bound_ms": round(min(bounds), 2),
        "prefill_ms": round(prefill_ms, 1),
        "weight_mb": round(step_bytes(model) / 1e6, 1),
    }
    if sustained:
        times = [step_ms(session, rows[-1]) for _ in range(sustained)]
        tenth = max(1, sustained // 10)
        result["sustained_ms"] = round(statistics.mean(times), 2)
        result["first_tenth_ms"] = round(statistics.median(times[:tenth]), 2)
        result["last_tenth_ms"] = round(statistics.median(times[-tenth:]), 2)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--sustained", type=int, default=0)
    parser.add_argument("--weight-types", default="bf16,q8_0")
    args = parser.parse_args()
    backend = CpuBackend(args.threads)
    result: dict[str, object] = {
        "threads": args.threads,
        "kernels": backend.kernels,
        "cached_rows": CACHED_ROWS,
    }
    for name in args.weight_types.split(","):
        model = random_voice_generator(backend, StorageType.parse(name))
        result[name] = measure(model, backend, args.steps, args.sustained)
        print(name, json.dumps(result[name]))
        del model  # before the next one is made
    result["peak_gb"] = round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, 2)
    print(json.dumps(result))


if __name__ == "__main__":
    main()
