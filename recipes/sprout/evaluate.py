"""Step 9: how many words of unseen simple sentences PocketSphinx hears.

Sentences are spoken by the language model, with every set of sampling values given, or rebuilt:
with `--codec` from their true codes, with `--encoder` from the codes that the encoder finds in the
vocoder's speech. `--vocoder` puts the vocoder in place of the codec's decoder.
"""

import argparse
from pathlib import Path

import quantiser
import soundfile
import torch
from generate import Sampling, Voice
from judge import Judge, words, words_heard
from speech import speak
from vocoder import render

TEST_SENTENCES = Path(__file__).with_name("test_sentences.txt")


def true_codes(fitted: quantiser.Quantiser, text: str) -> torch.Tensor:
    spoken = speak(text)
    return fitted.codes(fitted.latents(spoken.mel_cepstra, spoken.voicing, spoken.periods))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, required=True, help="folder of this recipe's files")
    parser.add_argument("--codec", action="store_true")
    parser.add_argument("--encoder", action="store_true", help="like --codec, from heard speech")
    parser.add_argument("--vocoder", action="store_true", help="codes to speech by the vocoder")
    parser.add_argument(
        "--sampling",
        action="append",
        default=[],
        metavar="T,K,P,PENALTY",
        help="temperature, top-k, top-p and repetition penalty; may be repeated",
    )
    parser.add_argument("--show", action="store_true", help="print what was heard")
    parser.add_argument("--wav", type=Path, help="folder for the speech")
    args = parser.parse_args()
    torch.set_num_threads(1)
    voice, judge, fitted = Voice(args.work), Judge(), quantiser.load(args.work)
    texts = TEST_SENTENCES.read_text("utf-8").splitlines()
    no_model = args.codec or args.encoder
    for values in [None] if no_model else args.sampling or ["0.8,25,0.95,1.0"]:
        torch.manual_seed(1)
        right = said = frames = wanted = 0
        same = torch.zeros(voice.model.size.num_books)
        for i, text in enumerate(texts):
            truth = true_codes(fitted, text)
            if args.encoder:
                codes = voice.encode(render(speak(text)))
                same += (codes == truth).float().mean(dim=0) / len(texts)
            elif values is None:
                codes = truth
            else:
                t, k, p, penalty = map(float, values.split(","))
                codes = voice.codes(text, Sampling(t, int(k), p, penalty))
            samples = render(fitted.parameters(codes)) if args.vocoder else voice.speech(codes)
            heard = judge.hear(samples)
            right += words_heard(text, heard)
            said += len(words(text))
            frames += len(codes)
            wanted += len(truth)
            if args.show:
                print(f"{text} | {heard}")
            if args.wav:
                args.wav.mkdir(parents=True, exist_ok=True)
                soundfile.write(args.wav / f"{i:02d}.wav", samples, 16_000)
        name = values or (f"encoded, codes agree {same.tolist()}" if args.encoder else "true codes")
        print(f"{name}: {right / said:.3f} of words, {frames} frames for {wanted}", flush=True)


if __name__ == "__main__":
    main()
