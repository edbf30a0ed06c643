"""`mosstalk inspect`: what a checkpoint is, which model family runs it, and its tensors."""

import argparse
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from mosstalk.checkpoint.checkpoint import Checkpoint, open_checkpoint
from mosstalk.checkpoint.files import read_weights_file
from mosstalk.checkpoint.hub import resolve_model
from mosstalk.checkpoint.sniff import FileKind, file_kind
from mosstalk.checkpoint.storage import StoredTensor
from mosstalk.errors import CheckpointError

# What tells models apart, of the hundred keys a config.json may have.
_CONFIG_KEYS = (
    "model_type",
    "hidden_size",
    "num_hidden_layers",
    "local_transformer_layers",
    "vocab_size",
    "n_vq",
    "audio_vocab_size",
    "sample_rate",
    "downsample_rate",
    "number_channels",
    "code_dim",
)

Config = Mapping[str, object]
Tensors = Mapping[str, StoredTensor]


@dataclass(frozen=True, slots=True)
class _Row:
    """A tensor in the listing."""

    part: str  # "model", "codec" or "file"
    name: str
    shape: tuple[int, ...]
    storage: str
    bytes: int


@dataclass(frozen=True, slots=True)
class _Report:
    """What `--json` prints."""

    path: str
    format: str
    family: str | None
    family_problem: str | None
    config: Config
    codec_config: Config | None
    codec_identity: str
    tokenizer_bytes: int
    tensors: list[_Row]
    totals: dict[str, dict[str, int]]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `mosstalk inspect`."""
    parser.add_argument(
        "path",
        metavar="PATH",
        help="model name, directory, .gguf, .safetensors or pytorch_model.bin file",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(args: argparse.Namespace) -> int:
    """Open a checkpoint, which checks it, and print what it holds; raises MosstalkError."""
    path, codec = resolve_model(args.path)
    kind = file_kind(path) if path.is_file() else None
    if kind in (None, FileKind.GGUF):
        report = _report_checkpoint(open_checkpoint(path, codec))
    else:
        report = _report_file(path, str(kind))
    print(json.dumps(asdict(report)) if args.json else _as_text(report))
    return 0


def _report_checkpoint(checkpoint: Checkpoint) -> _Report:
    codec = checkpoint.codec_config
    family, problem = _family(checkpoint.config)
    rows = [*_rows("model", checkpoint.tensors), *_rows("codec", checkpoint.codec_tensors or {})]
    return _Report(
        path=str(checkpoint.path),
        format=checkpoint.kind,
        family=family,
        family_problem=problem,
        config=_brief(checkpoint.config),
        codec_config=None if codec is None else _brief(codec),
        codec_identity=checkpoint.identity,
        tokenizer_bytes=len(checkpoint.tokenizer_model or checkpoint.tokenizer_json or b""),
        tensors=rows,
        totals=_totals(rows),
    )


def _report_file(path: Path, kind: str) -> _Report:
    """The report on a weights file without a config."""
    rows = _rows("file", read_weights_file(path))
    problem = "weights alone, without a config.json"
    return _Report(str(path), kind, None, problem, {}, None, "", 0, rows, _totals(rows))


def _family(config: Config) -> tuple[str | None, str | None]:
    """The name of the family that runs the model, or why there is none."""
    if not config:
        return None, "a codec alone, without a language model"
    from mosstalk.models.registry import family_for

    try:
        return family_for(config).name, None
    except CheckpointError as error:
        return None, str(error)


def _brief(config: Config) -> dict[str, object]:
    return {key: config[key] for key in _CONFIG_KEYS if key in config}


def _rows(part: str, tensors: Tensors) -> list[_Row]:
    return [
        _Row(part, name, tensor.shape, tensor.storage.value, tensor.num_bytes)
        for name, tensor in tensors.items()
    ]


def _totals(rows: Iterable[_Row]) -> dict[str, dict[str, int]]:
    """Tensors and bytes by storage type."""
    totals: dict[str, dict[str, int]] = {}
    for row in rows:
        total = totals.setdefault(row.storage, {"tensors": 0, "bytes": 0})
        total["tensors"] += 1
        total["bytes"] += row.bytes
    return totals


def _as_text(report: _Report) -> str:
    lines = [report.path, f"  format     {report.format}"]
    lines.append(f"  family     {report.family or f'none: {report.family_problem}'}")
    if report.config:
        lines.append(f"  model      {_pairs(report.config)}")
    if report.codec_config is not None:
        lines.append(
            f"  codec      {_pairs(report.codec_config)}, identity {report.codec_identity}"
        )
    if report.tokenizer_bytes:
        lines.append(f"  tokenizer  {report.tokenizer_bytes:,} bytes")
    width = max((len(row.name) for row in report.tensors), default=0)
    for row in report.tensors:
        shape = "x".join(map(str, row.shape)) or "scalar"
        lines.append(
            f"  {row.part:5}  {row.name:{width}}  {shape:>14}  {row.storage:4}  {row.bytes:>13,}"
        )
    for storage, total in report.totals.items():
        lines.append(f"  total {storage}: {total['tensors']} tensors, {total['bytes']:,} bytes")
    return "\n".join(lines)


def _pairs(config: Config) -> str:
    return ", ".join(f"{key} {value}" for key, value in config.items())
