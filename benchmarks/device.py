"""Nano, its codec and VoiceGenerator at real size on one device: frames, steps, first audio.

    python -m benchmarks.device --device cuda [--weight-types f32,bf16,q8_0] [--out FILE] [--smoke]

A frame is one program run over 300 cached rows: 17 local positions with sampling, then the global
step. A step is one row of VoiceGenerator over 300 cached rows and the heads of its codes. Real time
is 80 ms for either. Weights are random. `--smoke` measures small models, to try the measure itself.
"""

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from benchmarks import delay_step, frame, speech
from benchmarks.real_sizes import (
    NANO_CONFIG,
    VOICE_GENERATOR_CONFIG,
    random_codec,
    random_nano,
    random_voice_generator,
)
from mosstalk.checkpoint.storage import StorageType
from mosstalk.compute.backend import Backend, open_backend
from mosstalk.compute.self_test.check import find_faults

FRAME_MS = 80
CACHED_ROWS = 300
TOKENIZER = Path("tests/golden/checkpoints/nano_c/tokenizer.model")
Figures = dict[str, object]
Config = Mapping[str, object]

SMALL_NANO: dict[str, object] = {
    **NANO_CONFIG,
    "hidden_size": 64,
    "gpt2_config": {
        **dict(NANO_CONFIG["gpt2_config"]),  # type: ignore[call-overload]
        "n_layer": 2,
        "n_head": 4,
        "n_embd": 64,
        "n_inner": 128,
    },
}
SMALL_VOICE_GENERATOR: dict[str, object] = {
    **VOICE_GENERATOR_CONFIG,
    "language_config": {
        **dict(VOICE_GENERATOR_CONFIG["language_config"]),  # type: ignore[call-overload]
        "hidden_size": 64,
        "num_hidden_layers": 2,
        "intermediate_size": 128,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 16,
    },
}


def spread(times: list[float]) -> Figures:
    """Median and range of milliseconds; the first is apart, as libraries prepare in it."""
    rest = times[2:]  # the first run is computed op by op, the second captured
    return {
        "ms": round(statistics.median(rest), 3),
        "min_ms": round(min(rest), 3),
        "max_ms": round(max(rest), 3),
        "first_ms": round(times[0], 1),
        "second_ms": round(times[1], 1),
        "real_time_factor": round(statistics.median(rest) / FRAME_MS, 4),
    }


def timed(work: Callable[[], object], count: int) -> list[float]:
    """Milliseconds of each of `count` runs."""
    times = []
    for _ in range(count):
        started = time.perf_counter()
        work()
        times.append(1000 * (time.perf_counter() - started))
    return times


def measure_nano(backend: Backend, storage: StorageType, config: Config, count: int) -> Figures:
    """A frame at the same rows each time, and a prefill of 200."""
    model = random_nano(backend, storage, config)
    session = model.session()
    session.begin_generation(CACHED_ROWS + count)
    session.prefill(frame.random_rows(model, CACHED_ROWS))
    decoder, hidden = model.frame_decoder(session.num_codebooks), session.hidden
    assert hidden is not None
    frames = timed(lambda: decoder.run(session.state, hidden, 0, frame.SAMPLING), count)
    rows = frame.random_rows(model, frame.PREFILL_ROWS)
    prefills = timed(lambda: session.prefill(rows), 5)
    return {"frame": spread(frames), "prefill_200_ms": round(min(prefills), 2)}


def measure_codec(backend: Backend, count: int) -> Figures:
    """One frame of Nano's codec at a time."""
    codec = random_codec(backend)
    codes = np.random.default_rng(1).integers(0, 1024, (1, codec.num_codebooks)).astype(np.int32)
    state = codec.decoder.new_state()
    return spread(timed(lambda: codec.decoder.decode(state, codes), count))


def measure_delay(backend: Backend, storage: StorageType, config: Config, count: int) -> Figures:
    """A step over 300 rows and more, a prefill of 300, and both up to the first whole frame."""
    model = random_voice_generator(backend, storage, config)
    rows = delay_step.random_rows(model, CACHED_ROWS + 1)
    session = model.session()
    session.begin_generation(CACHED_ROWS + count + 1)
    prefills = timed(lambda: session.prefill(rows[:CACHED_ROWS]), 3)
    steps = [delay_step.step_ms(session, rows[-1]) for _ in range(count)]
    figures = spread(steps)
    delay = 1 + model.config.n_vq  # rows that the first frame takes, one codebook after the other
    first_frame_ms = min(prefills) + delay * statistics.median(steps)
    return {
        "step": figures,
        "prefill_300_ms": round(min(prefills), 2),
        "first_frame_ms": round(first_frame_ms, 1),
    }


def measure_speech(device: str, storage: StorageType, config: Config, count: int) -> Figures:
    """Nano and its codec through `mosstalk.load`: time to first audio, real-time factor."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "random.gguf"
        speech.write_random_model(path, TOKENIZER, storage, config)
        return speech.measure(path, 0, count, device)


def memory_mb(backend: Backend) -> Figures:
    """The most that PyTorch has had on a GPU, for the cuda backend."""
    if backend.name != "cuda":
        return {}
    import torch

    if not torch.cuda.is_available():
        return {}
    return {"gpu_peak_mb": round(torch.cuda.max_memory_allocated() / 1e6, 1)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--weight-types", default="f32,bf16,q8_0")
    parser.add_argument("--frames", type=int, default=100)
    parser.add_argument("--out", type=Path, help="write the figures here, after each is known")
    parser.add_argument("--smoke", action="store_true", help="small models, few frames")
    args = parser.parse_args()
    count = 6 if args.smoke else args.frames
    nano, delay = (NANO_CONFIG, VOICE_GENERATOR_CONFIG)
    if args.smoke:
        nano, delay = SMALL_NANO, SMALL_VOICE_GENERATOR
    backend = open_backend(args.device)
    result: Figures = {"device": args.device, "identity": backend.identity, "smoke": args.smoke}
    measures: list[tuple[str, Callable[[], object]]] = [
        ("self_test_faults", lambda: [str(fault) for fault in find_faults(backend)]),
        ("codec", lambda: measure_codec(backend, count)),
    ]
    for name in args.weight_types.split(","):
        storage = StorageType.parse(name)
        measures += [
            (f"nano {name}", lambda s=storage: measure_nano(backend, s, nano, count)),
            (f"speech {name}", lambda s=storage: measure_speech(args.device, s, nano, count)),
        ]
        if storage is not StorageType.F32:  # 8.4 GB, which nobody would run
            work = lambda s=storage: measure_delay(backend, s, delay, count)  # noqa: E731
            measures.append((f"voice_generator {name}", work))
    for name, measure in measures:
        started = time.perf_counter()
        result[name] = measure()
        seconds = time.perf_counter() - started
        print(f"{name} ({seconds:.0f} s): {json.dumps(result[name])}", flush=True)
        if args.out:
            args.out.write_text(json.dumps({**result, **memory_mb(backend)}, indent=1))
    print(json.dumps({**result, **memory_mb(backend)}))


if __name__ == "__main__":
    main()
