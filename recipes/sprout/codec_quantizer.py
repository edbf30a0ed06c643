"""The codec's quantiser: the codebooks of `quantiser.py` in the published form."""

import torch
import torch.nn.functional as F
from quantiser import BOOK_LEN, NUM_AXES, NUM_SPECTRAL_BOOKS, PITCH_SCALE, Quantiser
from torch import Tensor, nn
from vocoder import MAX_PERIODS, MIN_PERIODS

RVQ_DIM = NUM_AXES + 1  # the last dimension is the pitch
CODEBOOK_DIM = NUM_AXES + 1  # the last dimension makes all rows equally long
NUM_BOOKS = NUM_SPECTRAL_BOOKS + 1


class Quantizer(nn.Module):
    """One residual codebook: project, look up by cosine, project back."""

    def __init__(self) -> None:
        super().__init__()
        weight_norm = torch.nn.utils.parametrizations.weight_norm
        self.in_proj = weight_norm(nn.Conv1d(RVQ_DIM, CODEBOOK_DIM, 1))
        self.out_proj = weight_norm(nn.Conv1d(CODEBOOK_DIM, RVQ_DIM, 1))
        self.codebook = nn.Embedding(BOOK_LEN, CODEBOOK_DIM)

    def encode(self, residual: Tensor) -> Tensor:
        """[batch, rvq_dim, time] to codes [batch, time]."""
        encoded = F.normalize(self.in_proj(residual), dim=1)
        return (encoded.transpose(1, 2) @ F.normalize(self.codebook.weight, dim=1).T).argmax(-1)

    def decode(self, codes: Tensor) -> Tensor:
        return self.out_proj(self.codebook(codes).transpose(1, 2))

    @torch.no_grad()
    def set_centres(self, centres: Tensor, first: int) -> None:
        """Let the lookup find the nearest of `centres` [n, dims], at dimensions `first` and on.

        Nearest by distance becomes nearest by angle through one more dimension, in which the
        projected vector has a constant and each row what makes all rows equally long.
        """
        dims = centres.shape[1]
        radius = 2 * centres.norm(dim=1).max()
        extra = (radius**2 - centres.square().sum(dim=1)).sqrt()
        rows = torch.zeros_like(self.codebook.weight)
        rows[:, -1] = -radius  # rows without a centre point away
        rows[: len(centres), :dims], rows[: len(centres), -1] = centres, extra
        self.codebook.weight.copy_(rows)
        chosen = torch.zeros(rows.shape[1], self.in_proj.weight.shape[1])
        chosen[range(dims), range(first, first + dims)] = 1.0
        for projection, matrix in ((self.in_proj, chosen), (self.out_proj, chosen.T)):
            gains = matrix.norm(dim=1)
            weight = projection.parametrizations.weight
            weight.original0.copy_(gains[:, None, None])
            direction = torch.where(gains[:, None] > 0, matrix, torch.ones_like(matrix))
            weight.original1.copy_(direction[..., None])
            projection.bias.zero_()
        self.in_proj.bias[-1] = radius


class ResidualQuantizer(nn.Module):
    def __init__(self, code_dim: int) -> None:
        super().__init__()
        weight_norm = torch.nn.utils.parametrizations.weight_norm
        self.input_proj = weight_norm(nn.Conv1d(code_dim, RVQ_DIM, 1))
        self.output_proj = weight_norm(nn.Conv1d(RVQ_DIM, code_dim, 1))
        self.quantizers = nn.ModuleList(Quantizer() for _ in range(NUM_BOOKS))

    @torch.no_grad()
    def set_books(self, quantiser: Quantiser) -> None:
        for book, quantizer in zip(quantiser.books, self.quantizers, strict=False):
            quantizer.set_centres(book, first=0)
        middle = (MIN_PERIODS + MAX_PERIODS) / 2
        pitches = torch.arange(MIN_PERIODS, MAX_PERIODS + 1) - middle
        self.quantizers[-1].set_centres(pitches[:, None] * PITCH_SCALE, first=NUM_AXES)

    def encode(self, z: Tensor) -> Tensor:
        """[batch, code_dim, time] to [codebooks, batch, time]."""
        residual, codes = self.input_proj(z), []
        for quantizer in self.quantizers:
            codes.append(quantizer.encode(residual))
            residual = residual - quantizer.decode(codes[-1])
        return torch.stack(codes)

    def decode(self, codes: Tensor) -> Tensor:
        """[codebooks, batch, time] to [batch, code_dim, time]."""
        parts = [q.decode(c) for q, c in zip(self.quantizers, codes, strict=True)]
        return self.output_proj(torch.stack(parts).sum(dim=0))
