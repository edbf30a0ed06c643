"""A healthy engine passes with no difference at all, in every form that users can choose."""

from pathlib import Path

import pytest

from mosstalk.checkpoint.checkpoint import open_checkpoint
from mosstalk.checkpoint.storage import StorageType
from mosstalk.compute.backend import open_backend
from mosstalk.models.moss_tts_nano.model import NanoModel
from mosstalk.parity.kv_cache.run import Options, run_kv_cache
from mosstalk.parity.opening import ModelChoice
from mosstalk.parity.report import Report

CHECKS = 19


def assert_exact(report: Report) -> None:
    assert report.passed, report.as_text()
    assert report.max_abs == 0.0
    assert len(report.results) == CHECKS
    assert all(result.max_abs == 0.0 for result in report.results if result.expects == "equal")
    assert all(result.compared for result in report.results)


@pytest.mark.parametrize("weight_type", ["native", "f32", "f16", "bf16", "q8_0"])
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("rows", [24, 300])
def test_no_difference_on_cpu(random_nano: Path, weight_type: str, threads: int, rows: int) -> None:
    choice = ModelChoice(str(random_nano), threads=threads, weight_type=weight_type)
    assert_exact(run_kv_cache(choice.open(), Options(rows=rows)))


@pytest.mark.parametrize("name", ["nano_a", "nano_b", "nano_c"])
def test_no_difference_on_golden_checkpoints(golden_dir: Path, name: str) -> None:
    folder = golden_dir / "checkpoints" / name
    if not (folder / "model.safetensors").is_file():
        pytest.skip(f"{name} is not here")
    choice = ModelChoice(str(folder), weight_type="q8_0", threads=2)
    assert_exact(run_kv_cache(choice.open(), Options()))


@pytest.mark.parametrize("seed", range(1, 9))
def test_no_false_alarm_on_other_prompts(random_nano: Path, seed: int) -> None:
    opened = ModelChoice(str(random_nano)).open()
    assert_exact(run_kv_cache(opened, Options(rows=4 + 5 * seed, frames=2, seed=seed)))


def test_reference_backend_is_within_rounding(random_nano: Path) -> None:
    opened = ModelChoice(str(random_nano), backend="reference").open()
    report = run_kv_cache(opened, Options(rows=20, frames=3))
    assert report.passed, report.as_text()
    assert report.settings["tolerance"] == 1e-5


def test_the_smallest_and_the_largest_prompt(random_nano: Path) -> None:
    opened = ModelChoice(str(random_nano)).open()
    assert_exact(run_kv_cache(opened, Options(rows=4, frames=1)))
    assert_exact(run_kv_cache(opened, Options(rows=319, frames=1)))


def test_the_random_checkpoint_is_wide_enough_for_q8_0(random_nano: Path) -> None:
    checkpoint = open_checkpoint(random_nano)
    model = NanoModel(checkpoint.config, checkpoint.tensors, open_backend("cpu"), StorageType.Q8_0)
    assert {block.fc_in[0].storage for block in model.weights.global_stack.blocks} == {"q8_0"}
