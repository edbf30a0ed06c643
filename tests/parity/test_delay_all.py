"""All checks together on models of the delay family, and the parts that hold for it alone."""

import json
import re
import time
from pathlib import Path

import numpy as np
import pytest
from delay_dumps import checkpoint_folder, recorded_without_codec
from safetensors.numpy import load_file, save_file
from tiny_delay import write_tiny_delay

from mosstalk.cli import main
from mosstalk.errors import UsageError
from mosstalk.parity.codec.run import Options as CodecOptions
from mosstalk.parity.codec.run import run_codec
from mosstalk.parity.opening import ModelChoice
from mosstalk.parity.report import Report
from mosstalk.parity.storage.run import Options as StorageOptions
from mosstalk.parity.storage.run import run_storage
from mosstalk.parity.streams.run import Options as StreamsOptions
from mosstalk.parity.streams.run import run_streams

Capture = pytest.CaptureFixture[str]
SESSIONS = {
    "interleaved",
    "one starts late",
    "one cancelled",
    "session used again",
    "requests must differ",
    "other seed must differ",
}
SPEAKER = {
    "speaker, interleaved",
    "speaker, one starts late",
    "speaker, one closed",
    "speaker, other seed must differ",
}
# Members of the family, by what tells them apart.
MEMBERS: dict[str, dict[str, int]] = {
    "VoiceGenerator": {},
    "TTS": {"n_vq": 32},
    "TTSD": {"hidden": 4096},
}


@pytest.fixture(scope="module")
def members(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("members")
    return {name: write_tiny_delay(folder / name, **sizes) for name, sizes in MEMBERS.items()}


def assert_exact(report: Report, checks: set[str]) -> None:
    assert report.passed, report.as_text()
    assert {result.name for result in report.results} == checks
    assert all(r.max_abs == 0.0 for r in report.results if r.expects == "equal")
    assert all(result.compared for result in report.results)


@pytest.mark.parametrize("member", MEMBERS)
def test_delay_streams(members: dict[str, Path], member: str) -> None:
    """Sessions row by row, frames as the staircase lets them out, and the engine."""
    opened = ModelChoice(str(members[member])).open()
    assert_exact(run_streams(opened, StreamsOptions(streams=4, frames=8)), SESSIONS | SPEAKER)


@pytest.mark.parametrize("seed", range(1, 5))
def test_delay_streams_without_a_codec(random_delay: Path, seed: int) -> None:
    opened = ModelChoice(str(random_delay), threads=1 + seed % 2, weight_type="q8_0").open()
    options = StreamsOptions(streams=1 + seed, frames=3 * seed, seed=seed)
    assert_exact(run_streams(opened, options), SESSIONS)


def test_delay_streams_need_room_for_the_staircase(random_delay: Path) -> None:
    """36 prompt rows, frames, and 3 rows more than frames."""
    opened = ModelChoice(str(random_delay)).open()
    with pytest.raises(UsageError, match="320 positions; lower --frames"):
        run_streams(opened, StreamsOptions(frames=282))


@pytest.mark.parametrize("member", MEMBERS)
def test_delay_storage(members: dict[str, Path], member: str) -> None:
    opened = ModelChoice(str(members[member])).open()
    report = run_storage(opened, StorageOptions(frames=8))
    assert report.passed, report.as_text()
    language = report.tables[0]
    rows = {row[0]: row for row in language.rows}
    count = 8 + int(str(opened.checkpoint.config["n_vq"])) - 1
    assert rows["f32"][2] == "0.00e+00" and rows["f32"][5] == f"{count} of {count}"
    f16, bf16, q8_0 = (float(rows[name][2]) for name in ("f16", "bf16", "q8_0"))
    assert 0 < f16 < bf16 < q8_0 < 0.1
    megabytes = [float(rows[name][1]) for name in ("f32", "f16", "q8_0")]
    assert megabytes == sorted(megabytes, reverse=True)
    told = r"none|row \d+ (text|codebook \d+): gap \S+, logits differ by \S+"
    assert all(re.fullmatch(told, row[-1]) for row in language.rows)


def test_a_codec_without_its_encoder(members: dict[str, Path], tmp_path: Path) -> None:
    """VoiceGenerator takes no recordings, so the half that encodes may be left out."""
    source = members["VoiceGenerator"] / "audio_tokenizer"
    folder = tmp_path / "decoder"
    folder.mkdir()
    (folder / "config.json").write_bytes((source / "config.json").read_bytes())
    tensors = {
        name: array
        for name, array in load_file(source / "model.safetensors").items()
        if not re.match(r"encoder\.|quantizer\.(input_proj|.*\.in_proj)\.", name)
    }
    save_file(tensors, folder / "model.safetensors")
    opened = ModelChoice(str(members["VoiceGenerator"]), codec=str(folder)).open()
    report = run_codec(opened, CodecOptions(frames=(43,)))
    assert report.passed, report.as_text()
    assert "windows" in {result.name for result in report.results}
    assert not any("encode" in result.name for result in report.results)
    assert run_storage(opened, StorageOptions(frames=4)).passed
    assert_exact(run_streams(opened, StreamsOptions(streams=2, frames=4)), SESSIONS | SPEAKER)


@pytest.mark.parametrize("name", ["delay_small", "delay_vg", "tiny"])
def test_parity_all_on_delay_models(
    golden_dir: Path, members: dict[str, Path], tmp_path: Path, capsys: Capture, name: str
) -> None:
    tiny = members["VoiceGenerator"]
    model = tiny if name == "tiny" else checkpoint_folder(golden_dir, name)
    command = ["parity", "all", "--model", str(model), "--out", str(tmp_path / "out"), "--json"]
    started = time.process_time()
    if name == "delay_small":
        command += ["--dump", str(recorded_without_codec(tmp_path / "dump"))]
    assert main(command) == 0
    assert time.process_time() - started < 60
    values = json.loads(capsys.readouterr().out)
    checks = [report["check"] for report in values["reports"]]
    assert checks.count("kv-cache") == 5 and {"delay", "streams", "storage"} <= set(checks)
    assert all(r["max_abs"] == 0.0 for r in values["reports"] if r["check"] == "kv-cache")
    left_out = {skipped["check"] for skipped in values["skipped"]}
    assert (
        left_out
        == {
            "delay_small": {"codec"},
            "delay_vg": {"codec", "reference"},
            "tiny": {"reference"},
        }[name]
    )
    page = (tmp_path / "out" / "parity.html").read_text(encoding="utf-8")
    assert "scope of the penalty" in page and "heads in parts" in page


def test_random_prompts_end_where_speech_begins(random_delay: Path) -> None:
    """So that a run has codes from its first row on, whatever the weights are."""
    model = ModelChoice(str(random_delay)).open().language_model()
    rows = model.random_prompt(24, 3)
    assert rows.shape == (24, 5) and rows[-1].tolist() == [6, 32, 32, 32, 32]
    assert (rows[:-1, 1:] < 32).any() and (rows[:-1, 1:] == 32).any()
    assert model.rows_for(8) == 11
    changed = model.changed(rows, 5)
    assert [int(np.count_nonzero(other != rows)) for _, other in changed] == [1, 1]
