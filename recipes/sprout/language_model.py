"""MOSS-TTS-Nano in PyTorch, for training at small size; names are those of the published weights.

A row is a text id and `num_books` audio ids. The global transformer reads rows, the local one turns
each of its outputs into continue or stop and then the codes of a frame, one after another.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

CONTINUE, STOP, REFERENCE = 9, 7, 8  # text ids; 8 marks reference frames
HEAD_DIM = 64

KeyValues = list[tuple[Tensor, Tensor]]  # for each layer, [batch, heads, time, 64]


@dataclass(frozen=True)
class ModelSize:
    vocab: int
    width: int = 192
    layers: int = 5
    local_layers: int = 1
    num_books: int = 3
    book_len: int = 512


def _rope(x: Tensor, start: int) -> Tensor:
    """Rotate pairs (2i, 2i+1) of [batch, time, heads, 64] by position; base 10,000."""
    time, dim = x.shape[1], x.shape[3]
    inverse = 10_000 ** (-torch.arange(0, dim, 2, dtype=torch.float32) / dim)
    angle = torch.arange(start, start + time, dtype=torch.float32)[:, None, None] * inverse
    turn = torch.polar(torch.ones_like(angle), angle)  # real arithmetic takes three times as long
    pairs = torch.view_as_complex(x.float().unflatten(-1, (-1, 2)))
    return torch.view_as_real(pairs * turn).flatten(-2).to(x.dtype)


class Attention(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.c_attn = nn.Linear(width, 3 * width)
        self.c_proj = nn.Linear(width, width)
        self.keep_weights = False
        self.weights: Tensor | None = None  # [batch, heads, time, past and time], if kept

    def forward(
        self, x: Tensor, past: tuple[Tensor, Tensor] | None
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        batch, time, width = x.shape
        start = past[0].shape[2] if past else 0
        qkv = self.c_attn(x).view(batch, time, 3, -1, HEAD_DIM)
        qk = _rope(qkv[:, :, :2].flatten(2, 3), start).unflatten(2, (2, -1))
        q, k = qk.permute(2, 0, 3, 1, 4)
        v = qkv[:, :, 2].transpose(1, 2)
        if past:
            k = torch.cat([past[0].expand(batch, -1, -1, -1), k], dim=2)
            v = torch.cat([past[1].expand(batch, -1, -1, -1), v], dim=2)
        # written out: on the CPU the fused kernel is slower for so short sequences
        mask = torch.full((time, start + time), -1e9).triu(start + 1).to(q.dtype)
        weights = torch.softmax(q @ k.transpose(2, 3) * HEAD_DIM**-0.5 + mask, -1, torch.float32)
        self.weights = weights if self.keep_weights else None
        y = weights.to(v.dtype) @ v
        return self.c_proj(y.transpose(1, 2).reshape(batch, time, width)), (k, v)


class Mlp(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.fc_in = nn.Linear(width, 4 * width)
        self.fc_out = nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        return self.fc_out(F.gelu(self.fc_in(x), approximate="tanh"))


class Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attn, self.mlp = Attention(width), Mlp(width)

    def forward(
        self, x: Tensor, past: tuple[Tensor, Tensor] | None
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        y, present = self.attn(self.ln_1(x), past)
        x = x + y
        return x + self.mlp(self.ln_2(x)), present


class Transformer(nn.Module):
    def __init__(self, width: int, layers: int) -> None:
        super().__init__()
        self.h = nn.ModuleList(Block(width) for _ in range(layers))
        self.ln_f = nn.LayerNorm(width)

    def forward(self, x: Tensor, past: KeyValues | None = None) -> tuple[Tensor, KeyValues]:
        """[batch, time, width] after `past`, to the outputs and the keys and values so far."""
        present = []
        for i, block in enumerate(self.h):
            x, layer = block(x, past[i] if past else None)
            present.append(layer)
        return self.ln_f(x), present


class LanguageModel(nn.Module):
    def __init__(self, size: ModelSize) -> None:
        super().__init__()
        self.size = size
        self.transformer = Transformer(size.width, size.layers)
        self.transformer.wte = nn.Embedding(size.vocab, size.width)
        self.local_transformer = Transformer(size.width, size.local_layers)
        self.audio_embeddings = nn.ModuleList(
            nn.Embedding(size.book_len, size.width) for _ in range(size.num_books)
        )
        for name, weight in self.named_parameters():
            if weight.dim() == 2:
                scale = 0.02 / (2 * size.layers) ** 0.5 if "proj" in name or "out" in name else 0.02
                nn.init.normal_(weight, std=0.04 if "wte" in name or "audio" in name else scale)

    def embed(self, text: Tensor, codes: Tensor | None = None) -> Tensor:
        """Text ids [...] and codes [..., books] (none where the book's length) to vectors."""
        rows = self.transformer.wte(text)
        if codes is not None:
            for book, embedding in enumerate(self.audio_embeddings):
                code = codes[..., book]
                there = (code < self.size.book_len)[..., None]
                rows = rows + embedding(code.clamp(max=self.size.book_len - 1)) * there
        return rows

    def local_rows(self, hidden: Tensor, codes: Tensor) -> Tensor:
        """Inputs of the local transformer, [n, 1 + books, width]: output, 9, all codes but one."""
        go = self.transformer.wte.weight[CONTINUE].expand_as(hidden)
        embedded = [e(codes[:, i]) for i, e in enumerate(self.audio_embeddings[:-1])]
        return torch.stack([hidden, go.to(hidden.dtype), *embedded], dim=1)

    def gate_logits(self, local: Tensor) -> Tensor:
        """[n, 2]: continue and stop."""
        return local @ self.transformer.wte.weight[[CONTINUE, STOP]].T

    def code_logits(self, local: Tensor, book: int) -> Tensor:
        return local @ self.audio_embeddings[book].weight.T
