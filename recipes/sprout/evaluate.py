"""Step 10: the share of wrong words that PocketSphinx hears in 100 sentences never trained on.

Every stage adds its errors to those of the one before: flite's own speech, the vocoder, the
codebooks, the codec's decoder (and the encoder before it), and the voice as a user hears it,
spoken by mosstalk's engine with its default sampling from the float32 export and from the q8_0
file. Writes `evaluation.csv`, and the curves of the trainings and of all evaluations so far
(`curves.svg`).
"""

import argparse
import csv
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import quantiser
import soundfile
import torch
from curves import draw
from judge import Judge, word_errors, words
from numpy.typing import NDArray
from speech import speak
from trained import load_codec
from vocoder import SAMPLE_RATE, render

import mosstalk

SENTENCES = Path(__file__).with_name("unseen_sentences.txt")


@dataclass(frozen=True)
class Spoken:
    """One sentence: its samples, and whether the stop gate ended it (true where there is none)."""

    samples: NDArray[np.float32]
    stopped: bool = True


Speak = Callable[[int, str], Spoken]


def flite(_: int, text: str) -> Spoken:
    with tempfile.NamedTemporaryFile(suffix=".wav") as file:
        subprocess.run(["flite", "-voice", "slt", "-t", text, "-o", file.name], check=True)
        samples, rate = soundfile.read(file.name, dtype="float32")
    assert rate == SAMPLE_RATE
    return Spoken(samples)


def vocoder(_: int, text: str) -> Spoken:
    return Spoken(render(speak(text)))


def true_codes(fitted: quantiser.Quantiser, text: str) -> torch.Tensor:
    spoken = speak(text)
    return fitted.codes(fitted.latents(spoken.mel_cepstra, spoken.voicing, spoken.periods))


def codebooks(work: Path) -> Speak:
    fitted = quantiser.load(work)
    return lambda _, text: Spoken(render(fitted.parameters(true_codes(fitted, text))))


def decoder(work: Path) -> Speak:
    fitted, codec = quantiser.load(work), load_codec(work)

    @torch.inference_mode()
    def spoken(_: int, text: str) -> Spoken:
        codes = true_codes(fitted, text).T[:, None]
        return Spoken(codec.decode(codec.quantizer.decode(codes))[0].numpy())

    return spoken


def encoder(work: Path) -> Speak:
    """The codes that the encoder finds in the vocoder's speech, through the decoder."""
    codec = load_codec(work)

    @torch.inference_mode()
    def spoken(_: int, text: str) -> Spoken:
        heard = torch.from_numpy(render(speak(text)))[None]
        codes = codec.quantizer.encode(codec.encode(heard))
        return Spoken(codec.decode(codec.quantizer.decode(codes))[0].numpy())

    return spoken


def engine(path: Path) -> Speak:
    """What `mosstalk say --model PATH --seed NUMBER` says; the number is the sentence's."""
    speaker = mosstalk.load(path, threads=1)

    def spoken(number: int, text: str) -> Spoken:
        speech = speaker.say(text, seed=number)
        return Spoken(speech.samples[0], speech.summary.stop_reason == "end")

    return spoken


def row(
    name: str, say: Speak, judge: Judge, texts: list[str], flite_seconds: float | None
) -> dict[str, object]:
    errors = said = stopped = num_samples = 0
    for number, text in enumerate(texts):
        spoken = say(number, text)
        errors += word_errors(text, judge.hear(spoken.samples))
        said += len(words(text))
        stopped += spoken.stopped
        num_samples += len(spoken.samples)
    seconds = num_samples / SAMPLE_RATE
    return {
        "speech": name,
        "word_error_rate": round(errors / said, 4),
        "stopped_percent": round(100 * stopped / len(texts), 1),
        "seconds": round(seconds, 2),
        "length_to_flite": round(seconds / flite_seconds, 3) if flite_seconds else "",
    }


def step_of(work: Path) -> int:
    path = work / "language_model.pt"
    return int(torch.load(path, weights_only=True)["step"]) if path.exists() else 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, required=True, help="folder of this recipe's files")
    parser.add_argument("--sentences", type=int, default=100, help="only the first so many")
    parser.add_argument("--rows", nargs="*", help="only these rows")
    parser.add_argument("--model", type=Path, action="append", default=[], help="and this model")
    args = parser.parse_args()
    work: Path = args.work
    torch.set_num_threads(1)
    rows: dict[str, Callable[[], Speak]] = {
        "flite": lambda: flite,
        "vocoder": lambda: vocoder,
        "codebooks": lambda: codebooks(work),
        "decoder": lambda: decoder(work),
        "encoder": lambda: encoder(work),
    }
    for name, path in (("f32", work / "export"), ("q8_0", work / "sprout.gguf")):
        if path.exists():
            rows[name] = lambda path=path: engine(path)
    rows |= {str(path): lambda path=path: engine(path) for path in args.model}

    texts = SENTENCES.read_text("utf-8").splitlines()[: args.sentences]
    judge, log, step = Judge(), work / "evaluation.csv", step_of(work)
    print(
        "| speech | word error rate | ended by the stop gate | length to flite |\n|---|---|---|---|"
    )
    flite_seconds = None
    for name in args.rows or rows:
        found = row(name, rows[name](), judge, texts, flite_seconds)
        if name == "flite":
            flite_seconds = float(found["seconds"])
            found["length_to_flite"] = 1.0
        rate, stopped = float(found["word_error_rate"]), found["stopped_percent"]
        print(f"| {name} | {rate:.1%} | {stopped:.0f} % | {found['length_to_flite']} |", flush=True)
        new = not log.exists()
        with log.open("a", newline="") as file:
            writer = csv.DictWriter(file, ["step", *found])
            if new:
                writer.writeheader()
            writer.writerow({"step": step, **found})
    (work / "curves.svg").write_text(draw(work), "utf-8")


if __name__ == "__main__":
    main()
