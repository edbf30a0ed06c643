"""Speech of the trained voice in PyTorch: sample codes, decode them."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import quantiser
import torch
from codec_model import Codec, CodecSize
from language_model import CONTINUE, LanguageModel, ModelSize
from numpy.typing import NDArray
from prompt import Prompts
from torch import Tensor

MAX_FRAMES = 300


@dataclass(frozen=True)
class Sampling:
    temperature: float = 0.8
    top_k: int = 25
    top_p: float = 0.95
    penalty: float = 1.0


class Voice:
    def __init__(self, work: Path) -> None:
        size = ModelSize(vocab=0)
        self._prompts = Prompts(work / "tokenizer.model", size.num_books, size.book_len)
        self.model = load_language_model(work, self._prompts.vocab)
        self.codec = load_codec(work)

    @torch.inference_mode()
    def codes(self, text: str, sampling: Sampling, reference: NDArray | None = None) -> Tensor:
        """[frames, books]"""
        model, size = self.model, self.model.size
        rows = torch.from_numpy(self._prompts.shared(reference))[None]
        _, past = model.transformer(model.embed(rows[..., 0], rows[..., 1:]))
        x = model.embed(torch.tensor([self._prompts.text(text)]))
        frames: list[list[int]] = []
        while len(frames) < MAX_FRAMES:
            hidden, past = model.transformer(x, past)
            local, local_past = model.local_transformer(hidden[:, -1:])
            if int(torch.multinomial(model.gate_logits(local[0]).softmax(-1), 1)) == 1:
                break
            row = model.transformer.wte.weight[CONTINUE].view(1, 1, -1)
            frame: list[int] = []
            for book in range(size.num_books):
                local, local_past = model.local_transformer(row, local_past)
                logits = model.code_logits(local[0, 0], book)
                code = sample(logits, sampling, {f[book] for f in frames})
                frame.append(code)
                row = model.audio_embeddings[book].weight[code].view(1, 1, -1)
            frames.append(frame)
            x = model.embed(torch.tensor([[CONTINUE]]), torch.tensor([[frame]]))
        return torch.tensor(frames).view(-1, size.num_books)

    @torch.inference_mode()
    def encode(self, samples: NDArray[np.float32]) -> Tensor:
        """[frames, books]"""
        z = self.codec.encode(torch.from_numpy(samples)[None])
        return self.codec.quantizer.encode(z)[:, 0].T

    @torch.inference_mode()
    def speech(self, codes: Tensor) -> NDArray[np.float32]:
        return self.codec.decode(self.codec.quantizer.decode(codes.T[:, None]))[0].numpy()


def sample(logits: Tensor, sampling: Sampling, spoken: set[int]) -> int:
    """One code of `logits` [codes], in the order of the published sampler."""
    seen = torch.tensor(sorted(spoken), dtype=torch.long)
    values = logits[seen]
    penalised = torch.where(values < 0, values * sampling.penalty, values / sampling.penalty)
    logits = logits.index_copy(0, seen, penalised)
    if sampling.temperature == 0:
        return int(logits.argmax())
    top, order = (logits / sampling.temperature).topk(sampling.top_k)
    chances = top.softmax(-1)
    chances = torch.where(chances.cumsum(-1) - chances > sampling.top_p, 0.0, chances)
    return int(order[torch.multinomial(chances, 1)])


def load_language_model(work: Path, vocab: int) -> LanguageModel:
    model = LanguageModel(ModelSize(vocab=vocab))
    saved = torch.load(work / "language_model.pt", weights_only=True)
    model.load_state_dict(saved["averaged"])
    return model.eval()


def load_codec(work: Path) -> Codec:
    """The codec with the halves trained so far."""
    codec = Codec(CodecSize())
    codec.quantizer.set_books(quantiser.load(work))
    for half in ("encoder", "decoder"):
        path = work / f"{half}.pt"
        if path.exists():
            codec.half(half).load_state_dict(torch.load(path, weights_only=True)["averaged"])
    return codec.eval()
