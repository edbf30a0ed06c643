"""Step 3: the codebooks, fitted to speech parameters, and the codes of every sentence.

A frame of parameters (16 steps of mel-cepstra and voicing) is put on its principal axes, and two
residual codebooks of k-means centres are fitted to those; a third codebook is the number of pitch
periods. Both halves of the codec and the language model can then be trained at the same time,
each on fixed targets. Writes `quantiser.pt` and `codes.npz` (`codes` [frames, 3] and `frames` of
each sentence).
"""

import argparse
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from flite import NUM_BANDS, NUM_MEL_CEPSTRA
from numpy.typing import NDArray
from torch import Tensor
from vocoder import MAX_PERIODS, MIN_PERIODS, SHARPEN, STEPS_PER_FRAME, FrameParameters

NUM_AXES = 63  # and one dimension for the pitch
NUM_SPECTRAL_BOOKS, BOOK_LEN = 2, 512
FIT_FRAMES, FIT_ROUNDS = 80_000, 15
CEPSTRUM_WEIGHTS = torch.tensor([1.0, 0.7] + [0.7 * SHARPEN] * 23)  # near log-spectral distance
VOICING_WEIGHT = 0.8
QUIETEST = 3.0  # first coefficient: what is below is silence whatever its spectrum
PITCH_SCALE = 1.0


@dataclass(frozen=True)
class Quantiser:
    mean: Tensor  # [480]
    axes: Tensor  # [480, 63]
    books: Tensor  # [2, 512, 63]

    def latents(self, mel_cepstra: NDArray, voicing: NDArray, periods: NDArray) -> Tensor:
        """[frames, 64]: spectrum on its principal axes, and pitch around zero."""
        axes = (frame_vectors(mel_cepstra, voicing) - self.mean) @ self.axes
        middle = (MIN_PERIODS + MAX_PERIODS) / 2
        pitch = (torch.from_numpy(periods.astype(np.float32)) - middle) * PITCH_SCALE
        return torch.cat([axes, pitch[:, None]], dim=1)

    def codes(self, latents: Tensor) -> Tensor:
        """[frames, 3]"""
        residual, found = latents[:, :-1], []
        for book in self.books:
            code = nearest(residual, book)
            residual = residual - book[code]
            found.append(code)
        pitch = latents[:, -1] / PITCH_SCALE + (MAX_PERIODS - MIN_PERIODS) / 2
        return torch.stack([*found, pitch.round().long()], dim=1)

    def decoded(self, codes: Tensor) -> Tensor:
        """The latents that codes [frames, 3] stand for, [frames, 64]."""
        axes = sum(book[code] for book, code in zip(self.books, codes.T, strict=False))
        pitch = (codes[:, -1:] - (MAX_PERIODS - MIN_PERIODS) / 2) * PITCH_SCALE
        return torch.cat([axes, pitch], dim=1)

    def parameters(self, codes: Tensor) -> FrameParameters:
        """What codes [frames, 3] stand for, as the vocoder takes it."""
        vectors = self.decoded(codes)[:, :-1] @ self.axes.T + self.mean
        cepstra, voicing = vectors.split(
            [STEPS_PER_FRAME * n for n in (NUM_MEL_CEPSTRA, NUM_BANDS)], 1
        )
        cepstra = cepstra.unflatten(1, (STEPS_PER_FRAME, -1)) / CEPSTRUM_WEIGHTS
        voicing = voicing.unflatten(1, (STEPS_PER_FRAME, -1)) / VOICING_WEIGHT
        periods = codes[:, -1].numpy() + MIN_PERIODS
        return FrameParameters(cepstra.numpy(), voicing.clamp(0, 1).numpy(), periods)


def frame_vectors(mel_cepstra: NDArray, voicing: NDArray) -> Tensor:
    """[frames, 480]: parameters weighted so that distance is heard."""
    cepstra = torch.from_numpy(mel_cepstra.astype(np.float32))
    cepstra[..., 0].clamp_(min=QUIETEST)
    bands = torch.from_numpy(voicing.astype(np.float32)) * VOICING_WEIGHT
    return torch.cat([(cepstra * CEPSTRUM_WEIGHTS).flatten(1), bands.flatten(1)], dim=1)


def nearest(x: Tensor, book: Tensor) -> Tensor:
    return (book.square().sum(dim=1) - 2 * x @ book.T).argmin(dim=1)


def k_means(x: Tensor, count: int) -> Tensor:
    """[count, dims]: centres of x [n, dims]."""
    centres = x[torch.randperm(len(x))[:count]].clone()
    for _ in range(FIT_ROUNDS):
        code = nearest(x, centres)
        size = torch.bincount(code, minlength=count)
        total = torch.zeros_like(centres).index_add_(0, code, x)
        centres = torch.where((size > 0)[:, None], total / size.clamp(min=1)[:, None], centres)
        empty = size == 0
        centres[empty] = x[torch.randint(len(x), (int(empty.sum()),))]
    return centres


def fit(vectors: Tensor) -> Quantiser:
    mean = vectors.mean(dim=0)
    centred = vectors - mean
    _, vectors_of = torch.linalg.eigh(centred.T @ centred)
    axes = vectors_of.flip(1)[:, :NUM_AXES].contiguous()
    residual, books = centred @ axes, []
    for i in range(NUM_SPECTRAL_BOOKS):
        book = k_means(residual, BOOK_LEN)
        residual = residual - book[nearest(residual, book)]
        books.append(book)
        print(f"book {i}: squared error {residual.square().sum(dim=1).mean():.3f}", flush=True)
    return Quantiser(mean, axes, torch.stack(books))


def load(work: Path) -> Quantiser:
    return Quantiser(**torch.load(work / "quantiser.pt", "cpu", weights_only=True))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, required=True, help="folder of this recipe's files")
    parser.add_argument("--fit-blocks", type=int, default=6)
    args = parser.parse_args()
    torch.manual_seed(1)
    blocks = [p for p in sorted((args.work / "speech").glob("*.npz")) if ".part" not in p.name]
    if not (args.work / "quantiser.pt").exists():
        loaded = [np.load(path) for path in blocks[: args.fit_blocks]]
        vectors = torch.cat([frame_vectors(b["mel_cepstra"], b["voicing"]) for b in loaded])
        quantiser = fit(vectors[torch.randperm(len(vectors))[:FIT_FRAMES]])
        torch.save(vars(quantiser), args.work / "quantiser.pt")
    quantiser = load(args.work)
    codes, frames = [], []
    for path in blocks:
        block = np.load(path)
        latents = quantiser.latents(block["mel_cepstra"], block["voicing"], block["periods"])
        codes.append(quantiser.codes(latents).numpy().astype(np.uint16))
        frames.append(block["frames"])
    all_codes = np.concatenate(codes)
    np.savez(args.work / "codes.npz", codes=all_codes, frames=np.concatenate(frames))
    print(f"{len(all_codes):,} frames, {all_codes.max(axis=0)} highest codes")


if __name__ == "__main__":
    main()
