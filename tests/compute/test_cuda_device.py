"""Opening the cuda backend, its errors, what it sets in PyTorch, and when it captures graphs."""

import builtins
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest
from cuda_device import cuda_backend, has_gpu, need_torch

from mosstalk.compute.backend import open_backend
from mosstalk.compute.program import Program
from mosstalk.errors import DeviceError, UsageError


def test_without_pytorch_the_way_to_install_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    found = builtins.__import__

    def missing(name: str, *rest: Any) -> Any:
        if name == "torch":
            raise ImportError("No module named 'torch'")
        return found(name, *rest)

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(UsageError, match=r"pip install 'mosstalk\[cuda\]'.*--device cpu"):
        open_backend("cuda")


def test_without_a_gpu_nothing_stands_in_silently() -> None:
    if has_gpu():
        pytest.skip("there is a GPU")
    with pytest.raises(DeviceError, match=r"--device cuda: PyTorch .*--device cpu"):
        open_backend("cuda")
    with pytest.raises(DeviceError):
        open_backend("cuda:1")


@pytest.mark.parametrize("which", ["7", "-1", "one", "0x0"])
def test_a_number_that_no_gpu_has_is_a_wrong_use(
    which: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    need_torch()
    import torch

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    with pytest.raises(UsageError, match=f"no device cuda:{which}; give cuda:0 to cuda:1"):
        open_backend(f"cuda:{which}")


def test_cuda_identity_names_what_results_depend_on() -> None:
    need_torch()
    import torch

    backend = cuda_backend()
    assert backend.name == "cuda" and not backend.exact_rows
    assert f"PyTorch {torch.__version__}" in backend.identity
    assert "Triton" in backend.identity and "\n" not in backend.identity


@pytest.mark.parametrize(
    ("error", "problem"),
    [
        ("out of memory", "is out of memory.*--weight-type.*--device cpu"),
        ("CUDA error: device-side assert triggered\nmore", "has failed .CUDA error: device-side"),
        ("CUBLAS_STATUS_EXECUTION_FAILED", "has failed .CUBLAS_STATUS"),
    ],
)
def test_errors_of_the_device_are_ours_and_the_next_run_works(
    error: str, problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    need_torch()
    import torch

    from mosstalk.compute.cuda import backend as cuda_module

    kind = torch.OutOfMemoryError if error == "out of memory" else RuntimeError

    def fail(*arguments: Any) -> None:
        raise kind(error)

    program = Program(1)
    x = program.input("x", 4)
    program.output("out", program.add(x, x))
    built = cuda_backend().build(program)
    built.array(x)[:] = 1
    with monkeypatch.context() as patch:
        patch.setattr(cuda_module, "compute", fail)
        with pytest.raises(DeviceError, match=problem):
            built.run(1)
    built.run(1)
    assert (built.array(program.outputs["out"]) == 2).all()


def test_an_error_that_is_not_the_devices_stays_what_it_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    need_torch()
    from mosstalk.compute.cuda import backend as cuda_module

    def fail(*arguments: Any) -> None:
        raise RuntimeError("shapes do not match")

    program = Program(1)
    x = program.input("x", 4)
    program.output("out", program.add(x, x))
    built = cuda_backend().build(program)
    monkeypatch.setattr(cuda_module, "compute", fail)
    with pytest.raises(RuntimeError, match="shapes do not match"):
        built.run(1)


def _settings() -> list[str]:
    """All of PyTorch's settings of the precision of products; "mixed" for one it cannot name."""
    import torch

    found = []
    for read in (
        torch.get_float32_matmul_precision,
        lambda: torch.backends.cuda.matmul.allow_tf32,
        lambda: torch.backends.cuda.matmul.fp32_precision,
        lambda: torch.backends.mkldnn.matmul.fp32_precision,
    ):
        try:
            found.append(str(read()))
        except RuntimeError:
            found.append("mixed")
    return found


@pytest.mark.parametrize(
    "setting",
    [
        "pass",
        "torch.set_float32_matmul_precision('high')",
        "torch.set_float32_matmul_precision('medium')",
        "torch.backends.cuda.matmul.allow_tf32 = True",
        "torch.backends.cuda.matmul.fp32_precision = 'tf32'",
        "torch.backends.fp32_precision = 'tf32'",
    ],
)
def test_the_process_keeps_its_own_precision(setting: str) -> None:
    need_torch()
    import torch

    from mosstalk.compute.cuda.settings import full_precision

    if not hasattr(torch.backends.cuda.matmul, "fp32_precision"):
        pytest.skip("settings by library came with PyTorch 2.9")
    try:
        exec(setting)
        held = _settings()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            with full_precision(torch.device("cpu")):
                assert _settings() == ["highest", "False", "ieee", "ieee"]
                assert not torch.is_autocast_enabled("cpu")
            assert torch.is_autocast_enabled("cpu")
        assert _settings() == held
    finally:
        torch.set_float32_matmul_precision("highest")
        torch.backends.fp32_precision = "none"
        torch.backends.cuda.matmul.fp32_precision = "none"
        torch.backends.mkldnn.matmul.fp32_precision = "none"


class _FakeCuda:
    """Stands for torch.cuda: counts captures and replays."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.OutOfMemoryError = MemoryError

    def graph_pool_handle(self) -> str:
        return "pool"

    def Stream(self) -> Any:
        return SimpleNamespace(wait_stream=lambda other: None)

    current_stream = Stream

    @contextmanager
    def stream(self, stream: Any) -> Iterator[None]:
        self.log.append("apart")
        yield

    @contextmanager
    def graph(self, graph: Any, **options: Any) -> Iterator[None]:
        assert options["pool"] == "pool"
        self.log.append("capture")
        yield

    def CUDAGraph(self) -> Any:
        return SimpleNamespace(replay=lambda: self.log.append("replay"))


def test_a_run_is_captured_when_it_comes_again(monkeypatch: pytest.MonkeyPatch) -> None:
    need_torch()
    from mosstalk.compute.cuda import graphs

    cuda = _FakeCuda()
    monkeypatch.setattr(graphs, "torch", SimpleNamespace(cuda=cuda))
    held = graphs.Graphs(graphs.GraphMemory())
    computed = []
    for _ in range(3):
        held.run("a", lambda: computed.append("a"))
    assert cuda.log == ["apart", "capture", "replay", "replay"]
    assert computed == ["a", "a"]  # in full, then into the graph


def test_the_graphs_of_a_program_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    need_torch()
    from mosstalk.compute.cuda import graphs

    cuda = _FakeCuda()
    monkeypatch.setattr(graphs, "torch", SimpleNamespace(cuda=cuda))
    held = graphs.Graphs(graphs.GraphMemory())
    for key in [*range(100), *range(80, 100), *range(92, 100)]:
        held.run(key, lambda: None)
    assert len(held._captured) == 8 and set(held._captured) == set(range(92, 100))
    assert cuda.log.count("capture") == 20  # of 80 ... 99; the last eight are replayed
    assert len(held._seen) <= 64
