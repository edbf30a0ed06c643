"""A healthy delay model passes with no difference at all, in every form that users can choose."""

from pathlib import Path

import numpy as np
import pytest
from random_delay import draw_delay_sizes, write_random_delay

from mosstalk.checkpoint.storage import StorageType
from mosstalk.errors import UsageError
from mosstalk.parity.kv_cache.run import Options, run_kv_cache
from mosstalk.parity.opening import ModelChoice
from mosstalk.parity.report import Report

CHECKS = {
    "prefill vs chunked",
    "decode step vs prefill",
    "single-row chain",
    "cache capacity",
    "threads",
    "prefix reuse",
    "fork",
    "truncate",
    "save and load",
    "frames, greedy",
    "frames, sampled",
    "second generation",
    "heads repeat",
    "heads in parts",
    "heads over the cache",
    "reads leave the cache",
    "prompt change must differ",
    "other order must differ",
    "mismatched prefix must differ",
}
RUNS = 60
STORAGE = tuple(StorageType)


def assert_exact(report: Report) -> None:
    assert report.passed, report.as_text()
    assert {result.name for result in report.results} == CHECKS
    assert all(result.max_abs == 0.0 for result in report.results if result.expects == "equal")
    assert all(result.compared for result in report.results)


@pytest.mark.parametrize("weight_type", ["native", "f32", "f16", "bf16", "q8_0"])
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("rows", [24, 300])
def test_delay_no_difference_on_cpu(
    random_delay: Path, weight_type: str, threads: int, rows: int
) -> None:
    choice = ModelChoice(str(random_delay), threads=threads, weight_type=weight_type)
    assert_exact(run_kv_cache(choice.open(), Options(rows=rows)))


@pytest.mark.parametrize("name", ["delay_small", "delay_vg"])
@pytest.mark.parametrize("weight_type", ["native", "q8_0"])
def test_delay_no_difference_on_golden_checkpoints(
    golden_dir: Path, name: str, weight_type: str
) -> None:
    folder = golden_dir / "checkpoints" / name
    if not (folder / "model.safetensors").is_file():
        pytest.skip(f"{name} is not here")
    choice = ModelChoice(str(folder), weight_type=weight_type, threads=2)
    assert_exact(run_kv_cache(choice.open(), Options()))


@pytest.mark.parametrize("seed", range(1, 6))
def test_delay_no_false_alarm_on_other_prompts(random_delay: Path, seed: int) -> None:
    opened = ModelChoice(str(random_delay)).open()
    assert_exact(run_kv_cache(opened, Options(rows=4 + 5 * seed, frames=2, seed=seed)))


def test_delay_reference_backend_is_within_rounding(random_delay: Path) -> None:
    opened = ModelChoice(str(random_delay), backend="reference").open()
    report = run_kv_cache(opened, Options(rows=20, frames=3))
    assert report.passed, report.as_text()
    assert report.settings["tolerance"] == 1e-5


def test_delay_smallest_and_largest_prompt(random_delay: Path) -> None:
    """A frame needs n_vq - 1 rows more than its own."""
    opened = ModelChoice(str(random_delay)).open()
    assert_exact(run_kv_cache(opened, Options(rows=4, frames=1)))
    assert_exact(run_kv_cache(opened, Options(rows=316, frames=1)))
    with pytest.raises(UsageError, match="317 rows and 1 frames are more than the model's 320"):
        run_kv_cache(opened, Options(rows=317, frames=1))


@pytest.mark.parametrize("run", range(RUNS))
def test_delay_no_false_alarm_at_random_sizes(tmp_path: Path, run: int) -> None:
    generator = np.random.default_rng(run)
    sizes = draw_delay_sizes(generator)
    model = write_random_delay(tmp_path, sizes, seed=run)
    choice = ModelChoice(str(model), threads=1 + run % 2, weight_type=STORAGE[run % len(STORAGE)])
    options = Options(rows=int(generator.integers(4, 40)), frames=1 + run % 3, seed=run)
    report = run_kv_cache(choice.open(), options)
    assert report.passed, f"{sizes}\n{report.as_text()}"
    assert report.max_abs == 0.0


def test_the_random_delay_model_has_several_query_heads_for_a_key(random_delay: Path) -> None:
    model = ModelChoice(str(random_delay), weight_type="q8_0").open().delay()
    assert model.config.num_attention_heads == 2 * model.config.num_key_value_heads
    assert {block.q_proj.storage for block in model.weights.blocks} == {"q8_0"}
