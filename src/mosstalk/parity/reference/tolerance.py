"""How far this machine's numbers may be from the reference's."""

from collections.abc import Iterable
from dataclasses import dataclass

from mosstalk.checkpoint.storage import StorageType
from mosstalk.checkpoint.weights import storage_for
from mosstalk.models.identity import language_model_tensors
from mosstalk.parity.opening import Opened
from mosstalk.parity.reference.origin import Origin
from mosstalk.parity.storage.rounding import DRIFT_TOLERANCE

# Relative to the largest value. Float32 arithmetic in another order is within _EXACT.
_EXACT = 1e-5
_GPU = 1e-4


@dataclass(frozen=True, slots=True)
class Tolerances:
    """Relative to the largest expected value of a comparison."""

    language_model: float
    codec: float


def tolerances_for(opened: Opened, origin: Origin | None, asked: float | None) -> Tolerances:
    """Those asked for, else by the device and by how weights are rounded.

    A reference of unknown origin had the weights as the checkpoint stores them.
    """
    if asked is not None:
        return Tolerances(asked, asked)
    exact = _EXACT if opened.backend.name in ("cpu", "reference") else _GPU
    tensors = language_model_tensors(opened.checkpoint).values()
    stored = {tensor.storage for tensor in tensors}
    held = stored | {storage_for(tensor, opened.storage) for tensor in tensors}
    codec = {tensor.storage for tensor in (opened.checkpoint.codec_tensors or {}).values()}
    return Tolerances(
        _largest(exact, held, stored if origin is None else origin.weight_types),
        _largest(exact, codec, codec if origin is None else origin.codec_weight_types),
    )


def _largest(exact: float, held: Iterable[StorageType], reference: Iterable[StorageType]) -> float:
    """By the types that the reference's weights did not have; float32 holds any of theirs."""
    rounding = set(held) - {StorageType.F32} - set(reference)
    return max([exact, *(DRIFT_TOLERANCE[storage] for storage in rounding)])
