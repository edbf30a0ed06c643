"""Step 2: speech parameters of every sentence, and the speech itself of the first blocks.

Writes `speech/NNNN.npz` for each block of sentences: `frames` of each sentence, and `mel_cepstra`,
`voicing` and `periods` (see `vocoder.FrameParameters`) of all of them end to end; int16 `samples`
too where the codec is to be trained on them. Blocks already there are kept.
"""

import argparse
import multiprocessing
import os
from pathlib import Path

import numpy as np
from flite import Flite
from vocoder import FrameParameters, align, frame_parameters, render

BLOCK_LEN = 1000  # sentences in a file
_flite: Flite | None = None


def speak(text: str) -> FrameParameters:
    global _flite  # one voice a process: libflite keeps its state in the library
    _flite = _flite or Flite("slt")
    return frame_parameters(align(_flite.parameters(text)))


def make_block(job: tuple[Path, list[str], bool]) -> tuple[Path, float]:
    path, sentences, rendered = job
    speech = [speak(text) for text in sentences]
    frames = np.array([len(s.periods) for s in speech])
    block = {
        "frames": frames,
        "mel_cepstra": np.concatenate([s.mel_cepstra for s in speech]).astype(np.float16),
        "voicing": np.concatenate([s.voicing for s in speech]).astype(np.float16),
        "periods": np.concatenate([s.periods for s in speech]).astype(np.int8),
    }
    if rendered:
        samples = np.concatenate([render(s) for s in speech])
        block["samples"] = (samples * 32767).clip(-32768, 32767).astype(np.int16)
    part = path.with_suffix(".part.npz")
    np.savez(part, **block)
    part.rename(path)
    return path, frames.sum() * 0.08


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, required=True, help="folder of this recipe's files")
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--rendered", type=int, default=6, help="blocks that get samples too")
    args = parser.parse_args()
    sentences = (args.work / "sentences.txt").read_text("utf-8").splitlines()
    out = args.work / "speech"
    out.mkdir(exist_ok=True)
    jobs = [
        (out / f"{i:04d}.npz", sentences[i * BLOCK_LEN : (i + 1) * BLOCK_LEN], i < args.rendered)
        for i in range(-(-len(sentences) // BLOCK_LEN))
    ]
    jobs = [job for job in jobs if not job[0].exists()]
    with multiprocessing.Pool(args.processes) as pool:
        for path, seconds in pool.imap(make_block, jobs):
            print(f"{path.name}: {seconds / 60:.1f} minutes", flush=True)


if __name__ == "__main__":
    main()
