"""One run of a program: the values of its buffers, and what several ops have in common."""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from mosstalk.compute.cuda.caches import StateCopies
from mosstalk.compute.cuda.weights import DeviceWeight
from mosstalk.compute.ops import Buffer, Weight

Product = Callable[[Tensor, DeviceWeight, Tensor | None], Tensor]


class Constants:
    """Numbers on a device, made when they are first asked for.

    That is in a program's first run, which no graph is made of: a copy from the host could not be
    captured. A number in a kernel's arguments would be as good, but `torch.where` takes tensors.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._made: dict[tuple[Any, ...], Tensor] = {}

    def get(self, dtype: torch.dtype, *values: float) -> Tensor:
        """A number, or a vector of several."""
        key = (dtype, *values)
        if key not in self._made:
            given = values[0] if len(values) == 1 else values
            self._made[key] = torch.tensor(given, dtype=dtype, device=self._device)
        return self._made[key]


class Run:
    """Buffers cut to the rows in use.

    Inputs, outputs and ids lie at fixed addresses (`fixed`); what is between them lives from the op
    that makes it to the last that reads it.
    """

    def __init__(
        self,
        fixed: Mapping[int, Tensor],
        weights: list[DeviceWeight],
        product: Product,
        constants: Constants,
        rows: int,
        copies: StateCopies | None,
        *,
        distinct_streams: bool,
    ) -> None:
        self._fixed = fixed
        self._weights = weights
        self._made: dict[int, Tensor] = {}
        self._shared: dict[tuple[Any, ...], Any] = {}
        self._copies = copies
        self.product = product
        self.constant = constants.get
        self.rows = rows
        self.distinct_streams = distinct_streams  # no two rows of the call are of one stream

    def __getitem__(self, buffer: Buffer) -> Tensor:
        """[rows * multiple, width]"""
        if buffer.index in self._made:
            return self._made[buffer.index]
        return self._fixed[buffer.index][: self.rows * buffer.multiple]

    def whole(self, buffer: Buffer) -> Tensor:
        """All rows that there are of it, those that are not in use included."""
        if buffer.index in self._made:
            return self._made[buffer.index]
        return self._fixed[buffer.index]

    def put(self, buffer: Buffer, value: Tensor) -> None:
        """The result of an op."""
        if buffer.index in self._fixed:
            self[buffer].copy_(value)
        else:
            self._made[buffer.index] = value

    def drop(self, index: int) -> None:
        """Free a buffer that nothing reads any more."""
        self._made.pop(index, None)

    def weight(self, weight: Weight) -> DeviceWeight:
        return self._weights[weight.index]

    def vector(self, weight: Weight | None) -> Tensor | None:
        """A bias, gain or scale in float32; None for none."""
        return None if weight is None else self._weights[weight.index].values

    @property
    def copies(self) -> StateCopies:
        """The state's; RuntimeError where the run was given none."""
        if self._copies is None:
            raise RuntimeError("this program needs a state")
        return self._copies

    def shared(self, key: tuple[Any, ...], make: Callable[[], Any]) -> Any:
        """What `make` gives, made once in a run: layers have the same masks, places and turns."""
        if key not in self._shared:
            self._shared[key] = make()
        return self._shared[key]

    def places(self, positions: Buffer, streams: Buffer, length: int) -> Tensor:
        """Where rows lie in a cache of `length` positions for each stream: int64 [n]."""

        def make() -> Tensor:
            at = torch.remainder(self[positions][:, 0], length)
            return (self[streams][:, 0] * length + at).long()

        made: Tensor = self.shared(("places", positions, streams, length), make)
        return made
