"""`mosstalk convert`: a checkpoint as one GGUF file or a directory, in another weight type."""

import argparse
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from mosstalk.checkpoint.checkpoint import Checkpoint, open_checkpoint
from mosstalk.checkpoint.hub import resolve_model
from mosstalk.checkpoint.storage import StorageType, StoredTensor
from mosstalk.checkpoint.write import write_gguf, write_safetensors
from mosstalk.errors import UsageError

_WEIGHTS_SUFFIXES = (".safetensors", ".bin", ".pt", ".pth")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `mosstalk convert`."""
    parser.add_argument("source", metavar="SOURCE", help="model name, directory or .gguf file")
    parser.add_argument(
        "--out",
        required=True,
        type=Path,
        metavar="F.gguf|DIR",
        help="a .gguf file, or a new directory for safetensors",
    )
    parser.add_argument(
        "--weight-type",
        default=StorageType.NATIVE.value,
        metavar="T",
        help=f"one of {', '.join(StorageType)} (default: native, as the source has them)",
    )
    parser.add_argument(
        "--codec", type=Path, metavar="DIR", help="codec to put in, if SOURCE has none of its own"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(args: argparse.Namespace) -> int:
    """Convert, open the result as a check, and say what was written; raises MosstalkError."""
    storage = StorageType.parse(args.weight_type)
    out: Path = args.out
    if out.suffix.lower() in _WEIGHTS_SUFFIXES:
        raise UsageError(f"cannot write {out}: --out is a .gguf file or a directory")
    path, codec = resolve_model(args.source)
    source = open_checkpoint(path, args.codec or codec)
    write = write_gguf if out.suffix.lower() == ".gguf" else write_safetensors
    write(source, out, storage, skip=_unused_tensors(source.config))
    written = open_checkpoint(out)
    report = _report(source, written, storage)
    print(json.dumps(asdict(report)) if args.json else _as_text(report))
    return 0


def _unused_tensors(config: Mapping[str, object]) -> tuple[str, ...]:
    """Patterns of the tensors that the model's family does not read, such as tied copies."""
    if not config:
        return ()
    from mosstalk.models.registry import family_for

    return family_for(config).ignorable_tensors


@dataclass(frozen=True, slots=True)
class _Report:
    """What `--json` prints."""

    out: str
    format: str
    weight_type: str
    tensors: int
    codec_tensors: int
    dropped: list[str]
    source_bytes: int
    bytes: int


def _report(source: Checkpoint, written: Checkpoint, storage: StorageType) -> _Report:
    return _Report(
        out=str(written.path),
        format=written.kind,
        weight_type=storage.value,
        tensors=len(written.tensors),
        codec_tensors=len(written.codec_tensors or {}),
        dropped=sorted(source.tensors.keys() - written.tensors.keys()),
        source_bytes=_num_bytes(source),
        bytes=_num_bytes(written),
    )


def _num_bytes(checkpoint: Checkpoint) -> int:
    """Bytes of all tensors."""
    parts: list[StoredTensor] = [
        *checkpoint.tensors.values(),
        *(checkpoint.codec_tensors or {}).values(),
    ]
    return sum(tensor.num_bytes for tensor in parts)


def _as_text(report: _Report) -> str:
    text = (
        f"{report.out}: {report.tensors} model and {report.codec_tensors} codec tensors as "
        f"{report.weight_type}, {report.bytes:,} bytes (from {report.source_bytes:,})"
    )
    if report.dropped:
        text += f"\nleft out, not used by the model: {', '.join(report.dropped)}"
    if not report.codec_tensors:
        text += "\nno codec inside; convert again with --codec to have a model that speaks alone"
    return text
