"""`mosstalk parity all`: everything is run, and both documents tell it."""

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from mosstalk.cli import main
from mosstalk.models.moss_tts_nano.global_transformer import GlobalTransformer
from mosstalk.parity.document.full_report import FullReport
from mosstalk.parity.document.plot import as_svg, is_flat_zero
from mosstalk.parity.figure import Figure, Line
from mosstalk.parity.report import Report

SVG = "{http://www.w3.org/2000/svg}"


def test_report_in_both_formats(
    random_nano: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "reports" / "today"
    command = ["parity", "all", "--model", str(random_nano), "--out", str(out), "--json"]
    assert main(command) == 0
    values = json.loads(capsys.readouterr().out)
    assert values["passed"] and values["files"] == [
        str(out / f"parity.{e}") for e in ("md", "html")
    ]
    kv_cache = [r for r in values["reports"] if r["check"] == "kv-cache"]
    assert {r["weight_type"] for r in kv_cache} == {"native", "f32", "f16", "bf16", "q8_0"}
    assert all(r["max_abs"] == 0.0 for r in kv_cache)
    assert any(re.fullmatch("[0-9a-f]{64}", value) for value in values["machine"].values())
    markdown = (out / "parity.md").read_text(encoding="utf-8")
    page = (out / "parity.html").read_text(encoding="utf-8")
    for text in (markdown, page):
        assert "PASS" in text and "prefill vs chunked" in text and "first disagreement" in text
    assert "<svg" in page and "<script" not in page
    loaded = re.findall(r"(?:src|href)=|@import|url\(http", page)
    assert not [found for found in loaded if found != "href="], "the page must need nothing else"


def test_failure_is_told_everywhere(
    random_nano: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    run = GlobalTransformer.run
    broken = lambda *args, **kwargs: run(*args, **kwargs) * np.nan  # noqa: E731
    monkeypatch.setattr(GlobalTransformer, "run", broken)
    assert main(["parity", "all", "--model", str(random_nano), "--out", str(tmp_path)]) == 1
    assert capsys.readouterr().out.splitlines()[-1].startswith("FAIL: ")
    for name in ("parity.md", "parity.html"):
        text = (tmp_path / name).read_text(encoding="utf-8")
        assert "FAIL" in text and "not finite" in text


def test_folder_that_cannot_be_written_is_one_line(
    random_nano: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    command = ["parity", "all", "--model", str(random_nano), "--out", str(tmp_path / "file" / "x")]
    assert main(command) == 1
    assert "cannot make the folder" in capsys.readouterr().err.splitlines()[-1]


def test_nothing_run_is_no_pass() -> None:
    assert not FullReport("m", {}, (), (), 0.0).passed
    assert not FullReport("m", {}, (Report("kv-cache", {}, ()),), (), 0.0).passed


def test_plot_of_powers_of_ten_shows_zero_apart() -> None:
    figure = Figure("t", "position", "y", (Line("a", (0, 1, 2), (0.0, 1e-3, 1e-6)),), is_log=True)
    tree = ElementTree.fromstring(as_svg(figure))
    texts = [element.text for element in tree.iter(f"{SVG}text")]
    assert {"0", "1e-6", "1e-3"} <= set(texts)
    assert len([e for e in tree.iter(f"{SVG}circle") if "dot" in (e.get("class") or "")]) == 3
    assert not is_flat_zero(figure)
    assert is_flat_zero(Figure("t", "x", "y", (Line("a", (0, 1), (0.0, 0.0)),)))


def test_line_of_unequal_lengths_is_refused() -> None:
    with pytest.raises(ValueError, match="2 places, 1 values"):
        Line("a", (0, 1), (1.0,))
