"""Packing and unpacking of weights, against formulas and the gguf package."""

import gguf
import numpy as np
import pytest
from numpy.typing import NDArray

from mosstalk.checkpoint.storage import (
    StorageType,
    StoredTensor,
    convert,
    from_float32,
    packed_bytes,
)
from mosstalk.checkpoint.weights import as_weight, storage_for
from mosstalk.errors import CheckpointError, UsageError

RNG = np.random.default_rng(3)
PACKED = [StorageType.F32, StorageType.F16, StorageType.BF16, StorageType.Q8_0]


def awkward_rows() -> NDArray[np.float32]:
    """Values of all sizes, zero blocks, and values near the halves where rounding turns."""
    rows = RNG.standard_normal((64, 96), np.float32) * np.exp2(RNG.integers(-20, 10, (64, 1)))
    rows[5] = 0
    halves = np.arange(-48, 48, dtype=np.float32) + np.float32(0.5)
    rows[6], rows[7], rows[8] = halves, np.nextafter(halves, 0), np.nextafter(halves, 100)
    rows[6:9, ::32] = 127  # so that the scale is 1
    return rows.astype(np.float32)


def test_q8_0_equals_the_gguf_package_bit_by_bit() -> None:
    rows = awkward_rows()
    tensor = from_float32("w", rows, StorageType.Q8_0)
    expected = gguf.quants.quantize(rows, gguf.GGMLQuantizationType.Q8_0)
    np.testing.assert_array_equal(tensor.data, expected)
    values = gguf.quants.dequantize(expected, gguf.GGMLQuantizationType.Q8_0)
    np.testing.assert_array_equal(tensor.to_float32(), values)


def test_q8_0_is_within_half_a_step() -> None:
    rows = RNG.standard_normal((8, 64), np.float32)
    error = np.abs(from_float32("w", rows, StorageType.Q8_0).to_float32() - rows)
    step = np.abs(rows.reshape(8, 2, 32)).max(axis=2) / 127
    assert (error.reshape(8, 2, 32).max(axis=2) <= step * 0.5 + 127 * step * 2.0**-11).all()


def test_q8_0_of_the_tiniest_values_is_zero() -> None:
    tensor = from_float32("w", np.full((1, 32), 1e-40, np.float32), StorageType.Q8_0)
    assert not tensor.to_float32().any()


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e7])
def test_q8_0_refuses_what_it_cannot_hold(value: float) -> None:
    with pytest.raises(CheckpointError, match="tensor w has values that q8_0 cannot hold"):
        from_float32("w", np.full((1, 32), value, np.float32), StorageType.Q8_0)


def test_bf16_rounds_to_nearest_even() -> None:
    halfway = np.array([0x3F808000, 0x3F818000, 0xBF808000, 0xBF818000], np.uint32)
    large = np.float32([np.inf, -np.inf, 3.4e38])
    values = np.concatenate([awkward_rows().reshape(-1), halfway.view(np.float32), large])
    rounded = from_float32("w", values, StorageType.BF16).to_float32()
    below = (values.view(np.uint32) & 0xFFFF0000).view(np.float32)
    above = ((values.view(np.uint32) & 0xFFFF0000) + 0x10000).view(np.float32)
    with np.errstate(invalid="ignore"):
        nearer = np.abs(values.astype(np.float64) - below) - np.abs(
            above.astype(np.float64) - values
        )
    finite = np.isfinite(values) & np.isfinite(above)
    assert np.array_equal(rounded[finite & (nearer < 0)], below[finite & (nearer < 0)])
    assert np.array_equal(rounded[finite & (nearer > 0)], above[finite & (nearer > 0)])
    ties = rounded[finite & (nearer == 0)].view(np.uint32) >> 16
    assert ties.size == 4
    assert not (ties & 1).any()
    assert np.array_equal(rounded[-3:], np.float32([np.inf, -np.inf, np.inf]))


def test_bf16_keeps_nan() -> None:
    bits = np.array([0x7F800001, 0xFFFFFFFF, 0x7FFFFFFF, 0x7FC00000], np.uint32)
    tensor = from_float32("w", bits.view(np.float32), StorageType.BF16)
    assert np.isnan(tensor.to_float32()).all()


def test_f16_rounds_as_numpy_and_clips_instead_of_overflowing() -> None:
    values = np.float32([1.0009765, 65519, 1e6, -1e6, 6e-8])
    tensor = from_float32("w", values, StorageType.F16)
    assert np.array_equal(tensor.data[[0, 4]], values[[0, 4]].astype(np.float16))
    assert np.array_equal(tensor.to_float32()[1:4], np.float32([65504, 65504, -65504]))


@pytest.mark.parametrize("storage", PACKED)
def test_packed_bytes_agrees_with_the_data(storage: StorageType) -> None:
    tensor = from_float32("w", RNG.standard_normal((3, 2, 64), np.float32), storage)
    assert tensor.num_bytes == packed_bytes((3, 2, 64), storage)
    assert tensor.shape == (3, 2, 64)
    assert tensor.to_float32().shape == (3, 2, 64)


@pytest.mark.parametrize("source", PACKED)
@pytest.mark.parametrize("target", PACKED)
def test_converting_goes_through_exact_float32(source: StorageType, target: StorageType) -> None:
    tensor = from_float32("w", awkward_rows(), source)
    converted = convert(tensor, target)
    assert converted.storage is target
    if source is target:
        assert converted is tensor
    else:
        expected = from_float32("w", tensor.to_float32(), target)
        np.testing.assert_array_equal(converted.data, expected.data)
    assert convert(tensor, StorageType.NATIVE) is tensor


@pytest.mark.parametrize("source", PACKED)
@pytest.mark.parametrize("target", PACKED)
def test_a_matrix_of_several_slabs_is_converted_as_a_whole(
    monkeypatch: pytest.MonkeyPatch, source: StorageType, target: StorageType
) -> None:
    values = np.random.default_rng(3).standard_normal((11, 64)).astype(np.float32)
    tensor = from_float32("t", values, source)
    whole = convert(tensor, target)
    monkeypatch.setattr("mosstalk.checkpoint.storage._SLAB_LEN", 3 * 64)
    found = convert(tensor, target)
    assert (found.shape, found.storage) == (whole.shape, whole.storage)
    assert np.array_equal(found.data, whole.data) and found.data.dtype == whole.data.dtype


def tensor_of(name: str, *shape: int, storage: StorageType = StorageType.BF16) -> StoredTensor:
    return from_float32(name, np.ones(shape, np.float32), storage)


@pytest.mark.parametrize(
    ("name", "shape", "expected"),
    [
        ("h.0.mlp.fc_in.weight", (6, 64), StorageType.Q8_0),
        ("wte.weight", (6, 32), StorageType.Q8_0),
        ("input_proj.weight", (6, 240), StorageType.F16),
        ("ln_1.weight", (64,), StorageType.F32),
        ("scalar", (), StorageType.F32),
        ("quantizers.0.codebook.weight", (6, 32), StorageType.F32),
        ("in_proj.parametrizations.weight.original0", (8, 1, 1), StorageType.F32),
        ("in_proj.parametrizations.weight.original1", (8, 64, 1), StorageType.F32),
        ("in_proj.weight_v", (8, 64, 1), StorageType.F32),
        ("in_proj.weight_g", (8, 1, 1), StorageType.F32),
    ],
)
def test_q8_0_applies_to_matrices_only(
    name: str, shape: tuple[int, ...], expected: StorageType
) -> None:
    tensor = tensor_of(name, *shape)
    assert storage_for(tensor, StorageType.Q8_0) is expected
    assert as_weight(tensor, StorageType.Q8_0).storage is expected
    assert as_weight(tensor, StorageType.Q8_0).shape == shape
    assert as_weight(tensor, StorageType.NATIVE) is tensor


def test_unknown_weight_type_lists_the_names() -> None:
    assert StorageType.parse("Q8_0") is StorageType.Q8_0
    with pytest.raises(UsageError, match="'int4'; choose one of native, f32, f16, bf16, q8_0"):
        StorageType.parse("int4")
