"""A dump whose content is wrong never leads to a pass: it is refused, or the check fails.

All files here are sealed: their digest is right, as if they had been made so.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from reference_dumps import (
    CODEC_OF,
    RECORDED,
    RECORDED_CODEC,
    RECORDED_MODEL,
    checkpoint_folder,
    golden_dump,
)

from mosstalk.errors import CheckpointError, UsageError
from mosstalk.parity.opening import ModelChoice, Opened
from mosstalk.parity.reference.dump_file import DumpFile, read_dump_file, write_dump_file
from mosstalk.parity.reference.run import run_reference

Array = NDArray[Any]
DUMP = read_dump_file(RECORDED)
NAMES = sorted(DUMP.arrays)
# Nothing depends on how far apart choices were unless one comes out differently.
JUDGED = [name for name in NAMES if not name.endswith(("_gaps", "hidden_rows"))]


@pytest.fixture(scope="module")
def opened(golden_dir: Path) -> Opened:
    model = checkpoint_folder(golden_dir, RECORDED_MODEL)
    codec = checkpoint_folder(golden_dir, RECORDED_CODEC)
    return ModelChoice(str(model), str(codec), threads=1).open()


def sealed(folder: Path, meta: dict[str, object], arrays: dict[str, Array]) -> Path:
    path = folder / "wrong.npz"
    write_dump_file(path, DumpFile(meta, arrays))
    return path


def with_array(folder: Path, name: str, array: Array | None) -> Path:
    arrays = dict(DUMP.arrays)
    if array is None:
        del arrays[name]
    else:
        arrays[name] = array
    return sealed(folder, dict(DUMP.meta), arrays)


def test_the_dump_itself_passes(opened: Opened, tmp_path: Path) -> None:
    path = sealed(tmp_path, dict(DUMP.meta), dict(DUMP.arrays))
    assert run_reference(opened, path).passed


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "change",
    [
        lambda array: None,
        lambda array: array[:0],
        lambda array: array[..., :0],
        lambda array: array[:-1],
        lambda array: array[None],
        lambda array: array.reshape(-1)[:1].reshape(()),
        lambda array: array.astype(np.float32 if array.dtype == np.int32 else np.int32),
    ],
    ids=["missing", "empty", "no columns", "cut off", "another axis", "a number", "another type"],
)
def test_arrays_of_another_form_are_refused(
    opened: Opened, tmp_path: Path, name: str, change: Callable[[Array], Array | None]
) -> None:
    with pytest.raises(CheckpointError):
        run_reference(opened, with_array(tmp_path, name, change(DUMP.arrays[name])))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_values_that_are_not_finite_are_refused(
    opened: Opened, tmp_path: Path, name: str, value: float
) -> None:
    array = DUMP.arrays[name].copy()
    if array.dtype == np.int32:
        array.flat[-1] = -1
    else:
        array.flat[-1] = value
    with pytest.raises(CheckpointError):
        run_reference(opened, with_array(tmp_path, name, array))


@pytest.mark.parametrize("name", JUDGED)
def test_other_values_fail(opened: Opened, tmp_path: Path, name: str) -> None:
    array = DUMP.arrays[name]
    if array.dtype == np.int32:
        array = np.roll(array, 1, axis=0)
    else:
        array = array * np.float32(1.001 if name != "codec.sound" else -1)
    report = run_reference(opened, with_array(tmp_path, name, array))
    assert not report.passed
    part = "codec" if name.startswith("codec") else "random rows"
    assert all(part in result.name for result in report.results if not result.passed)


def test_vectors_of_other_rows_fail(opened: Opened, tmp_path: Path) -> None:
    arrays = dict(DUMP.arrays)
    arrays["prompt.0.hidden_rows"] = arrays["prompt.0.hidden_rows"][:-1]
    arrays["prompt.0.hidden"] = arrays["prompt.0.hidden"][1:]
    report = run_reference(opened, sealed(tmp_path, dict(DUMP.meta), arrays))
    assert [result.name for result in report.results if not result.passed] == [
        "hidden: random rows"
    ]


@pytest.mark.parametrize("name", [name for name in JUDGED if DUMP.arrays[name].dtype == np.float32])
def test_zeros_fail(opened: Opened, tmp_path: Path, name: str) -> None:
    path = with_array(tmp_path, name, np.zeros_like(DUMP.arrays[name]))
    assert not run_reference(opened, path).passed


@pytest.mark.parametrize("name", ["prompt.0.code_gaps", "prompt.0.gate_gaps", "codec.audio_gaps"])
@pytest.mark.parametrize("value", [-1e-3, 1e3])
def test_impossible_gaps_are_refused(
    opened: Opened, tmp_path: Path, name: str, value: float
) -> None:
    array = DUMP.arrays[name].copy()
    array.flat[0] = value
    with pytest.raises(CheckpointError, match="outside 0 to"):
        run_reference(opened, with_array(tmp_path, name, array))


def test_an_array_that_nobody_knows_is_refused(opened: Opened, tmp_path: Path) -> None:
    path = with_array(tmp_path, "prompt.1.rows", DUMP.arrays["prompt.0.rows"])
    with pytest.raises(CheckpointError, match="'prompt.1.rows'"):
        run_reference(opened, path)


@pytest.mark.parametrize(
    "key", sorted(DUMP.meta.keys() - {"format", "version"}) + ["prompts.0", "codec.0"]
)
def test_missing_meta_is_refused(opened: Opened, tmp_path: Path, key: str) -> None:
    name, _, inner = key.partition(".")
    if not inner:
        meta = {k: v for k, v in DUMP.meta.items() if k != name}
        with pytest.raises(CheckpointError):
            run_reference(opened, sealed(tmp_path, meta, dict(DUMP.arrays)))
        return
    value: Any = DUMP.meta[name]
    parts = value if isinstance(value, list) else [value]
    for wanted in parts[0]:
        cut = [{k: v for k, v in parts[0].items() if k != wanted}, *parts[1:]]
        meta = {**DUMP.meta, name: cut if isinstance(value, list) else cut[0]}
        with pytest.raises(CheckpointError, match=wanted):
            run_reference(opened, sealed(tmp_path, meta, dict(DUMP.arrays)))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"prompts": []}, "no prompt"),
        ({"prompts": {}}, "not a list"),
        ({"codec": None}, "contradict"),
        ({"codec_identity": ""}, "contradict"),
        ({"codec_identity": "0" * 16}, "another codec"),
        ({"model_identity": "0" * 16}, "another checkpoint"),
        ({"family": "moss_tts_delay"}, "of a moss_tts_delay model"),
        ({"dtype": "bfloat16"}, "bfloat16"),
        ({"weight_types": "f32"}, "weight_types"),
        ({"weight_types": ["f64"]}, "f64"),
        ({"versions": [1]}, "versions"),
        ({"code": {"a": 1}}, "code"),
        ({"seed": "0"}, "seed"),
        ({"surprise": 1}, "surprise"),
    ],
)
def test_wrong_meta_is_refused(
    opened: Opened, tmp_path: Path, change: dict[str, object], message: str
) -> None:
    path = sealed(tmp_path, {**DUMP.meta, **change}, dict(DUMP.arrays))
    with pytest.raises(CheckpointError, match=message):
        run_reference(opened, path)


@pytest.mark.parametrize(
    "change",
    [
        {"frames": 0},
        {"frames": -1},
        {"frames": 3},
        {"frames": 10**9},
        {"stopped": False},
        {"stopped": 1},
        {"logit_peak": 0.0},
        {"logit_peak": -1.0},
        {"logit_peak": 1e-6},
        {"kind": "song"},
        {"kind": "clone"},
        {"text": None},
        {"surprise": 1},
    ],
    ids=str,
)
def test_wrong_meta_of_a_prompt_is_refused(
    opened: Opened, tmp_path: Path, change: dict[str, object]
) -> None:
    prompts: Any = DUMP.meta["prompts"]
    meta = {**DUMP.meta, "prompts": [{**prompts[0], **change}]}
    with pytest.raises(CheckpointError):
        run_reference(opened, sealed(tmp_path, meta, dict(DUMP.arrays)))


@pytest.mark.parametrize(
    "change", [{"sample_stride": 0}, {"sample_stride": 390}, {"num_samples": 9}]
)
def test_wrong_meta_of_the_codec_never_passes(
    opened: Opened, tmp_path: Path, change: dict[str, object]
) -> None:
    codec: Any = DUMP.meta["codec"]
    path = sealed(tmp_path, {**DUMP.meta, "codec": {**codec, **change}}, dict(DUMP.arrays))
    try:
        assert not run_reference(opened, path).passed
    except CheckpointError as error:
        assert "sample_stride" in str(error)


def test_a_larger_peak_does_not_excuse_a_wrong_code(opened: Opened, tmp_path: Path) -> None:
    """A wrong code whose gap says that it was a near choice still spoils what follows it."""
    prompts: Any = DUMP.meta["prompts"]
    arrays = dict(DUMP.arrays)
    arrays["prompt.0.codes"] = np.roll(arrays["prompt.0.codes"], 1, axis=0)
    meta = {**DUMP.meta, "prompts": [{**prompts[0], "logit_peak": 1e9}]}
    report = run_reference(opened, sealed(tmp_path, meta, arrays))
    assert "hidden: random rows" in [r.name for r in report.results if not r.passed]


@pytest.mark.parametrize("what", ["text", "transcript", "voice_codes", "rows"])
def test_other_prompts_fail(golden_dir: Path, tmp_path: Path, what: str) -> None:
    dump = golden_dump(golden_dir, "nano_c", codec=False)
    prompt = next(prompt for prompt in dump.prompts if prompt.kind == "continuation")
    assert prompt.voice_codes is not None
    changed = {
        "text": {"text": prompt.text + "!"},
        "transcript": {"transcript": prompt.transcript.upper()},
        "voice_codes": {"voice_codes": np.roll(prompt.voice_codes, 1, axis=0)},
        "rows": {"rows": np.roll(prompt.rows, 1, axis=0)},
    }[what]
    wrong = replace(prompt, **changed)  # type: ignore[arg-type]
    path = tmp_path / "wrong.json"
    write_dump_file(path, replace(dump, prompts=(*dump.prompts[:1], wrong)).as_file())
    model = ModelChoice(str(checkpoint_folder(golden_dir, "nano_c"))).open()
    report = run_reference(model, path)
    failed = {result.name for result in report.results if not result.passed}
    assert "prompt ids" in failed


def test_another_checkpoint_is_refused(golden_dir: Path) -> None:
    other = checkpoint_folder(golden_dir, "nano_a")
    with pytest.raises(CheckpointError, match="of another checkpoint .* than .*nano_a"):
        run_reference(ModelChoice(str(other)).open(), RECORDED)


def test_a_model_without_the_codec_of_the_dump_is_a_usage_error(golden_dir: Path) -> None:
    model = checkpoint_folder(golden_dir, RECORDED_MODEL)
    with pytest.raises(UsageError, match="name the codec with --codec"):
        run_reference(ModelChoice(str(model)).open(), RECORDED)


def test_another_codec_is_refused(golden_dir: Path) -> None:
    model = checkpoint_folder(golden_dir, RECORDED_MODEL)
    codec = checkpoint_folder(golden_dir, CODEC_OF["nano_c"])
    with pytest.raises(CheckpointError, match="of another codec"):
        run_reference(ModelChoice(str(model), str(codec)).open(), RECORDED)


def test_a_codec_alone_is_a_usage_error(golden_dir: Path) -> None:
    codec = checkpoint_folder(golden_dir, RECORDED_CODEC)
    with pytest.raises(UsageError, match="codec alone"):
        run_reference(ModelChoice(str(codec)).open(), RECORDED)


@pytest.mark.parametrize("tolerance", [-1.0, float("nan"), float("inf")])
def test_tolerances_that_make_no_sense(opened: Opened, tolerance: float) -> None:
    with pytest.raises(UsageError, match="tolerance is"):
        run_reference(opened, RECORDED, tolerance)
