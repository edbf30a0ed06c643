"""Step 8: train the language model on the codes of every sentence.

Writes `language_model.pt` (weights, averaged weights, optimiser, minutes used) every two minutes
and `language_log.csv`; started again, it goes on from there. The learning rate follows the clock,
so that the run ends when `--minutes` are used up.
"""

import argparse
import copy
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from language_model import CONTINUE, LanguageModel, ModelSize
from numpy.typing import NDArray
from optimise import half_precision, on_device, optimisers, schedule, take_step, use_device
from prompt import Prompts
from torch import Tensor

ROWS_PER_BATCH = 2600
AVERAGE_DECAY = 0.999
CLONE_SHARE = 0.08  # of batches that have a reference before the text
JOINED_SHARE = 0.05  # of items that are two sentences one after the other
WRONG_CODE_SHARE = 0.1  # of input frames replaced, so that the model survives its own mistakes
LONGEST_TEXT = 75  # tokens, with the 18 of the template after it
SAVE_SECONDS = 120
# Guided attention: heads that look at the letter being spoken and two letters on (whose own
# vector knows the one between: text rows see only what is left of them).
GUIDED_LAYERS = (2, 3)
GUIDED_HEADS = ((0, 0), (1, 2))  # head, letters on
# Gate, books, guide. The first book is nearly all of what is understood.
WEIGHTS = torch.tensor([1.0, 1.0, 0.3, 0.3, 1.0])


Item = tuple[list[int], NDArray, NDArray]


class Corpus:
    """Sentences as text ids, codes [frames, books] and the text token of every frame."""

    def __init__(self, work: Path, prompts: Prompts) -> None:
        stored = np.load(work / "codes.npz")
        ends = np.cumsum(stored["frames"])
        self.codes = np.split(stored["codes"].astype(np.int64), ends[:-1])
        aligned = np.load(work / "alignment.npz")["tokens"].astype(np.int64)
        self.tokens = np.split(aligned, ends[:-1])
        texts = (work / "sentences.txt").read_text("utf-8").splitlines()[: len(ends)]
        self.texts = texts
        self.text_lens = np.array([len(prompts.text(text)) for text in texts])
        self.prompts = prompts

    def batches(self, rng: np.random.Generator) -> Iterator[list[Item]]:
        """One pass over the sentences in batches of like length."""
        order = rng.permutation(np.flatnonzero(self.text_lens <= LONGEST_TEXT))
        items: list[tuple[int, ...]] = []
        while len(order):
            count = 2 if rng.random() < JOINED_SHARE else 1
            items.append(tuple(order[:count]))
            order = order[count:]
        lens = [sum(self.text_lens[i] + len(self.codes[i]) for i in item) for item in items]
        lens = np.array(lens) + rng.uniform(0, 8, len(lens))
        by_len, batches, batch = np.argsort(lens), [], []
        for index in by_len:
            batch.append(items[index])
            if lens[index] * len(batch) > ROWS_PER_BATCH:
                batches.append(batch)
                batch = []
        for i in rng.permutation(len(batches)):
            yield [self._item(item) for item in batches[i]]

    def _item(self, item: tuple[int, ...]) -> Item:
        text = " ".join(self.texts[i] for i in item)
        before = np.cumsum([0, *(self.prompts.text_len(self.texts[i]) for i in item)])
        tokens = [self.tokens[i] + start for i, start in zip(item, before, strict=False)]
        codes = [self.codes[i] for i in item]
        return self.prompts.text(text), np.concatenate(codes), np.concatenate(tokens)

    def reference(self, rng: np.random.Generator) -> NDArray:
        frames = self.codes[rng.integers(len(self.codes))]
        return frames[: rng.integers(12, 60)]


def collate(batch: list[Item], size: ModelSize, rng: np.random.Generator) -> tuple[Tensor, ...]:
    """Text ids [batch, rows], input codes [batch, rows, books], and where frames are decided.

    The last three: row of every decision in the flattened batch [n], its codes [n, books], -1
    where the decision is to stop, and its text token with the last one of the text [n, 2].
    """
    rows = max(len(ids) + len(codes) for ids, codes, _ in batch)
    text = np.full((len(batch), rows), 3)
    given = np.full((len(batch), rows, size.num_books), size.book_len)
    where, wanted, spoken = [], [], []
    for i, (ids, codes, tokens) in enumerate(batch):
        first = len(ids)
        text[i, :first] = ids
        text[i, first : first + len(codes)] = CONTINUE
        wrong = rng.random(len(codes)) < WRONG_CODE_SHARE
        inputs = np.where(wrong[:, None], codes[rng.permutation(len(codes))], codes)
        given[i, first : first + len(codes)] = inputs
        where.append(i * rows + first - 1 + np.arange(len(codes) + 1))
        wanted.append(np.concatenate([codes, np.full((1, size.num_books), -1)]))
        tokens = np.append(tokens, tokens[-1])
        spoken.append(np.stack([tokens, np.full(len(tokens), tokens[-1])], axis=1))
    tensors = text, given, np.concatenate(where), np.concatenate(wanted), np.concatenate(spoken)
    return on_device(tensors)


def losses(model: LanguageModel, hidden: Tensor, wanted: Tensor) -> Tensor:
    """Cross-entropy of the gate and of each book, [1 + books]."""
    local, _ = model.local_transformer(model.local_rows(hidden, wanted.clamp(min=0)))
    stop = (wanted[:, 0] < 0).long()
    parts = [F.cross_entropy(model.gate_logits(local[:, 0]).float(), stop)]
    for book in range(model.size.num_books):
        logits = model.code_logits(local[:, 1 + book], book).float()
        parts.append(F.cross_entropy(logits, wanted[:, book], ignore_index=-1))
    return torch.stack(parts)


def guide_loss(weights: Tensor, where: Tensor, spoken: Tensor, num_shared: int) -> Tensor:
    """How far the guided heads look from the letters being spoken."""
    rows = weights.shape[2]
    item, row = where // rows, where % rows
    parts = []
    for head, ahead in GUIDED_HEADS:
        token = torch.minimum(spoken[:, 0] + ahead, spoken[:, 1])
        parts.append(-(weights[item, head, row, num_shared + token] + 1e-4).log().mean())
    return torch.stack(parts).mean()


def batch_losses(model: LanguageModel, shared: NDArray, tensors: tuple[Tensor, ...]) -> Tensor:
    """Losses of the gate, the books and the guided attention, [2 + books].

    The template's keys and values are computed once and shared by the batch.
    """
    text, given, where, wanted, spoken = tensors
    rows = on_device([shared])[0][None]
    guided = [model.transformer.h[i].attn for i in GUIDED_LAYERS]
    with half_precision():
        _, past = model.transformer(model.embed(rows[..., 0], rows[..., 1:]))
        for attention in guided:
            attention.keep_weights = True
        hidden, _ = model.transformer(model.embed(text, given), past)
        guides = [guide_loss(a.weights, where, spoken, len(shared)) for a in guided]
        for attention in guided:
            attention.keep_weights, attention.weights = False, None
        parts = losses(model, hidden.flatten(0, 1)[where], wanted)
    return torch.cat([parts, torch.stack(guides).mean()[None]])


class Trainer:
    def __init__(self, work: Path, minutes: float, rate: float, size: ModelSize) -> None:
        self.path, self.minutes, self.rate = work / "language_model.pt", minutes, rate
        self.model = LanguageModel(size)
        self.optimisers = optimisers(self.model, ("wte", "audio_embeddings"))
        self.averaged = copy.deepcopy(self.model.state_dict())
        self.step, self.used = 0, 0.0  # seconds
        if self.path.exists():
            saved = torch.load(self.path, torch.get_default_device(), weights_only=True)
            self.model.load_state_dict(saved["model"])
            for optimiser, state in zip(self.optimisers, saved["optimisers"], strict=True):
                optimiser.load_state_dict(state)
            self.averaged = saved["averaged"]
            self.step, self.used = saved["step"], saved["used"]

    def learn(self, loss: Tensor, started: float) -> None:
        rate = self.rate * schedule(self.step, self.used / (60 * self.minutes))
        take_step(self.model, self.optimisers, loss, rate)
        self.step += 1
        decay = min(AVERAGE_DECAY, self.step / (self.step + 20))
        with torch.no_grad():
            for name, value in self.model.state_dict().items():
                self.averaged[name].lerp_(value, 1 - decay)
        self.used += time.monotonic() - started

    def save(self) -> None:
        state = {
            "model": self.model.state_dict(),
            "averaged": self.averaged,
            "optimisers": [o.state_dict() for o in self.optimisers],
            "step": self.step,
            "used": self.used,
        }
        torch.save(state, self.path.with_suffix(".part"))
        self.path.with_suffix(".part").rename(self.path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, required=True, help="folder of this recipe's files")
    parser.add_argument("--minutes", type=float, default=55)
    parser.add_argument("--rate", type=float, default=2e-3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    args = parser.parse_args()
    use_device(args.device, args.threads)
    torch.manual_seed(1)
    size = ModelSize(vocab=0)
    prompts = Prompts(args.work / "tokenizer.model", size.num_books, size.book_len)
    size = ModelSize(vocab=prompts.vocab)
    corpus = Corpus(args.work, prompts)
    trainer = Trainer(args.work, args.minutes, args.rate, size)
    rng = np.random.default_rng(trainer.step)
    parameters = sum(p.numel() for p in trainer.model.parameters())
    print(
        f"{parameters:,} parameters, {len(corpus.texts):,} sentences, step {trainer.step}",
        flush=True,
    )

    log = (args.work / "language_log.csv").open("a")
    sums, saved = np.zeros(2 + size.num_books), time.monotonic()
    while trainer.used < 60 * args.minutes:
        for batch in corpus.batches(rng):
            started = time.monotonic()
            reference = corpus.reference(rng) if rng.random() < CLONE_SHARE else None
            tensors = collate(batch, size, rng)
            parts = batch_losses(trainer.model, prompts.shared(reference), tensors)
            trainer.learn(parts @ WEIGHTS.to(parts), started)
            sums += parts.detach().float().cpu().numpy()
            if trainer.step % 50 == 0:
                figures = ",".join(f"{value:.4f}" for value in sums / 50)
                print(f"{trainer.step} {trainer.used / 60:.1f} min {figures}", flush=True)
                log.write(f"{trainer.step},{trainer.used / 60:.2f},{figures}\n")
                log.flush()
                sums[:] = 0
            done = trainer.used >= 60 * args.minutes
            if done or time.monotonic() - saved > SAVE_SECONDS:
                trainer.save()
                saved = time.monotonic()
            if done:
                return


if __name__ == "__main__":
    main()
