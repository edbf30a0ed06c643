"""Dumps of the delay family for tests: one that was recorded, and files of golden arrays."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

# Made by `mosstalk parity dump` of delay_small and codec_full_narrow with the original code, torch
# 2.13.0 and transformers 5.0.0; one literal of `generate` replaced by the config's id.
RECORDED = Path(__file__).parents[1] / "golden" / "reference" / "dump_delay_small"
RECORDED_MODEL, RECORDED_CODEC = "delay_small", "codec_full_narrow"

# Runs of the golden arrays, and their repetition penalty.
GOLDEN_RUNS = {
    "greedy_text_start": 1.0,
    "greedy_audio": 1.0,
    "greedy_audio_rep1.1": 1.1,
    "single_b": 1.0,
}


def checkpoint_folder(golden_dir: Path, name: str) -> Path:
    """The folder of a tiny checkpoint; skips where its weights are not here."""
    folder = golden_dir / "checkpoints" / name
    if not (folder / "model.safetensors").is_file():
        pytest.skip(f"{name} is not here")
    return folder


def recorded_without_codec(folder: Path) -> Path:
    """A copy of the recorded dump that needs no codec."""
    shutil.copytree(RECORDED, folder)
    (folder / "ref_codec.json").unlink()
    return folder


def golden_dump(golden_dir: Path, name: str, folder: Path) -> Path:
    """The golden arrays of a model as files of a dump, which do not tell of any origin."""
    with np.load(golden_dir / "reference" / f"{name}.npz") as stored:
        arrays = dict(stored)
    folder.mkdir(parents=True)
    rows = arrays["prompt"][0]
    hidden = [key for key in arrays if key.startswith("hidden_")]
    vectors = arrays[max(hidden, key=lambda key: int(key.removeprefix("hidden_")))][0]
    middle = len(rows) // 2
    _write(folder / "ref_prompt.json", {"name": "golden", "input_ids": rows.tolist()})
    _write(
        folder / "ref_hidden.json",
        {
            "name": "golden",
            "rows": len(rows),
            "hidden_size": vectors.shape[1],
            "last_hidden": vectors[-1].tolist(),
            "last_hidden_abs_max": float(np.abs(vectors[-1]).max()),
            "probe_positions": [0, 1, middle],
            "probe_hidden": vectors[[0, 1, middle]].tolist(),
        },
    )
    for run, penalty in GOLDEN_RUNS.items():
        returned, kept = arrays[f"{run}_rows_0"], int(arrays[f"{run}_start"][0])
        _write(
            folder / f"{run}.json",
            {
                "name": run,
                "steps": len(returned) - kept,
                "greedy": True,
                "repetition_penalty": penalty,
                "input_ids": _prompt(arrays, run).tolist(),
                "generated_rows": returned[kept:].tolist(),
            },
        )
    return folder


def edited(path: Path, change: Callable[[dict[str, Any]], object]) -> Path:
    """The file with its JSON object changed in place."""
    values = json.loads(path.read_text())
    change(values)
    _write(path, values)
    return path


def _prompt(arrays: dict[str, Any], run: str) -> Any:
    if run == "single_b":
        return arrays["batch_prompt"][1][arrays["batch_mask"][1]]
    return arrays["prompt" if run == "greedy_text_start" else "audio_prompt"][0]


def _write(path: Path, values: dict[str, Any]) -> None:
    path.write_text(json.dumps(values))
