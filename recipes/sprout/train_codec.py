"""Step 3: train the codec on the speech of step 2.

Writes `codec.pt` (weights, averaged weights, optimiser, step) every few hundred steps and
`codec_log.csv`; started again, it goes on from there.
"""

import argparse
import copy
import math
import time
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from codec_model import FRAME_LEN, Codec, CodecSize
from torch import Tensor

CROP_FRAMES = 20  # 1.6 s
STFT_SIZES = (128, 256, 512, 1024, 2048)
AVERAGE_DECAY = 0.999
FULL_DEPTH_SHARE = 0.5  # of items that use every codebook; the rest use a random prefix


class Crops:
    """Random 1.6 s crops, starting on a frame, of the speech blocks."""

    def __init__(self, folder: Path, seed: int, blocks: int | None = None) -> None:
        self.rng = np.random.default_rng(seed)
        paths = sorted(folder.glob("[0-9]*.npz"))[:blocks]
        paths = [p for p in paths if ".part" not in p.name]
        self.samples = np.concatenate([np.load(p)["samples"] for p in paths])
        self.frames = len(self.samples) // FRAME_LEN

    def batch(self, size: int) -> Tensor:
        starts = self.rng.integers(0, self.frames - CROP_FRAMES, size) * FRAME_LEN
        crops = [self.samples[s : s + CROP_FRAMES * FRAME_LEN] for s in starts]
        return torch.from_numpy(np.stack(crops).astype(np.float32) / 32768)


def spectral_loss(guess: Tensor, target: Tensor) -> Tensor:
    """Complex, linear and logarithmic distance of spectra at several window lengths."""
    loss = guess.new_zeros(())
    for size in STFT_SIZES:
        window = torch.hann_window(size)
        a, b = (
            torch.stft(x, size, size // 4, window=window, return_complex=True)
            for x in (guess, target)
        )
        level = b.abs().mean() + 1e-4
        floor = 1e-2 * level
        loss = loss + (torch.view_as_real(a) - torch.view_as_real(b)).abs().mean() / level
        loss = loss + (a.abs() - b.abs()).abs().mean() / level
        loss = loss + ((a.abs() + floor).log() - (b.abs() + floor).log()).abs().mean()
    return loss / len(STFT_SIZES)


def learning_rate(step: int, steps: int, peak: float) -> float:
    warm = min(1.0, (step + 1) / 500)
    return peak * warm * (0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * min(1.0, step / steps))))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, required=True, help="folder of this recipe's files")
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--rate", type=float, default=1e-3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--blocks", type=int, help="use only this many speech blocks")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(1)

    codec = Codec(CodecSize())
    optimiser = torch.optim.AdamW(codec.parameters(), args.rate, (0.8, 0.99), weight_decay=0.01)
    first, path = 0, args.work / "codec.pt"
    averaged = copy.deepcopy(codec.state_dict())
    if path.exists():
        saved = torch.load(path, weights_only=True)
        codec.load_state_dict(saved["codec"])
        optimiser.load_state_dict(saved["optimiser"])
        averaged, first = saved["averaged"], saved["step"]
    crops = Crops(args.work / "speech", seed=first, blocks=args.blocks)
    parameters = sum(p.numel() for p in codec.parameters())
    print(f"{parameters:,} parameters, {crops.frames * 0.08 / 3600:.1f} hours, step {first}")

    size = codec.size
    used = torch.zeros(size.num_codebooks, size.codebook_size)
    started, sums = time.monotonic(), np.zeros(2)
    log = (args.work / "codec_log.csv").open("a")
    for step in range(first, args.steps):
        for group in optimiser.param_groups:
            group["lr"] = learning_rate(step, args.steps, args.rate)
        wave = crops.batch(args.batch)
        depth = torch.randint(1, size.num_codebooks + 1, (args.batch,))
        depth[torch.rand(args.batch) < FULL_DEPTH_SHARE] = size.num_codebooks
        with torch.autocast("cpu", torch.bfloat16):
            z = codec.encode(wave)
        with torch.autocast("cpu", enabled=False):
            quantised, codes, code_loss, residuals = codec.quantizer(z.float(), depth)
        with torch.autocast("cpu", torch.bfloat16):
            guess = codec.decode(quantised)
        guess = guess.float()
        loss = spectral_loss(guess, wave)
        total = loss + F.l1_loss(guess, wave) / wave.abs().mean() + 0.25 * code_loss
        optimiser.zero_grad(set_to_none=True)
        total.backward()
        torch.nn.utils.clip_grad_norm_(codec.parameters(), 1.0)
        optimiser.step()
        sums += loss.item(), code_loss.item()

        with torch.no_grad():
            decay = min(AVERAGE_DECAY, (step + 1) / (step + 10))
            for name, value in codec.state_dict().items():
                averaged[name].lerp_(value, 1 - decay)
            used *= 0.99
            for i, found in enumerate(codes):
                used[i] += torch.bincount(found.flatten(), minlength=size.codebook_size)
        if step % 100 == 99:
            for i, quantizer in enumerate(codec.quantizer.quantizers):
                unused = used[i] < 0.05
                if step < 0.6 * args.steps and unused.any():
                    quantizer.restart(unused, residuals[i])
                    used[i][unused] = 1.0
            books = (used > 0.5).sum(dim=1).tolist()
            seconds = (time.monotonic() - started) / 100
            print(
                f"{step + 1} spectral {sums[0] / 100:.3f} codes {sums[1] / 100:.3f} "
                f"used {books} {seconds:.2f} s",
                flush=True,
            )
            log.write(f"{step + 1},{sums[0] / 100:.4f},{sums[1] / 100:.4f}\n")
            log.flush()
            started, sums = time.monotonic(), np.zeros(2)
        if step % 500 == 499 or step + 1 == args.steps:
            state = {
                "codec": codec.state_dict(),
                "averaged": averaged,
                "optimiser": optimiser.state_dict(),
                "step": step + 1,
            }
            torch.save(state, path.with_suffix(".part"))
            path.with_suffix(".part").rename(path)


if __name__ == "__main__":
    main()
