"""Files of a dump that are damaged, or of another model, are one clear error and never a pass."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from delay_dumps import (
    RECORDED,
    RECORDED_CODEC,
    RECORDED_MODEL,
    checkpoint_folder,
    edited,
    recorded_without_codec,
)

from mosstalk.errors import CheckpointError, UsageError
from mosstalk.parity.delay.files import (
    probe_codes,
    read_codec,
    read_hidden,
    read_prompt,
    read_rows,
)
from mosstalk.parity.delay.reference import run_dump_folder
from mosstalk.parity.opening import ModelChoice, Opened

Change = Callable[[dict[str, Any]], object]


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    return recorded_without_codec(tmp_path / "dump")


@pytest.fixture
def opened(golden_dir: Path) -> Opened:
    return ModelChoice(str(checkpoint_folder(golden_dir, RECORDED_MODEL))).open()


def put(key: str, value: object) -> Change:
    return lambda values: values.__setitem__(key, value)


def drop(key: str) -> Change:
    return lambda values: values.pop(key)


def at(key: str, place: tuple[int, ...], value: object) -> Change:
    def change(values: dict[str, Any]) -> None:
        target = values[key]
        for index in place[:-1]:
            target = target[index]
        target[place[-1]] = value

    return change


PROMPT, HIDDEN, ROWS = "ref_prompt.json", "ref_hidden.json", "ref_rows.json"
DAMAGE: list[tuple[str, Change, str]] = [
    (PROMPT, drop("input_ids"), "'input_ids' is missing, or not a list of numbers"),
    (PROMPT, put("input_ids", []), "'input_ids' is missing, or not a list of numbers"),
    (PROMPT, put("input_ids", [1, 2, 3]), r"'input_ids' is int32 \[3\], not int32"),
    (PROMPT, put("input_ids", [[1]] * 48), "'input_ids' has rows without codes"),
    (PROMPT, put("input_ids", [[1, 2, 3]] * 48), "rows of 3 ids, but the model has rows of 5"),
    (PROMPT, at("input_ids", (3,), [1, 2]), "not a list of numbers of one shape"),
    (PROMPT, at("input_ids", (3, 0), 1.5), "'input_ids' is missing, or not a list of numbers"),
    (PROMPT, at("input_ids", (3, 0), -1), "'input_ids' has ids below 0"),
    (PROMPT, at("input_ids", (3, 0), 128), "rows with ids that the model does not have"),
    (PROMPT, at("input_ids", (3, 1), 33), "rows with ids that the model does not have"),
    (PROMPT, at("input_ids", (3, 0), 2**40), "'input_ids' has ids that no model has"),
    (PROMPT, at("input_ids", (3, 0), 2**80), "'input_ids' is missing, or not a list of numbers"),
    (PROMPT, lambda values: values["input_ids"].pop(), "is of 48 rows, but .* has 47"),
    (PROMPT, put("text", 7), "'text' is 7, not of type str"),
    (HIDDEN, drop("last_hidden"), "'last_hidden' is missing, or not a list of numbers"),
    (HIDDEN, put("hidden_size", 32), r"'last_hidden' is float32 \[64\], not float32 \[32\]"),
    (HIDDEN, at("last_hidden", (0,), float("nan")), "'last_hidden' has values that are not finite"),
    (HIDDEN, at("last_hidden", (0,), 1e39), "'last_hidden' has values that are not finite"),
    (HIDDEN, at("last_hidden", (0,), 50.0), "'last_hidden_abs_max' is .*, but .* has 50"),
    (HIDDEN, at("last_hidden", (0,), "x"), "'last_hidden' is missing, or not a list of numbers"),
    (HIDDEN, put("probe_positions", [0, 1, 48]), "'probe_positions' go beyond its 48 rows"),
    (HIDDEN, put("probe_positions", [0]), "'probe_hidden' is float32"),
    (HIDDEN, drop("rows"), "'rows' is missing"),
    (HIDDEN, at("probe_hidden", (1, 5), float("inf")), "'probe_hidden' has values that are not"),
    (ROWS, put("greedy", False), "'greedy' is False; only True is supported"),
    (ROWS, drop("generated_rows"), "'generated_rows' is missing"),
    (ROWS, put("repetition_penalty", 0.0), "'repetition_penalty' is 0.0"),
    (ROWS, put("logit_peak", float("nan")), "'logit_peak' is nan"),
    (ROWS, lambda values: values["logits"].pop(), r"'logits' is float32 \[43, 5\]"),
    (ROWS, put("input_ids", [[1, 2, 3]]), "rows of 3 ids before rows of 5"),
    (ROWS, at("generated_rows", (0, 0), 500), "rows with ids that the model does not have"),
]


@pytest.mark.parametrize(("name", "change", "message"), DAMAGE)
def test_delay_damage_is_told(
    opened: Opened, dump: Path, name: str, change: Change, message: str
) -> None:
    edited(dump / name, change)
    with pytest.raises(CheckpointError, match=message) as caught:
        run_dump_folder(opened, dump)
    assert str(dump / name) in str(caught.value)


@pytest.mark.parametrize("name", [PROMPT, HIDDEN, ROWS])
def test_delay_files_of_another_checkpoint(opened: Opened, dump: Path, name: str) -> None:
    edited(dump / name, lambda values: values["origin"].update(model_identity="0" * 16))
    with pytest.raises(CheckpointError, match="is of another checkpoint"):
        run_dump_folder(opened, dump)


def test_delay_codec_file_of_another_codec(golden_dir: Path, tmp_path: Path) -> None:
    model = str(checkpoint_folder(golden_dir, RECORDED_MODEL))
    codec = str(checkpoint_folder(golden_dir, "codec_full_e2e"))
    with pytest.raises(CheckpointError, match="is of another codec"):
        run_dump_folder(ModelChoice(model, codec=codec).open(), RECORDED)
    with pytest.raises(UsageError, match="has no codec; name it with --codec"):
        run_dump_folder(ModelChoice(model).open(), RECORDED)


def test_delay_wrong_samples_fail(golden_dir: Path, tmp_path: Path) -> None:
    model = str(checkpoint_folder(golden_dir, RECORDED_MODEL))
    codec = str(checkpoint_folder(golden_dir, RECORDED_CODEC))
    folder = tmp_path / "dump"
    shutil.copytree(RECORDED, folder)
    edited(folder / "ref_codec.json", at("probe_values", (9,), 0.7))
    report = run_dump_folder(ModelChoice(model, codec=codec).open(), folder)
    assert {r.name for r in report.results if not r.passed} == {"codec: codes to audio"}


def test_delay_files_that_are_missing_or_no_json(opened: Opened, dump: Path) -> None:
    (dump / "ref_hidden.json").write_text("{")
    with pytest.raises(CheckpointError, match="is not valid JSON"):
        run_dump_folder(opened, dump)
    (dump / "ref_hidden.json").unlink()
    with pytest.raises(CheckpointError, match="does not exist; make it with"):
        run_dump_folder(opened, dump)
    (dump / "ref_rows.json").unlink()
    (dump / "ref_rows_penalty.json").unlink()
    with pytest.raises(CheckpointError, match=r"has no ref_rows\.json"):
        run_dump_folder(opened, dump)


def test_delay_recorded_files_are_read_as_they_are_written() -> None:
    for read, name in (
        (read_prompt, PROMPT),
        (read_hidden, HIDDEN),
        (read_rows, ROWS),
        (read_codec, "ref_codec.json"),
    ):
        file = read(RECORDED / name)
        assert file.origin is not None and file.origin.versions["transformers"] == "5.0.0"
        assert file.origin.seed == 0


def test_probe_codes_by_their_formula() -> None:
    """Spec 7.1."""
    codes = probe_codes(40, 16, 1024)
    assert codes.shape == (40, 16)
    assert codes[0, 0] == 0 and codes[3, 2] == 37 * 2 + 5 * 3
    assert codes[39, 15] == 37 * 15 + 5 * 39 and probe_codes(40, 16, 64)[39, 15] == 750 % 64
