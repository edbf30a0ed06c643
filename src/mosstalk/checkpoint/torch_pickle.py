"""The description inside a PyTorch file, unpickled without running anything.

A pickle is a program that can call any function. Here it can name only what a plain dictionary
of tensors needs, and each such name stands for an inert record.
"""

import pickle
import pickletools
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import BinaryIO, TypeGuard

from mosstalk.errors import CheckpointError

_MAX_OPCODES = 20_000_000


@dataclass(frozen=True, slots=True)
class TorchDtype:
    """A storage class by its name in torch, such as "HalfStorage"."""

    name: str


@dataclass(frozen=True, slots=True)
class TorchStorage:
    """A run of `numel` items that tensors share; `key` says where the file keeps it."""

    dtype: TorchDtype
    key: str
    numel: int


@dataclass(frozen=True, slots=True)
class TorchTensor:
    """A view of a storage: `offset` and `stride` count items, not bytes."""

    storage: TorchStorage
    offset: int
    shape: tuple[int, ...]
    stride: tuple[int, ...]


# The stand-ins below are instances without attributes: a pickle can set attributes on what it
# names, and so can change nothing here.


class _RebuildTensor:
    """Stands in for torch._utils._rebuild_tensor_v2."""

    __slots__ = ()

    def __call__(
        self, storage: object, offset: object, shape: object, stride: object, *_: object
    ) -> TorchTensor:
        if not (isinstance(storage, TorchStorage) and _is_size(offset)):
            raise ValueError("a tensor without a storage")
        return TorchTensor(storage, offset, _sizes(shape), _sizes(stride))


class _RebuildParameter:
    """Stands in for torch._utils._rebuild_parameter."""

    __slots__ = ()

    def __call__(self, tensor: object, *_: object) -> object:
        return tensor


_ALLOWED: dict[tuple[str, str], object] = {
    ("collections", "OrderedDict"): OrderedDict,
    ("torch._utils", "_rebuild_tensor_v2"): _RebuildTensor(),
    ("torch._utils", "_rebuild_parameter"): _RebuildParameter(),
}


class _Unpickler(pickle.Unpickler):
    """An unpickler that knows no names but the allowed ones."""

    def __init__(self, file: BinaryIO, where: str) -> None:
        super().__init__(file, encoding="utf-8")
        self._where = where

    def find_class(self, module: str, name: str, /) -> object:
        if (module, name) in _ALLOWED:
            return _ALLOWED[module, name]
        if module in ("torch", "torch.storage") and name.isidentifier() and name[-7:] == "Storage":
            return TorchDtype(name)
        raise CheckpointError(
            f"{self._where} asks to run {module}.{name}; refusing: a file of plain tensors needs "
            "no such thing"
        )

    def persistent_load(self, pid: object, /) -> TorchStorage:
        # The stream layout has a sixth item: how the storage is a view of another, or None.
        if isinstance(pid, tuple) and len(pid) == 6 and pid[5] is None:
            pid = pid[:5]
        match pid:
            case ("storage", TorchDtype() as dtype, str() as key, str(), int() as numel):
                if numel >= 0:
                    return TorchStorage(dtype, key, numel)
        raise ValueError("a reference to a storage in an unknown form")


def load_plain(file: BinaryIO, where: str) -> object:
    """The object of the pickle at the file's position; the file is left just behind it.

    Raises CheckpointError that names `where` for a damaged pickle, and for one that asks for
    anything but tensors.
    """
    try:
        _refuse_huge_memo(file)
        return _Unpickler(file, where).load()
    except CheckpointError:
        raise
    except Exception as error:  # a damaged pickle can raise almost anything
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise CheckpointError(
            f"{where} is not a readable PyTorch file ({reason}); download it again"
        ) from None


def _refuse_huge_memo(file: BinaryIO) -> None:
    """Raise ValueError where the pickle would make the unpickler allocate a table without need."""
    start = file.tell()
    for count, (opcode, argument, _) in enumerate(pickletools.genops(file)):
        if opcode.name in ("PUT", "LONG_BINPUT") and isinstance(argument, int) and argument > count:
            raise ValueError("memo index out of order")
        if count > _MAX_OPCODES:
            raise ValueError("too many steps")
    file.seek(start)


def _is_size(value: object) -> TypeGuard[int]:
    return type(value) is int and value >= 0


def _sizes(value: object) -> tuple[int, ...]:
    if not (isinstance(value, Sequence) and all(_is_size(item) for item in value)):
        raise ValueError("a tensor with an impossible shape")
    return tuple(value)
