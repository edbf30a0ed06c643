"""What a dump holds of MOSS-TTS-Nano: prompts, hidden vectors and greedy frames."""

from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from mosstalk.checkpoint.strict_config import ConfigReader
from mosstalk.errors import CheckpointError
from mosstalk.parity.reference.codec_probe import CodecProbe, read_codec_probe
from mosstalk.parity.reference.dump_file import FORMAT, VERSION, ArrayReader, DumpFile
from mosstalk.parity.reference.origin import Origin, read_origin

FAMILY = "moss_tts_nano"
_ROUNDED = 1 + 1e-6  # a difference of float32 values may be rounded upwards

# rows: drawn at random, not from a text.
PromptKind = Literal["rows", "plain", "clone", "continuation"]


@dataclass(frozen=True, slots=True)
class PromptProbe:
    """A prompt and what the original made of it.

    Attributes:
        name: how reports call it.
        kind: how it was built.
        text: what it says; "" for random rows.
        transcript: of the recording that a continuation goes on after, else "".
        voice_codes: of the recording, [frames, n_vq]; None for a prompt without one.
        rows: [n, 1 + n_vq].
        codes: the greedy frames that followed, [frames, n_vq].
        stopped: whether the model then stopped by itself.
        gate_gaps: at each decision between go on and stop, the difference of their two logits:
            [frames], and one more if it stopped.
        code_logits: the logit of each code, [frames, n_vq].
        code_gaps: how far the next best logit was below it, [frames, n_vq].
        logit_peak: largest magnitude of a logit in all those decisions.
        hidden_rows: which of the prompt's rows and the frames' rows after them are probed.
        hidden: their vectors after the global transformer, [probed rows, hidden_size].
    """

    name: str
    kind: PromptKind
    text: str
    transcript: str
    voice_codes: NDArray[np.int32] | None
    rows: NDArray[np.int32]
    codes: NDArray[np.int32]
    stopped: bool
    gate_gaps: NDArray[np.float32]
    code_logits: NDArray[np.float32]
    code_gaps: NDArray[np.float32]
    logit_peak: float
    hidden_rows: NDArray[np.int32]
    hidden: NDArray[np.float32]

    def as_meta(self) -> dict[str, object]:
        return {
            "name": self.name,
            "kind": self.kind,
            "text": self.text,
            "transcript": self.transcript,
            "frames": len(self.codes),
            "stopped": self.stopped,
            "logit_peak": self.logit_peak,
        }

    def as_arrays(self, prefix: str) -> dict[str, NDArray[Any]]:
        """Arrays that would be empty are left out."""
        names = (
            "voice_codes", "rows", "codes", "gate_gaps", "code_logits", "code_gaps",
            "hidden_rows", "hidden",
        )  # fmt: skip
        arrays = {f"{prefix}{name}": getattr(self, name) for name in names}
        return {name: array for name, array in arrays.items() if array is not None and array.size}


@dataclass(frozen=True, slots=True)
class NanoDump:
    """A whole dump. `codec` is None for a checkpoint without one."""

    origin: Origin
    prompts: tuple[PromptProbe, ...]
    codec: CodecProbe | None

    def as_file(self) -> DumpFile:
        meta: dict[str, object] = {
            "format": FORMAT,
            "version": VERSION,
            **self.origin.as_meta(),
            "prompts": [prompt.as_meta() for prompt in self.prompts],
        }
        arrays: dict[str, NDArray[Any]] = {}
        for i, prompt in enumerate(self.prompts):
            arrays |= prompt.as_arrays(_prefix(i))
        if self.codec is not None:
            meta["codec"] = self.codec.as_meta()
            arrays |= self.codec.as_arrays()
        return DumpFile(meta, arrays)


def read_nano_dump(dump: DumpFile, where: str) -> NanoDump:
    """Raises CheckpointError that names `where` and what is missing, unknown or inconsistent."""
    meta = ConfigReader(dump.meta, where)
    arrays = ArrayReader(dump.arrays, where)
    origin = read_origin(meta, dump.meta, where)
    if origin.family != FAMILY:
        raise CheckpointError(f"{where} is of a {origin.family} model, not of {FAMILY}")
    prompts = tuple(
        _read_prompt(item, arrays, _prefix(i), where)
        for i, item in enumerate(meta.children("prompts"))
    )
    if not any(len(prompt.codes) for prompt in prompts):
        raise CheckpointError(f"{where} has no prompt that goes on for a frame; make another")
    has_codec = bool(origin.codec_identity)
    if has_codec != meta.has("codec"):
        raise CheckpointError(f"{where}: 'codec' and 'codec_identity' contradict each other")
    codec = read_codec_probe(meta.child("codec"), arrays) if has_codec else None
    meta.finish()
    arrays.finish()
    return NanoDump(origin, prompts, codec)


def _prefix(index: int) -> str:
    return f"prompt.{index}."


def _read_prompt(meta: ConfigReader, arrays: ArrayReader, prefix: str, where: str) -> PromptProbe:
    given = meta.get("kind", str)
    kind: PromptKind | None = next((k for k in get_args(PromptKind) if k == given), None)
    if kind is None:
        raise CheckpointError(f"{where}: unknown kind of prompt {given!r}")
    frames, stopped = meta.get("frames", int), meta.get("stopped", bool)
    peak = meta.get("logit_peak", float)
    if frames < 0 or not stopped and not frames or not 0 < peak < np.inf:
        raise CheckpointError(f"{where}: {frames} frames, logit_peak {peak}: make the dump again")
    largest = peak * _ROUNDED
    rows = arrays.ids(f"{prefix}rows", (None, None))
    n_vq = rows.shape[1] - 1
    hidden_rows = arrays.ids(f"{prefix}hidden_rows", (None,))
    if (np.diff(hidden_rows) <= 0).any() or hidden_rows[-1] >= len(rows) + frames:
        raise CheckpointError(f"{where}: '{prefix}hidden_rows' are not rows in order")
    has_voice = kind in ("clone", "continuation")
    probe = PromptProbe(
        name=meta.get("name", str),
        kind=kind,
        text=meta.get("text", str),
        transcript=meta.get("transcript", str),
        voice_codes=arrays.ids(f"{prefix}voice_codes", (None, n_vq)) if has_voice else None,
        rows=rows,
        codes=arrays.ids(f"{prefix}codes", (frames, n_vq)),
        stopped=stopped,
        gate_gaps=arrays.reals(f"{prefix}gate_gaps", (frames + stopped,), 0.0, 2 * largest),
        code_logits=arrays.reals(f"{prefix}code_logits", (frames, n_vq), -largest, largest),
        code_gaps=arrays.reals(f"{prefix}code_gaps", (frames, n_vq), 0.0, 2 * largest),
        logit_peak=peak,
        hidden_rows=hidden_rows,
        hidden=arrays.reals(f"{prefix}hidden", (len(hidden_rows), None)),
    )
    meta.finish()
    return probe
