"""`mosstalk parity` on the cuda backend: rounding is all that computing in portions changes."""

import json
from pathlib import Path

import pytest
from cuda_device import has_gpu, need_torch

from mosstalk.cli import main

need_torch()

DEVICE = "cuda" if has_gpu() else "cuda:cpu"
TOLERANCE = 1e-4


@pytest.mark.parametrize("name", ["nano_a", "nano_b", "nano_c", "delay_small"])
def test_cuda_parity_of_caches(
    golden_dir: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    model = golden_dir / "checkpoints" / name
    if not (model / "model.safetensors").exists():
        pytest.skip(f"{name} is not in {golden_dir}")
    asked = ["--model", str(model), "--backend", DEVICE, "--tolerance", str(TOLERANCE), "--json"]
    assert main(["parity", "kv-cache", *asked]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["passed"] and report["backend"] == "cuda"
    equal = [check for check in report["checks"] if check["expects"] == "equal"]
    assert len(equal) >= 10
    assert all((check["max_rel"] or 0) <= 1e-5 for check in equal)  # far from the tolerance


def test_cuda_speaks_the_same_codes_as_the_cpu() -> None:
    """The built-in model at the same seed: its draws are no near-ties."""
    import mosstalk

    samples = [
        mosstalk.load(device=device, strict=True).say("Hello.", seed=3, max_frames=20).samples
        for device in ("cpu", DEVICE)
    ]
    wanted, found = samples
    assert found.shape == wanted.shape
    assert abs(found - wanted).max() <= TOLERANCE * abs(wanted).max()
