"""Models by name: where they are looked for, how downloads fail; without a network."""

from pathlib import Path
from typing import Any

import huggingface_hub
import numpy as np
import pytest
from checkpoint_files import write_model
from huggingface_hub.errors import LocalEntryNotFoundError

from mosstalk.checkpoint.hub import HUB_MODELS, pull, resolve_model
from mosstalk.errors import CheckpointError, DownloadError, UsageError

W = np.zeros((2, 2), np.float32)


class Hub:
    """Stands in for snapshot_download: keeps the calls, gives the folders or raises."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.error: Exception | None = None

    def snapshot_download(self, repo: str, **options: Any) -> str:
        self.calls.append((repo, options))
        if self.error is not None:
            raise self.error
        return str(self.folder / repo.split("/")[1])


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Hub:
    hub = Hub(tmp_path / "cache")
    write_model(hub.folder / "MOSS-TTS-Nano-100M", {"w": W})
    write_model(hub.folder / "MOSS-Audio-Tokenizer-Nano", {"c": W}, "moss-audio-tokenizer")
    monkeypatch.setattr(huggingface_hub, "snapshot_download", hub.snapshot_download)
    return hub


def status_error(kind: str, status: int) -> Exception:
    """An error of huggingface_hub, as it looks without its constructor's HTTP response."""
    error_class = getattr(huggingface_hub.errors, kind)
    error: Exception = error_class.__new__(error_class)
    error.args = (f"{status} Client Error\nRequest ID: x",)
    return error


def test_nano_comes_from_the_cache_at_the_pinned_revision(hub: Hub) -> None:
    model, codec = resolve_model("nano")
    assert (model.name, codec.name if codec else None) == (
        "MOSS-TTS-Nano-100M",
        "MOSS-Audio-Tokenizer-Nano",
    )
    for repo, options in hub.calls:
        assert options["local_files_only"] is True
        assert repo.startswith("OpenMOSS-Team/")
        assert len(options["revision"]) == 40


def test_nano_that_was_not_pulled(hub: Hub) -> None:
    hub.error = LocalEntryNotFoundError("not in the cache\nat all")
    with pytest.raises(CheckpointError, match="^nano is not downloaded; run `mosstalk pull nano`$"):
        resolve_model("nano")


def test_nano_that_was_half_pulled(hub: Hub) -> None:
    (hub.folder / "MOSS-TTS-Nano-100M" / "config.json").unlink()
    with pytest.raises(CheckpointError, match="only partly downloaded .*run `mosstalk pull nano`"):
        resolve_model("nano")


def test_paths_are_taken_as_they_are(tmp_path: Path) -> None:
    (tmp_path / "m.gguf").touch()
    assert resolve_model(str(tmp_path)) == (tmp_path, None)
    assert resolve_model(str(tmp_path / "m.gguf")) == (tmp_path / "m.gguf", None)


def test_missing_paths_and_unknown_names(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"x\.gguf does not exist"):
        resolve_model("x.gguf")
    with pytest.raises(CheckpointError, match="does not exist; give a model directory"):
        resolve_model(str(tmp_path / "x"))
    with pytest.raises(UsageError, match="unknown model 'nono'; choose sprout, nano, voicegen, a"):
        resolve_model("nono")


def test_sprout_is_package_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mosstalk.checkpoint.hub.resources.files", lambda package: tmp_path)
    with pytest.raises(CheckpointError, match=r"sprout\.gguf is missing; install mosstalk again"):
        resolve_model("sprout")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "sprout.gguf").touch()
    assert resolve_model("sprout") == (tmp_path / "data" / "sprout.gguf", None)


def test_pull_asks_for_data_files_at_the_pinned_revision(hub: Hub) -> None:
    model, codec = pull("nano")
    assert model == hub.folder / "MOSS-TTS-Nano-100M"
    assert codec == hub.folder / "MOSS-Audio-Tokenizer-Nano"
    pinned = [HUB_MODELS["nano"].model, HUB_MODELS["nano"].codec]
    assert [(repo, options["revision"]) for repo, options in hub.calls] == [
        (repo.name, repo.revision) for repo in pinned
    ]
    for _, options in hub.calls:
        assert {"config.json", "tokenizer.model"} <= set(options["allow_patterns"])
        assert not any(".py" in pattern for pattern in options["allow_patterns"])


def test_pull_checks_what_came(hub: Hub) -> None:
    weights = hub.folder / "MOSS-Audio-Tokenizer-Nano" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1])
    with pytest.raises(CheckpointError, match="is truncated"):
        pull("nano")


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (LocalEntryNotFoundError("offline"), "cannot reach huggingface.co for OpenMOSS-Team/MOSS"),
        (
            status_error("RepositoryNotFoundError", 404),
            "is not on huggingface.co, or needs",
        ),
        (status_error("RevisionNotFoundError", 404), "has no revision 44502f80dbf9 any more"),
        (status_error("HfHubHTTPError", 503), "failed: 503 Client Error; run the command again"),
        (OSError(28, "No space left on device"), "failed: .*No space left on device; run"),
        (TimeoutError(), "failed: TimeoutError; run the command again"),
    ],
)
def test_failed_download_is_one_clear_line(hub: Hub, error: Exception, message: str) -> None:
    hub.error = error
    with pytest.raises(DownloadError, match=message) as caught:
        pull("nano")
    assert "\n" not in str(caught.value)


def test_names_that_cannot_be_pulled(hub: Hub) -> None:
    with pytest.raises(UsageError, match="unknown model 'x'; `mosstalk pull` knows nano"):
        pull("x")
    with pytest.raises(UsageError, match="sprout is part of mosstalk"):
        pull("sprout")
    assert not hub.calls
