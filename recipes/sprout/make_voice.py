"""All steps from nothing to `sprout.gguf`: with `--scale 0.01` in minutes, to see that they run.

The scale shortens the corpus and the trainings alike. `--stage` does a part: "prepare" writes all
that the trainings read and needs flite; "train" needs PyTorch alone, and may run on a graphics card
elsewhere; "finish" exports, converts and evaluates. What is there already is kept, so a run that
was stopped goes on. A stage finds the weights that another machine wrote to `--out` where they are
copied to `--work`.
"""

import argparse
import hashlib
import subprocess
import sys
from pathlib import Path

import torch

HERE = Path(__file__).parent
STAGES = ("prepare", "train", "finish")
PREPARED = {
    "speech.py": "speech/done",
    "quantiser.py": "codes.npz",
    "tokenizer.py": "tokenizer.model",
    "align_text.py": "alignment.npz",
}
TRAININGS = {  # checkpoint: script, full minutes on two cores
    "decoder": (["train_codec.py", "--half", "decoder"], 90.0),
    "encoder": (["train_codec.py", "--half", "encoder"], 8.0),
    "language_model": (["train_language_model.py"], 120.0),
}


def command(work: Path, script: str, *options: str) -> list[str]:
    return [sys.executable, str(HERE / script), "--work", str(work), *options]


def prepare(work: Path, scale: float) -> None:
    if not (work / "sentences.txt").exists():
        subprocess.run(command(work, "sentences.py", "--share", str(scale)), check=True)
    for script, written in PREPARED.items():
        if not (work / written).exists():
            subprocess.run(command(work, script), check=True)
    (work / "speech" / "done").touch()


def train(work: Path, minutes: float | None, scale: float, device: str, out: Path | None) -> None:
    """All trainings beside each other; `out` gets their weights alone, for the next stage."""
    running = []
    for script, full in TRAININGS.values():
        options = ["--minutes", str(minutes or full * scale), "--threads", "1", "--device", device]
        running.append(subprocess.Popen(command(work, *script, *options)))
    codes = [process.wait() for process in running]
    if any(codes):
        raise SystemExit("a training failed: see above")
    for name in TRAININGS if out else ():
        saved = torch.load(work / f"{name}.pt", "cpu", weights_only=True)
        torch.save({"averaged": saved["averaged"], "step": saved["step"]}, out / f"{name}.pt")


def finish(work: Path, sentences: int) -> None:
    subprocess.run(command(work, "export.py"), check=True)
    voice = work / "sprout.gguf"
    convert = [sys.executable, "-m", "mosstalk", "convert", str(work / "export")]
    convert += ["--out", str(voice), "--weight-type", "q8_0"]
    subprocess.run(convert, check=True)
    print(f"{voice}: {voice.stat().st_size:,} bytes", flush=True)
    print(f"SHA-256 {hashlib.sha256(voice.read_bytes()).hexdigest()}", flush=True)
    subprocess.run(command(work, "evaluate.py", "--sentences", str(sentences)), check=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, required=True, help="folder of this recipe's files")
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--stage", choices=STAGES, help="only this one")
    parser.add_argument("--device", default="cpu", help="of the trainings: cpu or cuda")
    parser.add_argument("--minutes", type=float, help="of every training, whatever the scale")
    parser.add_argument("--out", type=Path, help="folder for the trained weights alone")
    args = parser.parse_args()
    stages = [args.stage] if args.stage else STAGES
    if "prepare" in stages:
        prepare(args.work, args.scale)
    if "train" in stages:
        train(args.work, args.minutes, args.scale, args.device, args.out)
    if "finish" in stages:
        finish(args.work, max(2, round(100 * args.scale)))


if __name__ == "__main__":
    main()
