"""Step 2: speech of every sentence, by flite's voice `slt` and the frame-locked vocoder.

Writes `speech/NNNN.npz` (int16 `samples` end to end, `frames` of each sentence), one file for each
block of sentences; blocks already there are kept, so the step may be stopped and started again.
"""

import argparse
import multiprocessing
import os
from pathlib import Path

import numpy as np
from flite import Flite
from vocoder import FRAME_LEN, render, trim

BLOCK_LEN = 1000  # sentences in a file
_flite: Flite | None = None


def speak(text: str) -> np.ndarray:
    """`text` as int16 samples at 16 kHz, whole 80 ms frames."""
    global _flite  # one voice a process: libflite keeps its state in the library
    _flite = _flite or Flite("slt")
    samples = render(trim(_flite.parameters(text)))
    return (samples * 32767).clip(-32768, 32767).astype(np.int16)


def make_block(job: tuple[Path, list[str]]) -> tuple[Path, float]:
    path, sentences = job
    speech = [speak(text) for text in sentences]
    part = path.with_suffix(".part.npz")
    np.savez(part, samples=np.concatenate(speech), frames=[len(s) // FRAME_LEN for s in speech])
    part.rename(path)
    return path, sum(map(len, speech)) / 16_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, required=True, help="folder of this recipe's files")
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    args = parser.parse_args()
    sentences = (args.work / "sentences.txt").read_text("utf-8").splitlines()
    out = args.work / "speech"
    out.mkdir(exist_ok=True)
    jobs = [
        (out / f"{i // BLOCK_LEN:04d}.npz", sentences[i : i + BLOCK_LEN])
        for i in range(0, len(sentences), BLOCK_LEN)
    ]
    jobs = [job for job in jobs if not job[0].exists()]
    with multiprocessing.Pool(args.processes) as pool:
        for path, seconds in pool.imap(make_block, jobs):
            print(f"{path.name}: {seconds / 60:.1f} minutes", flush=True)


if __name__ == "__main__":
    main()
