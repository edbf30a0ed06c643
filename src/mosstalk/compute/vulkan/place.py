"""Where an op's buffers and weights lie on the device: what the shaders' wrappers are given."""

from typing import Any, Protocol

from mosstalk.compute.ops import Buffer, Weight
from mosstalk.compute.vulkan.weights import Matrix


class Place(Protocol):
    """The device's memory of one program."""

    def buffer(self, buffer: Buffer) -> Any:
        """Float32 or int32, [max_rows * multiple, width]."""
        ...

    def vector(self, weight: Weight) -> Any:
        """A weight of one axis, as float32 whatever its storage type."""
        ...

    def matrix(self, weight: Weight) -> Matrix:
        """A weight of two axes, packed."""
        ...

    def scratch(self, width: int, multiple: int) -> Any:
        """Float32 [max_rows * multiple, width] that holds nothing from one op to the next."""
        ...
