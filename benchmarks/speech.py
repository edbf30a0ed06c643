"""Speech at real size from a file: time to first audio, real-time factor, peak memory.

    python -m benchmarks.speech --tokenizer FILE [--threads 2] [--weight-type q8_0]

Random weights are written as one GGUF file with their codec; another process loads it, speaks
once to warm up, and is measured on the next texts with the same voice.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from benchmarks.real_sizes import CODEC_CONFIG, NANO_CONFIG, random_tensors
from mosstalk.checkpoint.checkpoint import Checkpoint
from mosstalk.checkpoint.storage import StorageType, StoredTensor, from_float32
from mosstalk.checkpoint.write import write_gguf
from mosstalk.codec.moss_audio_tokenizer.config import parse_config as parse_codec_config
from mosstalk.codec.moss_audio_tokenizer.weights import expected_tensors as codec_tensors
from mosstalk.models.moss_tts_nano.config import parse_config
from mosstalk.models.moss_tts_nano.weights import expected_tensors

VOICE_FRAMES = 75  # 6 s
TEXT = "The quick brown fox jumps over the lazy dog, and then it rests for a while."


def write_random_model(
    path: Path,
    tokenizer: Path,
    storage: StorageType,
    config: Mapping[str, object] = NANO_CONFIG,
) -> None:
    lm = random_tensors(expected_tensors(parse_config(config)), StorageType.F32)
    never_stop(lm)
    codec = random_tensors(codec_tensors(parse_codec_config(CODEC_CONFIG)), StorageType.F32)
    checkpoint = Checkpoint(
        path=path,
        kind="directory",
        config=config,
        tensors=lm,
        codec_config=CODEC_CONFIG,
        codec_tensors=codec,
        tokenizer_model=tokenizer.read_bytes(),
        identity="",
    )
    write_gguf(checkpoint, path, storage)


def never_stop(tensors: dict[str, StoredTensor]) -> None:
    """Turn the local transformer's output towards the "continue" row of the text embedding."""
    table = tensors["transformer.wte.weight"].to_float32()
    go_on, stop = NANO_CONFIG["audio_assistant_slot_token_id"], NANO_CONFIG["audio_end_token_id"]
    name = "local_transformer.ln_f.bias"
    tensors[name] = from_float32(name, 50 * (table[go_on] - table[stop]), StorageType.F32)


def measure(path: Path, threads: int, frames: int, device: str = "cpu") -> dict[str, object]:
    """In a process of its own, whose peak memory is that of loading and speaking."""
    import mosstalk

    speaker = mosstalk.load(path, threads=threads, device=device, strict=True)
    codes = np.random.default_rng(3).integers(0, 1024, (VOICE_FRAMES, 16)).astype(np.int32)
    voice = mosstalk.Voice("random", codes, speaker.sample_rate, "", speaker.codec_identity)
    runs = [speaker.say(TEXT, voice, seed=seed, max_frames=frames).summary for seed in range(4)]
    warm = min(runs[1:], key=lambda run: run.ttfa_ms)
    return {
        "ttfa_ms": round(warm.ttfa_ms, 1),
        "cold_ttfa_ms": round(runs[0].ttfa_ms, 1),
        "rtf": round(min(run.rtf for run in runs[1:]), 3),
        "frames": [run.frames for run in runs],
        "peak_mb": round(peak_bytes() / 1e6, 1),
    }


def peak_bytes() -> int:
    """Largest resident size so far, files mapped included. (`getrusage` would count the parent.)"""
    status = Path("/proc/self/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tokenizer", type=Path, required=True, help="tokenizer.model of Nano")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--frames", type=int, default=100)
    parser.add_argument("--weight-type", default="q8_0")
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.measure:
        print(json.dumps(measure(args.measure, args.threads, args.frames)))
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "random.gguf"
        write_random_model(path, args.tokenizer, StorageType.parse(args.weight_type))
        command = [sys.executable, "-m", "benchmarks.speech", "--measure", str(path)]
        command += ["--threads", str(args.threads), "--frames", str(args.frames)]
        command += ["--tokenizer", str(args.tokenizer)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        result = {"threads": args.threads, args.weight_type: json.loads(done.stdout)}
        print(json.dumps(result))


if __name__ == "__main__":
    main()
