"""The optimisers, the learning rate and the device of all trainings here."""

from collections.abc import Iterable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

WARM_STEPS = 100
DECAY_FROM = 0.6  # share of the time at the full rate; then straight down to nothing
WEIGHT_DECAY = 0.03


def optimisers(module: nn.Module, tables: tuple[str, ...] = ()) -> list[torch.optim.Optimizer]:
    """Muon for matrices, AdamW for all else and for embeddings, whose names hold one of `tables`.

    Muon makes the steps in all directions of a matrix equally long. Its rate is scaled to be right
    where AdamW's is.
    """
    matrices, others = [], []
    for name, parameter in module.named_parameters():
        is_table = any(table in name for table in tables)
        (matrices if parameter.dim() == 2 and not is_table else others).append(parameter)
    return [
        torch.optim.Muon(
            matrices, weight_decay=WEIGHT_DECAY, adjust_lr_fn="match_rms_adamw", ns_steps=5
        ),
        torch.optim.AdamW(others, betas=(0.9, 0.98), weight_decay=0.0),
    ]


def schedule(step: int, progress: float) -> float:
    """The factor of the learning rate at a step, after `progress` (0 to 1) of the time."""
    left = (1.0 - progress) / (1.0 - DECAY_FROM)
    return min(1.0, (step + 1) / WARM_STEPS) * min(1.0, max(left, 0.01))


def take_step(
    module: nn.Module, chosen: list[torch.optim.Optimizer], loss: Tensor, rate: float
) -> None:
    """One step down `loss` at the learning rate `rate`, with gradients of at most length 1."""
    for optimiser in chosen:
        for group in optimiser.param_groups:
            group["lr"] = rate
        optimiser.zero_grad(set_to_none=True)
    loss.backward()
    nn.utils.clip_grad_norm_(module.parameters(), 1.0)
    for optimiser in chosen:
        optimiser.step()


def use_device(name: str, threads: int) -> None:
    """Let new tensors live on `name` ("cpu" or "cuda"), and the CPU work on so many threads."""
    torch.set_num_threads(threads)
    if name != "cpu":
        torch.set_default_device(name)


def on_device(arrays: Iterable[NDArray[np.generic]]) -> tuple[Tensor, ...]:
    device = torch.get_default_device()
    return tuple(torch.from_numpy(array).to(device) for array in arrays)


def half_precision() -> torch.autocast:
    """Matrix products in bfloat16."""
    return torch.autocast(torch.get_default_device().type, torch.bfloat16)
