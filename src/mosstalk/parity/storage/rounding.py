"""What storing a weight in fewer bits may change."""

from mosstalk.checkpoint.storage import StorageType

TYPES = (StorageType.F16, StorageType.BF16, StorageType.Q8_0)
# Largest rounding error of a weight: relative to itself, of q8_0 to the largest of its block,
# whose f16 scale is rounded too.
ROUNDING = {
    StorageType.F16: 2**-11,
    StorageType.BF16: 2**-8,
    StorageType.Q8_0: 0.5 / 127 + 2**-11,
}
# A sound storage type drifts by a few times its rounding error, whatever the depth, as errors of
# single weights average out. A broken one is off by the values themselves.
DRIFT_TOLERANCE = {storage: 32 * rounding for storage, rounding in ROUNDING.items()}
