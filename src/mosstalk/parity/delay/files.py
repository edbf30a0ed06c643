"""The files of a dump of the delay family: what each holds, read and written.

    ref_prompt.json        a text, and the rows that it became
    ref_hidden.json        hidden vectors of those rows
    ref_rows.json          rows that were generated after a prompt, the likeliest each
    ref_rows_penalty.json  the same with a repetition penalty
    ref_codec.json         samples of decoded codes

Other tools write some of these too, with keys of their own and without `origin`, so unknown keys
are let be. Numbers are float32 as the nearest decimal.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosstalk.checkpoint.atomic import replacing_file
from mosstalk.checkpoint.json_file import read_object
from mosstalk.checkpoint.strict_config import ConfigReader
from mosstalk.errors import CheckpointError
from mosstalk.parity.reference.dump_file import ArrayReader
from mosstalk.parity.reference.origin import Origin, read_origin

PROMPT, HIDDEN, CODEC = "ref_prompt.json", "ref_hidden.json", "ref_codec.json"
ROWS, PENALISED_ROWS = "ref_rows.json", "ref_rows_penalty.json"
_ORIGIN = "origin"
_INT32 = np.iinfo(np.int32)
_ROUNDED = 1e-5  # of a largest value that a file tells twice


@dataclass(frozen=True, slots=True)
class PromptFile:
    """`text` is None for rows that were not made of one."""

    name: str
    text: str | None
    instruction: str | None
    language: str | None
    rows: NDArray[np.int32]  # [n, 1 + n_vq]
    origin: Origin | None

    def as_values(self) -> dict[str, object]:
        return {
            "name": self.name,
            "text": self.text,
            "instruction": self.instruction,
            "language": self.language,
            "input_ids": self.rows.tolist(),
        }


@dataclass(frozen=True, slots=True)
class HiddenFile:
    """Vectors after the final norm. Probes are of rows in between: a fault that cancels at the
    end shows there."""

    name: str
    num_rows: int
    last_hidden: NDArray[np.float32]  # [hidden]
    probe_positions: NDArray[np.int32]  # [probes]
    probe_hidden: NDArray[np.float32]  # [probes, hidden]
    origin: Origin | None

    def as_values(self) -> dict[str, object]:
        return {
            "name": self.name,
            "rows": self.num_rows,
            "hidden_size": len(self.last_hidden),
            "last_hidden": self.last_hidden.tolist(),
            "last_hidden_abs_max": float(np.abs(self.last_hidden).max()),
            "probe_positions": self.probe_positions.tolist(),
            "probe_hidden": self.probe_hidden.tolist(),
        }


@dataclass(frozen=True, slots=True)
class RowsFile:
    """Rows that each were the likeliest after those before them.

    Attributes:
        prompt: the rows before them; None where the prompt file has them.
        rows: [n, 1 + n_vq].
        logits: of what was chosen, [n, 1 + n_vq]; 0 where there was no choice. None: not told.
        logit_peak: largest magnitude of a logit that was chosen from; None with `logits`.
    """

    name: str
    repetition_penalty: float
    prompt: NDArray[np.int32] | None
    rows: NDArray[np.int32]
    logits: NDArray[np.float32] | None
    logit_peak: float | None
    origin: Origin | None

    def as_values(self) -> dict[str, object]:
        values: dict[str, object] = {
            "name": self.name,
            "steps": len(self.rows),
            "greedy": True,
            "repetition_penalty": self.repetition_penalty,
            "generated_rows": self.rows.tolist(),
        }
        if self.prompt is not None:
            values["input_ids"] = self.prompt.tolist()
        if self.logits is not None:
            values |= {"logits": self.logits.tolist(), "logit_peak": self.logit_peak}
        return values


@dataclass(frozen=True, slots=True)
class CodecFile:
    """The audio of codes that a formula gives: `probe_codes`."""

    codebooks: int
    frames: int
    samples: int
    peak: float
    rms: float
    probe_index: NDArray[np.int32]  # [probes], samples
    probe_values: NDArray[np.float32]  # [probes]
    origin: Origin | None

    def as_values(self) -> dict[str, object]:
        return {
            "codebooks": self.codebooks,
            "frames": self.frames,
            "samples": self.samples,
            "peak": self.peak,
            "rms": self.rms,
            "probe_index": self.probe_index.tolist(),
            "probe_values": self.probe_values.tolist(),
        }


def probe_codes(frames: int, codebooks: int, codebook_size: int) -> NDArray[np.int32]:
    """(37 q + 5 t) mod the codebook's size, [frames, codebooks] (spec voicegen.md 7.1)."""
    codes = 37 * np.arange(codebooks) + 5 * np.arange(frames)[:, None]
    return (codes % codebook_size).astype(np.int32)


def write_file(path: Path, values: Mapping[str, object], origin: Origin) -> None:
    """One of the files, with what it was made from; raises OutputError."""
    text = json.dumps({**values, _ORIGIN: origin.as_meta()}, allow_nan=False, ensure_ascii=False)
    with replacing_file(path) as temporary:
        temporary.write_text(text + "\n", encoding="utf-8")


def read_prompt(path: Path) -> PromptFile:
    """All readers raise CheckpointError that names the file and what is missing or wrong in it."""
    file = _File(path)
    return PromptFile(
        name=file.text("name") or path.stem,
        text=file.text("text"),
        instruction=file.text("instruction"),
        language=file.text("language"),
        rows=file.rows("input_ids"),
        origin=file.origin(),
    )


def read_hidden(path: Path) -> HiddenFile:
    file = _File(path)
    num_rows, size = file.meta.size("rows"), file.meta.size("hidden_size")
    last = file.reals("last_hidden", (size,))
    told = file.meta.get("last_hidden_abs_max", float)
    found = float(np.abs(last).max())
    if not abs(told - found) <= _ROUNDED * found:
        raise CheckpointError(
            f"{path}: 'last_hidden_abs_max' is {told:g}, but 'last_hidden' has {found:g}; make the "
            "file again"
        )
    positions = file.ids("probe_positions", (None,)) if file.meta.has("probe_positions") else None
    if positions is not None and positions.max() >= num_rows:
        raise CheckpointError(f"{path}: 'probe_positions' go beyond its {num_rows} rows")
    none = np.empty(0, np.int32)
    return HiddenFile(
        name=file.text("name") or path.stem,
        num_rows=num_rows,
        last_hidden=last,
        probe_positions=none if positions is None else positions,
        probe_hidden=np.empty((0, size), np.float32)
        if positions is None
        else file.reals("probe_hidden", (len(positions), size)),
        origin=file.origin(),
    )


def read_rows(path: Path) -> RowsFile:
    file = _File(path)
    file.meta.require("greedy", True)
    rows = file.rows("generated_rows")
    penalty = file.meta.get("repetition_penalty", float, 1.0)
    if not 0 < penalty < np.inf:
        raise CheckpointError(f"{path}: 'repetition_penalty' is {penalty}")
    has_logits = file.meta.has("logits")
    peak = file.meta.get("logit_peak", float) if has_logits else None
    if peak is not None and not 0 < peak < np.inf:
        raise CheckpointError(f"{path}: 'logit_peak' is {peak}")
    prompt = file.rows("input_ids") if file.meta.has("input_ids") else None
    if prompt is not None and prompt.shape[1] != rows.shape[1]:
        raise CheckpointError(
            f"{path}: rows of {prompt.shape[1]} ids before rows of {rows.shape[1]}"
        )
    return RowsFile(
        name=file.text("name") or path.stem,
        repetition_penalty=penalty,
        prompt=prompt,
        rows=rows,
        logits=file.reals("logits", rows.shape) if has_logits else None,
        logit_peak=peak,
        origin=file.origin(),
    )


def read_codec(path: Path) -> CodecFile:
    file = _File(path)
    samples = file.meta.size("samples")
    index = file.ids("probe_index", (None,))
    if index.max() >= samples:
        raise CheckpointError(f"{path}: 'probe_index' goes beyond its {samples} samples")
    return CodecFile(
        codebooks=file.meta.size("codebooks"),
        frames=file.meta.size("frames"),
        samples=samples,
        peak=file.real("peak"),
        rms=file.real("rms"),
        probe_index=index,
        probe_values=file.reals("probe_values", (len(index),)),
        origin=file.origin(),
    )


class _File:
    """Typed values of one JSON object."""

    def __init__(self, path: Path) -> None:
        if not path.is_file():
            raise CheckpointError(f"{path} does not exist; make it with `mosstalk parity dump`")
        self._path = str(path)
        self._values = read_object(path)
        self.meta = ConfigReader(self._values, self._path)

    def text(self, key: str) -> str | None:
        """A string; None where it is missing, null or empty."""
        return self.meta.get(key, str) or None if self.meta.has(key) else None

    def real(self, key: str) -> float:
        value = self.meta.get(key, float)
        if not np.isfinite(value):
            raise CheckpointError(f"{self._path}: {key!r} is {value}, which is no number")
        return value

    def rows(self, key: str) -> NDArray[np.int32]:
        """Rows [n, 1 + n_vq]; a batch of one, as PyTorch has them, is taken apart."""
        array = self._ids(key)
        if array.ndim == 3 and len(array) == 1:
            array = array[0]
        rows = ArrayReader({key: array}, self._path).ids(key, (None, None))
        if rows.shape[1] < 2:
            raise CheckpointError(f"{self._path}: {key!r} has rows without codes")
        return rows

    def ids(self, key: str, shape: tuple[int | None, ...]) -> NDArray[np.int32]:
        return ArrayReader({key: self._ids(key)}, self._path).ids(key, shape)

    def reals(self, key: str, shape: tuple[int | None, ...]) -> NDArray[np.float32]:
        with np.errstate(over="ignore"):  # what is too large is told by its infinity
            array = self._array(key, "fi").astype(np.float32)
        return ArrayReader({key: array}, self._path).reals(key, shape)

    def origin(self) -> Origin | None:
        if not self.meta.has(_ORIGIN):
            return None
        meta = self.meta.child(_ORIGIN)
        values = self._values[_ORIGIN]
        assert isinstance(values, Mapping)
        origin = read_origin(meta, values, self._path)
        meta.finish()
        return origin

    def _ids(self, key: str) -> NDArray[np.int32]:
        array = self._array(key, "i")
        if array.size and not _INT32.min <= array.min() <= array.max() <= _INT32.max:
            raise CheckpointError(f"{self._path}: {key!r} has ids that no model has")
        return array.astype(np.int32)

    def _array(self, key: str, kinds: str) -> NDArray[Any]:
        """The list of numbers at `key`, of one of NumPy's kinds."""
        value = self._values.get(key)
        try:
            array = np.array(value) if isinstance(value, list) else np.array(None)
        except (ValueError, OverflowError):  # rows of unequal length
            array = np.array(None)
        if array.dtype.kind not in kinds:
            raise CheckpointError(
                f"{self._path}: {key!r} is missing, or not a list of numbers of one shape"
            )
        return array
