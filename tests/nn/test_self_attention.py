"""Self-attention as the models record it, against the formula in NumPy."""

import numpy as np
import pytest
from numpy.typing import NDArray

from mosstalk.checkpoint.storage import StorageType, from_float32
from mosstalk.compute.backend import open_backend
from mosstalk.compute.program import Program
from mosstalk.compute.state import CacheSpec, State, StateSpec
from mosstalk.nn.attention import Heads, Rows, self_attention
from mosstalk.nn.rope import inverse_frequencies

HEADS, HEAD_DIM, WIDTH, ROWS = 2, 8, 12, 7
FREQUENCIES = inverse_frequencies(HEAD_DIM, 10_000.0)


def _random(seed: int, *shape: int) -> NDArray[np.float32]:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


X, MATRIX, BIAS = _random(1, ROWS, WIDTH), _random(2, 3 * HEADS * HEAD_DIM, WIDTH), _random(3, 48)


def _turned(heads: NDArray[np.float64]) -> NDArray[np.float64]:
    """Each pair (2i, 2i + 1) as a complex number, times e^(i position frequency)."""
    pairs = heads[..., 0::2] + 1j * heads[..., 1::2]
    angle = np.arange(ROWS)[:, None] * FREQUENCIES.astype(np.float64)
    pairs = pairs * np.exp(1j * angle)[:, None]
    return np.stack([pairs.real, pairs.imag], axis=-1).reshape(heads.shape)


def _formula(window: int) -> NDArray[np.float64]:
    projected = X.astype(np.float64) @ MATRIX.T + BIAS
    q, k, v = projected.reshape(ROWS, 3, HEADS, HEAD_DIM).transpose(1, 0, 2, 3)
    scores = np.einsum("qhd,khd->hqk", _turned(q), _turned(k)) / np.sqrt(HEAD_DIM)
    ago = np.arange(ROWS)[:, None] - np.arange(ROWS)
    scores[:, (ago < 0) | (ago >= (window or ROWS))] = -np.inf
    weights = np.exp(scores)
    weights /= weights.sum(axis=-1, keepdims=True)
    result: NDArray[np.float64] = np.einsum("hqk,khd->qhd", weights, v).reshape(ROWS, -1)
    return result


@pytest.mark.parametrize("backend", ["cpu", "reference"])
@pytest.mark.parametrize("window", [0, 3])
@pytest.mark.parametrize("calls_of", [1, 3, ROWS])
def test_self_attention_by_the_formula(backend: str, window: int, calls_of: int) -> None:
    program = Program(ROWS)
    rows = Rows.record(program, "rows", HEAD_DIM)
    x = program.input("x", WIDTH)
    qkv = tuple(from_float32("qkv", values, StorageType.F32) for values in (MATRIX, BIAS))
    heads = Heads(HEADS, HEAD_DIM, window)
    out = program.output("out", self_attention(program, x, (qkv[0], qkv[1]), heads, 0, rows))
    built = open_backend(backend).build(program)
    state = State(StateSpec((CacheSpec(HEADS, HEAD_DIM, window),), max_rows=ROWS), ROWS)
    parts = []
    for start in range(0, ROWS, calls_of):
        positions = np.arange(start, min(start + calls_of, ROWS), dtype=np.int32)
        rows.place(built, positions, 0, FREQUENCIES)
        built.array(x)[: len(positions)] = X[positions]
        built.run(len(positions), state)
        parts.append(built.array(out)[: len(positions)].copy())
    assert np.allclose(np.concatenate(parts), _formula(window), rtol=0, atol=1e-5)


def test_inputs_of_the_same_name_are_shared() -> None:
    """All blocks of a model read one set of positions."""
    program = Program(4)
    assert Rows.record(program, "a", 8) == Rows.record(program, "a", 8)
    assert Rows.record(program, "b", 8, multiple=2) != Rows.record(program, "a", 8)
    assert len(program.inputs) == 6
