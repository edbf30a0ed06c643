"""Step 2: speech parameters of every sentence.

Writes `speech/NNNN.npz` for each block of sentences: `frames` of each sentence, and `mel_cepstra`,
`voicing` and `periods` (see `vocoder.FrameParameters`) of all of them end to end. Blocks already
there are kept.
"""

import argparse
import multiprocessing
import os
from pathlib import Path

import numpy as np
from flite import Flite
from vocoder import FrameParameters, align, frame_parameters

BLOCK_LEN = 1000  # sentences in a file
_flite: Flite | None = None


def speak(text: str) -> FrameParameters:
    global _flite  # one voice a process: libflite keeps its state in the library
    _flite = _flite or Flite("slt")
    return frame_parameters(align(_flite.parameters(text)))


def make_block(job: tuple[Path, list[str]]) -> tuple[Path, float]:
    path, sentences = job
    speech = [speak(text) for text in sentences]
    frames = np.array([len(s.periods) for s in speech])
    part = path.with_suffix(".part.npz")
    np.savez(
        part,
        frames=frames,
        mel_cepstra=np.concatenate([s.mel_cepstra for s in speech]).astype(np.float16),
        voicing=np.concatenate([s.voicing for s in speech]).astype(np.float16),
        periods=np.concatenate([s.periods for s in speech]).astype(np.int8),
    )
    part.rename(path)
    return path, frames.sum() * 0.08


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, required=True, help="folder of this recipe's files")
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    args = parser.parse_args()
    sentences = (args.work / "sentences.txt").read_text("utf-8").splitlines()
    out = args.work / "speech"
    out.mkdir(exist_ok=True)
    jobs = [
        (out / f"{i:04d}.npz", sentences[i * BLOCK_LEN : (i + 1) * BLOCK_LEN])
        for i in range(-(-len(sentences) // BLOCK_LEN))
    ]
    jobs = [job for job in jobs if not job[0].exists()]
    with multiprocessing.Pool(args.processes) as pool:
        for path, seconds in pool.imap(make_block, jobs):
            print(f"{path.name}: {seconds / 60:.1f} minutes", flush=True)


if __name__ == "__main__":
    main()
