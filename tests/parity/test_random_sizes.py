"""No false alarm: a healthy engine passes whatever a model's sizes are."""

from pathlib import Path

import numpy as np
import pytest
from random_nano import draw_sizes, write_random_nano

from mosstalk.checkpoint.storage import StorageType
from mosstalk.parity.kv_cache.run import Options, run_kv_cache
from mosstalk.parity.opening import ModelChoice

RUNS = 200
STORAGE = tuple(StorageType)


@pytest.mark.parametrize("run", range(RUNS))
def test_no_false_alarm_at_random_sizes(tmp_path: Path, run: int) -> None:
    generator = np.random.default_rng(run)
    sizes = draw_sizes(generator)
    model = write_random_nano(tmp_path, sizes, seed=run)
    storage = STORAGE[run % len(STORAGE)]
    choice = ModelChoice(str(model), threads=1 + run % 2, weight_type=storage)
    options = Options(rows=int(generator.integers(4, 40)), frames=1 + run % 3, seed=run)
    report = run_kv_cache(choice.open(), options)
    assert report.passed, f"{sizes}\n{report.as_text()}"
    assert report.max_abs == 0.0
