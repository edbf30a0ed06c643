"""Step 5: which letter each frame speaks, found by Viterbi training of a small hidden Markov model.

States are the text's tokens, from left to right; a frame stays on a token or moves on over up to
four silent ones; a token emits the first book's code. The language model's attention is guided by
the result, without which it takes far longer to find from letters to frames. Writes
`alignment.npz` (`tokens`: for each frame of all sentences, the index of its token in its text).
"""

import argparse
from pathlib import Path

import numpy as np
import sentencepiece
from numpy.typing import NDArray
from quantiser import BOOK_LEN

MOVES = np.log([0.2, 0.5, 0.2, 0.07, 0.02, 0.01])  # tokens passed in a frame
ROUNDS, FIT_SENTENCES = 6, 3000
SMOOTHING = 0.2  # added to the counts of a token's codes
NEVER = -1e9


def viterbi(emission: NDArray[np.float64]) -> NDArray[np.int64]:
    """The best token of every frame, [frames], of log chances [frames, tokens]."""
    frames, tokens = emission.shape
    reach = len(MOVES) - 1
    score = np.full(reach + tokens, NEVER)
    score[reach] = emission[0, 0]
    back = np.zeros((frames, tokens), np.int64)
    columns = np.arange(tokens)
    for f in range(1, frames):
        came = np.stack([score[reach - m : reach - m + tokens] + w for m, w in enumerate(MOVES)])
        back[f] = came.argmax(axis=0)
        score[reach:] = came[back[f], columns] + emission[f]
    path = np.zeros(frames, np.int64)
    path[-1] = tokens - 1 if score[-1] > NEVER / 2 else score[reach:].argmax()
    for f in range(frames - 1, 0, -1):
        path[f - 1] = path[f] - back[f, path[f]]
    return path


def diagonal(frames: int, tokens: int) -> NDArray[np.int64]:
    return np.minimum((np.arange(frames) + 0.5) * tokens / frames, tokens - 1).astype(int)


def log_chances(
    texts: list[NDArray], codes: list[NDArray], paths: list[NDArray], vocab: int
) -> NDArray[np.float64]:
    """Log chances of every token's codes, [vocab, codes], counted along the paths."""
    counts = np.full((vocab, BOOK_LEN), SMOOTHING)
    for text, code, path in zip(texts, codes, paths, strict=False):
        np.add.at(counts, (text[path], code), 1.0)
    return np.log(counts / counts.sum(axis=1, keepdims=True))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, required=True, help="folder of this recipe's files")
    args = parser.parse_args()
    stored = np.load(args.work / "codes.npz")
    codes = np.split(stored["codes"][:, 0].astype(np.int64), np.cumsum(stored["frames"])[:-1])
    model = str(args.work / "tokenizer.model")
    tokenizer = sentencepiece.SentencePieceProcessor(model_file=model)
    sentences = (args.work / "sentences.txt").read_text("utf-8").splitlines()
    texts = [np.array(tokenizer.encode(text)) for text in sentences[: len(codes)]]
    paths = [
        diagonal(len(code), len(text))
        for text, code in zip(texts[:FIT_SENTENCES], codes, strict=False)
    ]
    for i in range(ROUNDS + 1):
        chances = log_chances(texts, codes, paths, tokenizer.vocab_size())
        fitted = texts if i == ROUNDS else texts[:FIT_SENTENCES]
        pairs = list(zip(fitted, codes, strict=False))
        paths = [viterbi(chances[text][:, code].T) for text, code in pairs]
        fit = np.mean([chances[t[p], c].mean() for (t, c), p in zip(pairs, paths, strict=True)])
        print(f"round {i}: {fit:.3f} nats a frame", flush=True)
    np.savez(args.work / "alignment.npz", tokens=np.concatenate(paths).astype(np.int16))
    for text, path in list(zip(texts, paths, strict=True))[:5]:
        print("".join(tokenizer.id_to_piece(int(i)) for i in text[path]))


if __name__ == "__main__":
    main()
