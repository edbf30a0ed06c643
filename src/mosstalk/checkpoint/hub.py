"""Models by name: `sprout`, which is part of the package, and those fetched from a model hub."""

from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from mosstalk.checkpoint.checkpoint import open_checkpoint
from mosstalk.errors import CheckpointError, DownloadError, UsageError

BUILT_IN = "sprout"


@dataclass(frozen=True, slots=True)
class HubRepo:
    """A repository on huggingface.co at the revision this version was tested with."""

    name: str
    revision: str


@dataclass(frozen=True, slots=True)
class HubModel:
    """A language model and the codec that belongs to it."""

    model: HubRepo
    codec: HubRepo


HUB_MODELS = {
    "nano": HubModel(
        HubRepo("OpenMOSS-Team/MOSS-TTS-Nano-100M", "44502f80dbf9743528fa921cc544d662c685ebec"),
        HubRepo(
            "OpenMOSS-Team/MOSS-Audio-Tokenizer-Nano", "6aa02b01e445cc585582cf0ba480bc3ea6c8dd68"
        ),
    ),
    "voicegen": HubModel(
        HubRepo("OpenMOSS-Team/MOSS-VoiceGenerator", "97521ec2b6f3ec5026ac1f5751f8fc302d82c2d4"),
        HubRepo("OpenMOSS-Team/MOSS-Audio-Tokenizer", "3cd226ba2947efa357ef453bcad111b6eafba782"),
    ),
}

# Data only: the Python files in those repositories are not needed.
_NEEDED_FILES = [
    "config.json",
    "*.safetensors",
    "*.safetensors.index.json",
    "pytorch_model*.bin",
    "pytorch_model.bin.index.json",
    "tokenizer.json",
    "tokenizer.model",
    "tokenizer_config.json",
    "special_tokens_map.json",
]


def resolve_model(name: str) -> tuple[Path, Path | None]:
    """Where a model lies on this machine: its path, and its codec's if that is elsewhere.

    `name` is `sprout`, a model that was pulled (`nano`, `voicegen`), or the path of a directory or
    a .gguf file; a folder that is called like a model is given as `./nano`. Nothing is downloaded.
    Raises CheckpointError for a model that is not there, UsageError for an unknown name.
    """
    if name == BUILT_IN:
        return _built_in(), None
    if name in HUB_MODELS:
        model = HUB_MODELS[name]
        return _cached(model.model, name), _cached(model.codec, name)
    path = Path(name).expanduser()
    if path.is_dir() or path.is_file():
        return path, None
    if path.suffix == ".gguf" or len(path.parts) > 1:
        raise CheckpointError(f"{name} does not exist; give a model directory or a .gguf file")
    raise UsageError(
        f"unknown model {name!r}; choose {', '.join((BUILT_IN, *HUB_MODELS))}, a model directory "
        "or a .gguf file"
    )


def pull(name: str) -> tuple[Path, Path]:
    """Download a model and its codec into the Hugging Face cache; their directories.

    Files that are there are not fetched again, and a broken download is continued. Both are
    opened afterwards, which checks every file. Raises UsageError for an unknown name,
    DownloadError where the hub cannot be reached or lacks the model, and CheckpointError where
    what came is damaged.
    """
    if name == BUILT_IN:
        raise UsageError(f"{BUILT_IN} is part of mosstalk; there is nothing to pull")
    if name not in HUB_MODELS:
        raise UsageError(f"unknown model {name!r}; `mosstalk pull` knows {', '.join(HUB_MODELS)}")
    model = HUB_MODELS[name]
    model_path, codec_path = _download(model.model), _download(model.codec)
    open_checkpoint(model_path, codec_path)
    return model_path, codec_path


def _built_in() -> Path:
    path = Path(str(resources.files("mosstalk") / "data" / f"{BUILT_IN}.gguf"))
    if not path.is_file():
        raise CheckpointError(f"{path} is missing; install mosstalk again")
    return path


def _cached(repo: HubRepo, name: str) -> Path:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import LocalEntryNotFoundError

    try:
        path = Path(
            snapshot_download(
                repo.name,
                revision=repo.revision,
                allow_patterns=_NEEDED_FILES,
                local_files_only=True,
            )
        )
    except LocalEntryNotFoundError:
        raise CheckpointError(f"{name} is not downloaded; run `mosstalk pull {name}`") from None
    if not (path / "config.json").exists():
        raise CheckpointError(
            f"{name} is only partly downloaded ({path} has no config.json); "
            f"run `mosstalk pull {name}`"
        )
    return path


def _download(repo: HubRepo) -> Path:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import (
        LocalEntryNotFoundError,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    try:
        return Path(
            snapshot_download(repo.name, revision=repo.revision, allow_patterns=_NEEDED_FILES)
        )
    except RevisionNotFoundError:
        raise DownloadError(
            f"{repo.name} has no revision {repo.revision[:12]} any more; update mosstalk"
        ) from None
    except RepositoryNotFoundError:
        raise DownloadError(
            f"{repo.name} is not on huggingface.co, or needs a login; update mosstalk, or download "
            "the model elsewhere and give its directory"
        ) from None
    except LocalEntryNotFoundError:
        raise DownloadError(
            f"cannot reach huggingface.co for {repo.name}; check the network (and HF_HUB_OFFLINE) "
            "and run the command again, which goes on where it stopped"
        ) from None
    except Exception as error:  # the transport below the library raises its own kinds
        reason = next(iter(str(error).splitlines()), "") or type(error).__name__
        raise DownloadError(
            f"downloading {repo.name} failed: {reason}; run the command again, which goes on "
            "where it stopped"
        ) from None
