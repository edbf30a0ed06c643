"""What a CUDA graph may hold: a run that is captured asks nothing of the host.

On a GPU a violation fails the capture. Here PyTorch's own record of what it computes shows it.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cuda_device import cuda_backend, need_torch

from mosstalk.checkpoint.checkpoint import open_checkpoint
from mosstalk.compute.sampling import SamplingParams
from mosstalk.compute.self_test.cases import Case, all_cases
from mosstalk.models.moss_tts_nano.frame_decoder import FrameSampling
from mosstalk.models.moss_tts_nano.model import NanoModel

need_torch()
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

from mosstalk.compute.cuda import backend as cuda_module  # noqa: E402

# Numbers that the host reads or makes a tensor of, and results whose shape depends on values.
ASKING = (
    "_local_scalar_dense",
    "_unique2",
    "equal.default",
    "index.Tensor",
    "is_nonzero",
    "item",
    "lift_fresh",
    "masked_select",
    "nonzero",
    "scalar_tensor",
    "unique_consecutive",
)


class _Record(TorchDispatchMode):  # type: ignore[misc,unused-ignore]
    """The names of all that PyTorch computes, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.names.append(str(func).removeprefix("aten."))
        return func(*args, **(kwargs or {}))


@pytest.fixture
def record(monkeypatch: pytest.MonkeyPatch) -> _Record:
    """Of the ops of programs, without the copies to the device before and from it afterwards."""
    found, compute = _Record(), cuda_module.compute

    def recorded(run: Any, op: Any) -> None:
        with found:
            compute(run, op)

    monkeypatch.setattr(cuda_module, "compute", recorded)
    return found


def _check(record: _Record) -> None:
    asking = {name for name in record.names if name.startswith(ASKING)}
    assert record.names and not asking


@pytest.mark.parametrize("case", [*all_cases()], ids=lambda case: f"{case.op.__name__}")
def test_cuda_op_asks_nothing_of_the_host(case: Case, record: _Record) -> None:
    built = cuda_backend().build(case.program)
    for name, values in case.inputs.items():
        built.array(case.program.inputs[name])[: len(values)] = values
    for rows in (case.calls[-1], case.calls[-1]):
        record.names.clear()  # the first run makes constants
        built.run(rows, None if case.new_state is None else case.new_state())
    _check(record)


def test_cuda_frame_of_nano_asks_nothing_of_the_host(golden_dir: Path, record: _Record) -> None:
    path = golden_dir / "checkpoints" / "nano_b"
    if not (path / "model.safetensors").exists():
        pytest.skip(f"nano_b is not in {golden_dir}")
    checkpoint = open_checkpoint(path)
    model = NanoModel(checkpoint.config, checkpoint.tensors, cuda_backend())
    session = model.session()
    session.begin_generation(8)
    pad, slot = model.config.audio_pad_token_id, model.config.audio_assistant_slot_token_id
    session.prefill(np.array([[slot] + [pad] * model.config.n_vq], np.int32))
    draws = SamplingParams(0.8, 25, 0.95, 1.2)
    for _ in range(2):
        record.names.clear()
        session.next_frame(FrameSampling(SamplingParams(), draws, seed=1))
    _check(record)
