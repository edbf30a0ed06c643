"""The codec at real size, decoding one frame at a time, to frame 1000.

    python -m benchmarks.codec [--threads 2] [--frames 1000]

The bound is the time to read the decoder's weights and a full window of its K/V caches once.
"""

import argparse
import json
import statistics
import time

import numpy as np

from benchmarks.memory import MemorySpeed
from benchmarks.real_sizes import random_codec
from mosstalk.codec.moss_audio_tokenizer.codec import MossAudioTokenizer
from mosstalk.compute.cpu.backend import CpuBackend
from mosstalk.compute.state import State

FLAT_OVER = 100  # frames in each average


def decoder_bytes(codec: MossAudioTokenizer, state: State) -> int:
    """Bytes of the decoder's stages and of the caches that a late frame reads."""
    total = sum(array.nbytes for array in (*state.keys, *state.values))
    for stage in codec.weights.decoder.values():
        total += stage.input_proj.num_bytes + stage.output_proj.num_bytes
        for layer in stage.layers:
            matrices = (layer.in_proj, layer.out_proj, layer.ffn_in, layer.ffn_out)
            total += sum(matrix.num_bytes for matrix in matrices)
    return total


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--frames", type=int, default=1000)
    args = parser.parse_args()
    backend = CpuBackend(args.threads)
    codec = random_codec(backend)
    rng = np.random.default_rng(1)
    codes = rng.integers(0, codec.config.codebook_size, (args.frames, codec.num_codebooks))
    codes = codes.astype(np.int32)
    state = codec.decoder.new_state()
    memory = MemorySpeed(backend, decoder_bytes(codec, state))
    times, reads = [], []
    for i in range(args.frames):
        if i % 20 == 0:
            reads.append(memory.read_ms())
        started = time.perf_counter()
        codec.decoder.decode(state, codes[i : i + 1])
        times.append(1000 * (time.perf_counter() - started))
    spans = [times[i : i + FLAT_OVER] for i in range(0, args.frames, FLAT_OVER)]
    medians = [statistics.median(span) for span in spans]
    for i, median in enumerate(medians):
        print(f"frames {i * FLAT_OVER:5}-{i * FLAT_OVER + len(spans[i]) - 1:5}: {median:6.2f} ms")
    bound_ms = statistics.median(reads)
    result = {
        "threads": args.threads,
        "kernels": backend.kernels,
        "f32": {
            "ms": round(medians[-1], 3),
            "bound_ms": round(bound_ms, 3),
            "ratio": round(medians[-1] / bound_ms, 3),
            "first_ms": round(medians[0], 3),
            "max_ms": round(max(times), 3),
            "real_time_factor": round(medians[-1] / 80, 4),
        },
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
