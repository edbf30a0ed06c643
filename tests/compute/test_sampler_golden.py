"""The sampler's probabilities against those of OpenMOSS's own code (tests/golden)."""

from pathlib import Path

import numpy as np
import pytest

from mosstalk.compute.cpu import _native
from mosstalk.compute.sampling import SamplingParams, probabilities


@pytest.mark.parametrize("name", ["nano_a", "nano_b", "nano_c"])
def test_golden_sampler_probabilities(golden_dir: Path, name: str) -> None:
    path = golden_dir / "reference" / f"{name}.npz"
    if not path.exists():
        pytest.skip(f"{path} is not there")
    with np.load(path) as arrays:
        golden = {key: value for key, value in arrays.items() if key.startswith("sampler")}
    logits, earlier = golden["sampler_logits"], golden["sampler_prev"]
    for case, (temperature, top_k, top_p, penalty) in enumerate(golden["sampler_cases"].tolist()):
        params = SamplingParams(temperature, int(top_k), top_p, penalty).row()
        for row, wanted in enumerate(golden[f"sampler_probs_{case}"]):
            seen = np.zeros(logits.shape[1], np.uint8)
            seen[earlier[row]] = 1
            found = probabilities(logits[row], seen, params)
            native = _native.sampling_probabilities(logits[row], seen, params.tolist())
            assert np.allclose(found, wanted, rtol=0, atol=1e-6)
            assert np.allclose(native, wanted, rtol=0, atol=1e-6)
            assert np.array_equal(np.flatnonzero(native), np.flatnonzero(wanted))
