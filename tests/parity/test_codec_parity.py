"""A healthy codec passes with no difference at all, whatever its form; what it is held against."""

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from random_codecs import random_config, small_config, write_codec

from mosstalk.checkpoint.checkpoint import open_checkpoint
from mosstalk.cli import main, parity
from mosstalk.codec.moss_audio_tokenizer.codec import MossAudioTokenizer
from mosstalk.errors import UsageError
from mosstalk.parity.codec.layout import Layout, longest_window, read_layout
from mosstalk.parity.codec.run import Options, run_codec
from mosstalk.parity.codec.written_out import WrittenOut
from mosstalk.parity.opening import ModelChoice, Opened
from mosstalk.parity.report import Report

CODECS = ["nano_narrow", "nano_wide", "nano_e2e", "full_narrow", "full_wide", "full_e2e"]
# Of the largest value, between float64 here and the original's float32.
TOLERANCE = 3e-6


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_codec(tmp_path_factory.mktemp("codecs") / "small", small_config())


@pytest.fixture(params=CODECS)
def golden(request: pytest.FixtureRequest, golden_dir: Path) -> tuple[Path, dict[str, Any]]:
    """A codec's directory, and what the original computed with it."""
    name = f"codec_{request.param}"
    folder = golden_dir / "checkpoints" / name
    arrays = golden_dir / "reference" / f"{name}.npz"
    if not arrays.is_file() or not (folder / "model.safetensors").is_file():
        pytest.skip(f"{name} is not here")
    return folder, dict(np.load(arrays))


def assert_exact(report: Report) -> None:
    assert report.passed, report.as_text()
    exact = [r for r in report.results if r.expects == "equal" and r.tolerance == 0]
    assert len(exact) >= 8
    assert all(result.max_abs in (0.0, None) for result in exact)  # None: ids
    assert all(result.compared for result in report.results)


@pytest.mark.parametrize("threads", [1, 2])
def test_no_difference_on_cpu(small: Path, threads: int) -> None:
    report = run_codec(ModelChoice(str(small), threads=threads).open(), Options())
    assert_exact(report)
    assert report.settings["frames"] == "43,94,171,375,1000"


@pytest.mark.parametrize("seed", range(20))
def test_no_difference_whatever_the_form(tmp_path: Path, seed: int) -> None:
    folder = write_codec(tmp_path, random_config(seed), seed)
    choice = ModelChoice(str(folder), threads=1 + seed % 2)
    assert_exact(run_codec(choice.open(), Options(frames=(20, 97), seed=seed)))


def test_no_difference_on_golden_codecs(golden: tuple[Path, dict[str, Any]]) -> None:
    assert_exact(run_codec(ModelChoice(str(golden[0])).open(), Options(frames=(43,))))


@pytest.mark.parametrize("frames", [(1,), (2,), (15,), (16, 17), (43, 44)])
def test_short_lengths(small: Path, frames: tuple[int, ...]) -> None:
    assert_exact(run_codec(ModelChoice(str(small)).open(), Options(frames=frames)))


def test_reference_backend_is_within_rounding(small: Path) -> None:
    opened = ModelChoice(str(small), backend="reference").open()
    report = run_codec(opened, Options(frames=(20,)))
    assert report.passed, report.as_text()
    assert report.settings["tolerance"] == 1e-5
    assert "decoder on reference" not in {result.name for result in report.results}


def test_a_codec_that_only_decodes(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def decoder(opened: Opened) -> MossAudioTokenizer:
        config, tensors = opened.checkpoint.codec_config, opened.checkpoint.codec_tensors
        assert config is not None and tensors is not None
        return MossAudioTokenizer(config, tensors, opened.backend, decode_only=True)

    monkeypatch.setattr(Opened, "codec", decoder)
    report = run_codec(ModelChoice(str(small)).open(), Options(frames=(43,)))
    assert report.passed, report.as_text()
    assert not any("encode" in result.name for result in report.results)


# What the codec is held against, itself held against the original.


def written(folder: Path) -> WrittenOut:
    checkpoint = open_checkpoint(folder)
    assert checkpoint.codec_config is not None
    assert checkpoint.codec_tensors is not None
    return WrittenOut(read_layout(checkpoint.codec_config), checkpoint.codec_tensors)


def codes_of(array: NDArray[Any]) -> NDArray[np.int32]:
    return array[:, 0].T.astype(np.int32)


@pytest.mark.parametrize("name", ["", "long_"])
def test_written_out_decoder_is_the_original(
    golden: tuple[Path, dict[str, Any]], name: str
) -> None:
    folder, arrays = golden
    expected = arrays[f"{name}audio"]
    codec = written(folder)
    samples = codec.decode(codes_of(arrays[f"{name}codes"]))
    expected = expected.reshape(len(samples), -1)
    assert (
        np.abs(samples[:, : expected.shape[1]] - expected).max()
        <= TOLERANCE * np.abs(expected).max()
    )


def test_written_out_encoder_finds_the_original_codes(
    golden: tuple[Path, dict[str, Any]],
) -> None:
    folder, arrays = golden
    codec = written(folder)
    wav = np.atleast_2d(arrays["wav"])
    frames = wav.shape[1] // codec.layout.frame_len
    codes = codes_of(arrays["codes"])[:frames]
    best, chosen = codec.code_scores(wav[:, : frames * codec.layout.frame_len], codes)
    assert codes.size
    np.testing.assert_allclose(chosen, best, rtol=0, atol=TOLERANCE)


def test_a_late_part_is_the_end_of_the_whole(small: Path) -> None:
    codec = written(small)
    layout = codec.layout
    shape = (layout.reach + 30, layout.codebooks)
    codes = np.random.default_rng(0).integers(layout.codebook_size, size=shape, dtype=np.int32)
    whole = codec.decode(codes)
    for first in (1, 20, len(codes) - 1):
        late = codec.decode(codes, first)
        expected = whole[:, first * layout.frame_len :]
        np.testing.assert_allclose(late, expected, rtol=0, atol=1e-12 * np.abs(whole).max())


def real_layout() -> Layout:
    """The published Nano codec (spec nano.md 1.4)."""

    def stage(layers: int, seconds: float) -> dict[str, Any]:
        entry = {"module_type": "Transformer", "num_layers": layers, "context_duration": seconds}
        return entry | {"num_heads": 4, "d_model": 256}

    def modules(stages: list[dict[str, Any]], patches: list[int]) -> list[dict[str, Any]]:
        listed: list[dict[str, Any]] = []
        for size, entry in zip(patches, [*stages, {}], strict=True):
            listed += [{"module_type": "PatchedPretransform", "patch_size": size}, entry]
        return listed[:-1]

    stages = [stage(4, 10.0), stage(2, 8.0), stage(2, 6.0), stage(4, 4.0)]
    return read_layout(
        {
            "sampling_rate": 48000,
            "downsample_rate": 3840,
            "number_channels": 2,
            "decoder_kwargs": modules(stages, [4, 2, 2, 2, 240]),
            "encoder_kwargs": modules(stages[::-1], [240, 2, 2, 2, 4]),
            "quantizer_kwargs": {"num_quantizers": 16, "codebook_size": 1024},
        }
    )


def test_windows_of_the_published_codec() -> None:
    """Spec nano.md 5.2."""
    layout = real_layout()
    expected = [500] * 4 + [800] * 2 + [1200] * 2 + [1600] * 4
    assert [layer.window for layer in layout.decoder_layers] == expected
    assert longest_window(layout.decoder) == longest_window(layout.encoder) == 125


def test_reach_is_the_windows_one_after_another() -> None:
    """84 seconds: 4 x 10 + 2 x 8 + 2 x 6 + 4 x 4, less what windows share."""
    assert 84 * 12.5 - 12 < real_layout().reach <= 84 * 12.5


# What is told beside the checks, and the command.


def test_noise_is_drawn_by_second_with_a_line_for_each_chunking(small: Path) -> None:
    report = run_codec(ModelChoice(str(small)).open(), Options(frames=(43, 100)))
    (figure,) = report.figures
    assert [line.label for line in figure.lines] == [
        *(f"chunks of {size}" for size in (1, 2, 8, 15)),
        "written out",
    ]
    assert figure.is_log
    for line in figure.lines[:4]:
        assert line.x == tuple(range(10))  # ten frames a second
        assert set(line.y) == {0.0}
    last = figure.lines[4]
    assert last.x == (0, 1, 2, 3, 4, 9)
    assert all(0 < ratio < 1e-6 for ratio in last.y)
    rows = report.tables[0].rows
    assert rows[0] == ("chunks of 1", "equal", "equal", "equal")
    assert rows[4][1].endswith(" dB")


def run(*arguments: str) -> int:
    parser = argparse.ArgumentParser()
    parity.add_arguments(parser)
    return parity.run(parser.parse_args(["codec", *arguments]))


def test_json_is_one_object(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = str(small)
    assert run("--model", model, "--frames", "43,20,43", "--threads", "2", "--json") == 0
    out = capsys.readouterr().out
    values = json.loads(out)
    checks = values.pop("checks")
    assert list(values.pop("tables")) == ["Signal to noise of the decoder"]
    max_abs = values.pop("max_abs")
    assert 0 < max_abs < 1e-4  # of the written-out decoder
    assert values == {
        "check": "codec",
        "model": model,
        "backend": "cpu",
        "threads": 2,
        "weight_type": "native",
        "frames": "20,43",
        "seed": 0,
        "tolerance": 0.0,
        "passed": True,
    }
    assert out.count("\n") == 1
    assert checks[1]["name"] == "stream vs whole, 43 frames"


def test_failure_is_status_1_and_says_what(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # With all differences allowed, the controls do not differ enough.
    assert run("--model", str(small), "--frames", "20", "--tolerance", "1e6") == 1
    out = capsys.readouterr().out
    assert "FAIL  begun anew: does not differ, but must" in out
    assert out.splitlines()[-1].startswith("FAIL: 5 of ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--frames", "43,0"], "frames is 0"),
        (["--tolerance", "-1"], "tolerance is -1"),
        (["--seed", "-1"], "seed is -1"),
        (["--backend", "abacus"], "abacus"),
    ],
)
def test_unusable_values_are_usage_errors(small: Path, arguments: list[str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        run("--model", str(small), *arguments)


def test_no_length_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="no length"):
        Options(frames=())


def test_a_model_without_a_codec_is_a_usage_error(
    random_nano: Path, small: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["parity", "codec", "--model", str(random_nano), "--frames", "20"]
    assert main(command) == 2
    assert "has no codec; name it with --codec" in capsys.readouterr().err
    assert main([*command, "--codec", str(small)]) == 0
