"""Strict loading: every tensor is accounted for."""

import numpy as np
import pytest

from mosstalk.checkpoint.mapping import Expected, take
from mosstalk.checkpoint.storage import StorageType, StoredTensor, from_float32
from mosstalk.errors import CheckpointError


def tensors(**shapes: tuple[int, ...]) -> dict[str, StoredTensor]:
    return {
        name: from_float32(name, np.zeros(shape, np.float32), StorageType.F32)
        for name, shape in shapes.items()
    }


def test_takes_by_name_and_alias() -> None:
    held = tensors(a=(2,), old_b=(3, 4))
    taken = take(held, [Expected("a", (2,)), Expected("b", (3, 4), ("b_", "old_b"))], what="x")
    assert taken["a"] is held["a"]
    assert taken["b"].name == "b"
    assert taken["b"].data is held["old_b"].data


def test_one_error_counts_and_names_all_faults() -> None:
    held = tensors(a=(2,), **{f"extra{index}": (1,) for index in range(7)})
    wanted = [Expected("a", (3,)), Expected("m", (1,))]
    with pytest.raises(CheckpointError) as caught:
        take(held, wanted, what="nano at /models/x")
    assert str(caught.value) == (
        "nano at /models/x: 1 tensor missing (m); 1 tensor of another shape (a is [2], not [3]); "
        "7 tensors not part of the model (extra0, extra1, extra2, extra3, extra4, ...); "
        "check that config.json and the weights belong together"
    )


def test_ignorable_names_may_be_there() -> None:
    held = tensors(a=(2,), head=(2,)) | tensors(**{"heads.0.weight": (2,), "heads.10.weight": (2,)})
    ignorable = ("head", "heads.*.weight")
    assert take(held, [Expected("a", (2,))], ignorable=ignorable, what="x").keys() == {"a"}


def test_a_name_beside_its_alias_is_left_over() -> None:
    with pytest.raises(CheckpointError, match=r"1 tensor not part of the model \(old_a\)"):
        take(tensors(a=(2,), old_a=(2,)), [Expected("a", (2,), ("old_a",))], what="x")
