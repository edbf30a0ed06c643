"""Steps 6 and 7: train the two halves of the codec, each on fixed targets.

`--half decoder` learns speech from the codes of step 3; `--half encoder`, needed only for speaking
after a reference, learns the quantiser's latents from speech. Each writes `HALF.pt` (weights,
averaged weights, optimiser, minutes used) and `HALF_log.csv`; started again, it goes on from
there. The learning rate follows the clock.
"""

import argparse
import copy
import random
import time
from pathlib import Path

import numpy as np
import quantiser
import torch
import torch.nn.functional as F
from codec_model import FRAME_LEN, Codec, CodecSize
from optimise import half_precision, optimisers, schedule, take_step, use_device
from torch import Tensor, nn
from vocoder import render

CROP_FRAMES = 16
STFT_SIZES = (128, 256, 512, 1024)
STFTS_A_STEP = 2  # chosen at random: they are a large part of the work
AVERAGE_DECAY = 0.998
SAVE_SECONDS = 120
RENDERED_AT_ONCE = 1000  # frames


class Crops:
    """Random crops of 16 frames of the corpus: samples, latents and codes.

    The speech is what the vocoder makes of the codes themselves: all of it can be learnt.
    """

    def __init__(self, work: Path, num_frames: int, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        fitted = quantiser.load(work)
        stored = np.load(work / "codes.npz")["codes"][:num_frames]
        self.codes = torch.from_numpy(stored.astype(np.int64))
        self.latents = fitted.decoded(self.codes)
        pieces = self.codes.split(RENDERED_AT_ONCE)
        samples = np.concatenate([render(fitted.parameters(piece)) for piece in pieces])
        self.samples = (samples * 32767).clip(-32768, 32767).astype(np.int16)
        self.samples = self.samples.reshape(-1, FRAME_LEN)

    def batch(self, size: int) -> tuple[Tensor, ...]:
        """Samples [batch, samples], latents [batch, frames, 64], codes [batch, frames, books]."""
        first = self.rng.integers(0, len(self.samples) - CROP_FRAMES, size)
        frames = first[:, None] + np.arange(CROP_FRAMES)
        wave = self.samples[frames].reshape(size, -1).astype(np.float32) / 32768
        device = torch.get_default_device()
        chosen = torch.from_numpy(wave), self.latents[frames], self.codes[frames]
        return tuple(tensor.to(device) for tensor in chosen)


def spectral_loss(guess: Tensor, target: Tensor) -> Tensor:
    """Complex and logarithmic distance of spectra at two of the window lengths."""
    loss = guess.new_zeros(())
    for size in random.sample(STFT_SIZES, STFTS_A_STEP):
        window = torch.hann_window(size)
        a, b = (
            torch.stft(x, size, size // 4, window=window, return_complex=True)
            for x in (guess, target)
        )
        level = b.abs().mean() + 1e-4
        floor = 1e-2 * level
        loss = loss + (torch.view_as_real(a) - torch.view_as_real(b)).abs().mean() / level
        loss = loss + ((a.abs() + floor).log() - (b.abs() + floor).log()).abs().mean()
    return loss / STFTS_A_STEP


def decoder_loss(codec: Codec, batch: tuple[Tensor, ...]) -> Tensor:
    """The first frame of a crop misses what came before and is not counted."""
    wave, _, codes = batch
    with half_precision():
        guess = codec.decode(codec.quantizer.decode(codes.permute(2, 0, 1)))
    return spectral_loss(guess.float()[:, FRAME_LEN:], wave[:, FRAME_LEN:])


def encoder_loss(codec: Codec, batch: tuple[Tensor, ...]) -> Tensor:
    wave, latents, _ = batch
    with half_precision():
        z = codec.encode(wave)
    guess = codec.quantizer.input_proj(z.float()).transpose(1, 2)
    return F.mse_loss(guess[:, 1:], latents[:, 1:]) * latents.shape[-1]


@torch.no_grad()
def start_on_unit_variance(projection: nn.Module, scale: Tensor) -> None:
    """Let the decoder's first layer see latents of standard deviation `scale` [64] as equals."""
    weight = projection.parametrizations.weight
    rows = weight.original1 / scale[None, :, None] * 0.5
    weight.original1.copy_(rows)
    weight.original0.copy_(rows.norm(dim=1, keepdim=True))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, required=True, help="folder of this recipe's files")
    parser.add_argument("--half", choices=("decoder", "encoder"), required=True)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--frames", type=int, default=60_000, help="frames trained on")
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--rate", type=float, default=1.5e-3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    args = parser.parse_args()
    use_device(args.device, args.threads)
    torch.manual_seed(1)
    path = args.work / f"{args.half}.pt"
    codec = Codec(CodecSize())
    codec.quantizer.set_books(quantiser.load(args.work))
    device = torch.get_default_device()
    saved = torch.load(path, device, weights_only=True) if path.exists() else None
    step, used = (saved["step"], saved["used"]) if saved else (0, 0.0)
    crops = Crops(args.work, args.frames, seed=step)
    part = codec.half(args.half)
    if args.half == "decoder":
        start_on_unit_variance(codec.quantizer.output_proj, crops.latents.std(dim=0).to(device))
    chosen = optimisers(part)
    averaged = copy.deepcopy(part.state_dict())
    if saved:
        part.load_state_dict(saved["part"])
        for optimiser, state in zip(chosen, saved["optimisers"], strict=True):
            optimiser.load_state_dict(state)
        averaged = saved["averaged"]
    print(f"{sum(p.numel() for p in part.parameters()):,} parameters, step {step}", flush=True)

    loss_of = decoder_loss if args.half == "decoder" else encoder_loss
    total, last_save = 0.0, time.monotonic()
    log = (args.work / f"{args.half}_log.csv").open("a")
    while used < 60 * args.minutes:
        started = time.monotonic()
        loss = loss_of(codec, crops.batch(args.batch))
        rate = args.rate * schedule(step, used / (60 * args.minutes))
        take_step(part, chosen, loss, rate)
        step += 1
        decay = min(AVERAGE_DECAY, step / (step + 10))
        for name, value in part.state_dict().items():
            averaged[name].lerp_(value, 1 - decay)
        total += loss.item()
        used += time.monotonic() - started
        if step % 50 == 0:
            print(f"{step} {used / 60:.1f} min {total / 50:.4f}", flush=True)
            log.write(f"{step},{used / 60:.2f},{total / 50:.4f}\n")
            log.flush()
            total = 0.0
        if used >= 60 * args.minutes or time.monotonic() - last_save > SAVE_SECONDS:
            state = {"part": part.state_dict(), "averaged": averaged, "step": step, "used": used}
            state["optimisers"] = [optimiser.state_dict() for optimiser in chosen]
            torch.save(state, path.with_suffix(".part"))
            path.with_suffix(".part").rename(path)
            last_save = time.monotonic()


if __name__ == "__main__":
    main()
