"""Which backend is used after the self-test, and that a device is tested once."""

import json
import os
from pathlib import Path

import pytest
from broken_backend import BrokenBackend
from instruction_sets import KERNELS

from mosstalk.compute import ops
from mosstalk.compute.backend import Backend, ReferenceBackend, fallback_for
from mosstalk.compute.cpu import _native
from mosstalk.compute.cpu.backend import CpuBackend
from mosstalk.compute.cpu.processor import processor_name
from mosstalk.compute.program import Program
from mosstalk.compute.self_test import check, known_good
from mosstalk.compute.self_test.trust import trusted
from mosstalk.errors import DeviceError


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache folder, which is not there yet."""
    monkeypatch.setenv("MOSSTALK_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def tested(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the backends in the order in which they are tested."""
    names: list[str] = []
    find_faults = check.find_faults

    def counted(backend: Backend) -> list[check.Fault]:
        names.append(backend.name)
        return find_faults(backend)

    monkeypatch.setattr(check, "find_faults", counted)
    return names


class BrokenCpu(CpuBackend):
    """A processor whose kernels of some names compute one op wrong."""

    bad_kernels: tuple[str, ...] = KERNELS

    def build(self, program: Program) -> object:  # type: ignore[override]
        healthy = CpuBackend(self.threads, self.kernels)
        bad = self.kernels in self.bad_kernels
        return (BrokenBackend(ops.RmsNorm, inner=healthy) if bad else healthy).build(program)

    def plainer(self) -> "CpuBackend | None":
        slower = super().plainer()
        return slower and type(self)(self.threads, slower.kernels)


def test_a_healthy_device_is_tested_once(tested: list[str]) -> None:
    for backend in (CpuBackend(1), CpuBackend(2), ReferenceBackend(), ReferenceBackend()):
        assert trusted(backend) == (backend, ())
    assert trusted(CpuBackend(1))[1] == ()
    assert tested == ["cpu", "reference"]


@pytest.mark.parametrize("kernels", KERNELS)
def test_another_device_driver_or_code_is_tested_anew(
    kernels: str, tested: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    trusted(CpuBackend(1, kernels))
    for identity in ("Abacus 9, driver 1.0", "Abacus 9, driver 1.1", "Abacus 9, driver 1.1"):
        monkeypatch.setattr(CpuBackend, "identity", identity)
        trusted(CpuBackend(1, kernels))
    assert len(tested) == 3
    stamp = known_good._code_stamp()
    monkeypatch.setattr(known_good, "_code_stamp", lambda: stamp ^ 1)
    trusted(CpuBackend(1, kernels))
    assert len(tested) == 4


def test_the_stamp_of_the_code_follows_its_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(known_good, "_CODE", tmp_path)
    (tmp_path / "cuda").mkdir()
    stamps = [known_good._code_stamp()]
    for content in ("a = 1\n", "a = 12\n"):
        (tmp_path / "cuda" / "backend.py").write_text(content)
        stamps.append(known_good._code_stamp())
    os.utime(tmp_path / "cuda" / "backend.py", ns=(1, 1))
    stamps.append(known_good._code_stamp())
    assert len(set(stamps)) == 4
    assert known_good._code_stamp() == stamps[-1]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"\xff\xfe\x00",
        b"[]",
        b"7",
        b'{"passed": 7}',
        b'{"passed": [7, null, {}]}',
        b"{}",
    ],
)
def test_a_damaged_cache_costs_a_test_and_is_mended(
    content: bytes, folder: Path, tested: list[str]
) -> None:
    folder.mkdir()
    (folder / "self-test.json").write_bytes(content)
    for _ in range(3):
        assert trusted(CpuBackend(1))[1] == ()
    assert tested == ["cpu"]


def test_a_cache_that_cannot_be_written_costs_a_test_each_time(
    tmp_path: Path, tested: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file in the place of the folder refuses whoever asks, root too."""
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("MOSSTALK_CACHE", str(tmp_path / "file"))
    for _ in range(2):
        assert trusted(CpuBackend(1))[1] == ()
    assert tested == ["cpu", "cpu"]


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write")
def test_a_read_only_folder_costs_a_test_each_time(folder: Path, tested: list[str]) -> None:
    folder.mkdir(mode=0o500)
    for _ in range(2):
        assert trusted(CpuBackend(1))[1] == ()
    assert tested == ["cpu", "cpu"]


def test_a_folder_in_the_place_of_the_file(folder: Path, tested: list[str]) -> None:
    (folder / "self-test.json").mkdir(parents=True)
    assert trusted(CpuBackend(1))[1] == ()
    assert tested == ["cpu"]


def test_the_cache_stays_small(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for driver in range(100):
        monkeypatch.setattr(CpuBackend, "identity", f"Abacus 9, driver {driver}")
        known_good.remember_good(CpuBackend(1))
    passed = json.loads((folder / "self-test.json").read_text("utf-8"))["passed"]
    assert len(passed) == 32
    assert "driver 99," in passed[0]
    assert [path.name for path in folder.iterdir()] == ["self-test.json"]


def test_the_cache_folder_is_the_users() -> None:
    assert known_good.cache_folder() == Path(os.environ["MOSSTALK_CACHE"])
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("MOSSTALK_CACHE")
        assert "mosstalk" in str(known_good.cache_folder())


def test_the_cpu_stands_in_for_a_device_that_computes_wrong(tested: list[str]) -> None:
    broken = BrokenBackend(ops.Attention, name="vulkan")
    backend, warnings = trusted(broken, threads=3)
    assert isinstance(backend, CpuBackend)
    assert backend.threads == 3
    assert tested == ["vulkan", "cpu"]
    (warning,) = warnings
    assert warning.startswith("vulkan fails its self-test: Attention is off by ")
    assert broken.identity in warning
    assert warning.endswith("; the cpu stands in for it")
    assert trusted(broken)[1] == warnings  # a failure is never forgotten
    assert tested == ["vulkan", "cpu", "vulkan"]


@pytest.mark.skipif(len(KERNELS) < 2, reason="this processor has the plain kernels alone")
def test_slower_kernels_stand_in_for_faster_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(BrokenCpu, "bad_kernels", KERNELS[:-1])
    backend, warnings = trusted(BrokenCpu(1))
    assert isinstance(backend, CpuBackend)
    assert backend.kernels == "plain"
    assert len(warnings) == len(KERNELS) - 1
    for kernels, warning in zip(KERNELS, warnings, strict=False):
        assert warning.startswith("cpu fails its self-test: RmsNorm is off by ")
        assert f"{kernels} kernels" in warning
        assert warning.endswith("; slower kernels stand in for it")


def test_no_result_is_given_where_nothing_computes_right(tested: list[str]) -> None:
    with pytest.raises(DeviceError, match=r"cpu fails .* RmsNorm .* plain kernels .* install"):
        trusted(BrokenCpu(1))
    assert len(tested) == len(KERNELS)


def test_strict_lets_nothing_stand_in(tested: list[str]) -> None:
    for _ in range(2):
        with pytest.raises(DeviceError, match=r"vulkan fails .* Gelu .* driver, .* --device"):
            trusted(BrokenBackend(ops.Gelu, name="vulkan"), strict=True)
    assert tested == ["vulkan", "vulkan"]
    with pytest.raises(DeviceError, match=r"cpu fails .* RmsNorm .*; "):
        trusted(BrokenCpu(1), strict=True)
    assert trusted(CpuBackend(1), strict=True)[1] == ()


def test_a_warning_names_the_other_ops_too() -> None:
    inner = BrokenBackend(ops.Linear)
    _, (warning,) = trusted(BrokenBackend(ops.Embed, inner=inner))
    assert "Embed of f32 weights is off by " in warning
    assert "(and Linear)" in warning


def test_fallbacks_end_with_the_plain_kernels() -> None:
    chain: list[Backend] = [CpuBackend(2)]
    while following := fallback_for(chain[-1]):
        chain.append(following)
    assert [backend.kernels for backend in chain if isinstance(backend, CpuBackend)] == [*KERNELS]
    assert {backend.threads for backend in chain} == {2}
    assert fallback_for(ReferenceBackend()) is None


def test_identity_of_the_cpu_names_kernels_build_and_processor(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    identities = {CpuBackend(1, kernels).identity for kernels in KERNELS}
    assert len(identities) == len(KERNELS)
    first = CpuBackend(1).identity
    assert first.startswith(f"{KERNELS[0]} kernels of build ")
    assert first.endswith(processor_name())
    assert CpuBackend(2).identity == first
    (tmp_path / "built").write_bytes(b"another build")
    monkeypatch.setattr(_native, "__file__", str(tmp_path / "built"))
    assert CpuBackend(1).identity != first


def test_a_processor_has_a_name_of_one_line() -> None:
    assert processor_name()
    assert len(processor_name().splitlines()) == 1
