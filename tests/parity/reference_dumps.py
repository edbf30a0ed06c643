"""Dumps for tests: one that was recorded, and some put together from golden arrays."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from mosstalk.checkpoint.checkpoint import Checkpoint, open_checkpoint
from mosstalk.compute.backend import open_backend
from mosstalk.models.moss_tts_nano.config import parse_config
from mosstalk.models.moss_tts_nano.model import NanoModel
from mosstalk.parity.reference.codec_probe import CodecProbe, frame_levels, sample_probes
from mosstalk.parity.reference.nano_probe import NanoDump, PromptProbe
from mosstalk.parity.reference.origin import origin_of

Arrays = Mapping[str, NDArray[Any]]

# Made by `mosstalk parity dump` with the original code, torch 2.13.0 and transformers 4.57.6.
RECORDED = Path(__file__).parents[1] / "golden" / "reference" / "dump_nano_b.npz"
RECORDED_MODEL, RECORDED_CODEC = "nano_b", "codec_nano_narrow"
CODEC_OF = {"nano_a": "codec_nano_wide", "nano_b": "codec_nano_narrow", "nano_c": "codec_nano_e2e"}

_STRIDE = 61
# The golden arrays of a codec do not say how near its choices were; so none is excused.
_FAR = np.float32(1.0)


def checkpoint_folder(golden_dir: Path, name: str) -> Path:
    """The folder of a tiny checkpoint; skips where its weights are not here."""
    folder = golden_dir / "checkpoints" / name
    if not (folder / "model.safetensors").is_file():
        pytest.skip(f"{name} is not here")
    return folder


def golden_dump(golden_dir: Path, name: str, *, codec: bool = True) -> NanoDump:
    """A dump of a golden model, with its codec if that is here and asked for."""
    folder = checkpoint_folder(golden_dir, name)
    codec_folder = golden_dir / "checkpoints" / CODEC_OF[name]
    has_codec = codec and (codec_folder / "model.safetensors").is_file()
    checkpoint = open_checkpoint(folder, codec_folder if has_codec else None)
    arrays = dict(np.load(golden_dir / "reference" / f"{name}.npz"))
    probe = None
    if has_codec:
        golden = golden_dir / "reference" / f"{CODEC_OF[name]}.npz"
        probe = _codec_probe(dict(np.load(golden)))
    origin = origin_of(checkpoint, None, {"torch": "2.13.0"}, 0)
    return NanoDump(origin, _prompts(checkpoint, arrays, name), probe)


def _prompts(checkpoint: Checkpoint, arrays: Arrays, name: str) -> tuple[PromptProbe, ...]:
    prompts = [
        _prompt(checkpoint, arrays, "prompt", "prompt_rows", "greedy"),
        _prompt(checkpoint, arrays, "long", "prompt_rows", "greedy_long"),
        _prompt(checkpoint, arrays, "eos", "eos_rows", "eos"),
    ]
    if name == "nano_c":
        plain = {"kind": "plain", "text": "Hello world, this is MOSS."}
        chinese = {"kind": "plain", "text": "你好，模思智能。"}
        voice = arrays["prompt_clone_rows"][0][-95:]
        user_slot = checkpoint.config["audio_user_slot_token_id"]
        codes = voice[voice[:, 0] == user_slot][:, 1:].astype(np.int32)
        clone = {**plain, "kind": "clone", "voice_codes": codes}
        continuation = {
            "kind": "continuation",
            "text": "and then he left.",
            "transcript": "He came, ",
            "voice_codes": codes,
        }
        for key, about in (
            ("plain", plain),
            ("zh", chinese),
            ("clone", clone),
            ("cont", continuation),
        ):
            rows = f"prompt_{key}_rows"
            prompts.append(_prompt(checkpoint, arrays, key, rows, f"prompt_{key}", **about))
    return tuple(prompts)


def _prompt(
    checkpoint: Checkpoint, arrays: Arrays, name: str, rows: str, run: str, **about: Any
) -> PromptProbe:
    config = parse_config(checkpoint.config)
    codes = arrays[f"{run}_ids"][0].astype(np.int32)
    candidates = [config.audio_assistant_slot_token_id, config.audio_end_token_id]
    gate = arrays[f"{run}_text_logits"][:, 0, candidates]
    logits = arrays[f"{run}_audio_logits"][: len(codes), :, 0]
    best = np.sort(logits, axis=-1)
    prompt = arrays[rows][0].astype(np.int32)
    # Golden for one prompt; for the others from the NumPy backend.
    known = arrays["full_global_hidden"][0] if rows == "prompt_rows" else None
    hidden = known if known is not None else _numpy_hidden(checkpoint, prompt)
    return PromptProbe(
        name=name,
        kind=about.get("kind", "rows"),
        text=about.get("text", ""),
        transcript=about.get("transcript", ""),
        voice_codes=about.get("voice_codes"),
        rows=prompt,
        codes=codes,
        stopped=len(gate) > len(codes),
        gate_gaps=np.abs(gate[:, 0] - gate[:, 1]),
        code_logits=np.ascontiguousarray(best[..., -1]),
        code_gaps=best[..., -1] - best[..., -2],
        logit_peak=float(max(np.abs(gate).max(), np.abs(logits).max(initial=0))),
        hidden_rows=np.arange(len(hidden), dtype=np.int32),
        hidden=hidden,
    )


def _numpy_hidden(checkpoint: Checkpoint, rows: NDArray[np.int32]) -> NDArray[np.float32]:
    model = NanoModel(checkpoint.config, checkpoint.tensors, open_backend("reference"))
    session = model.session()
    session.begin_generation(len(rows))
    return session.prefill(rows)


def _codec_probe(arrays: Arrays) -> CodecProbe:
    codes = arrays["codes"][:, 0].T.astype(np.int32)
    audio = arrays["audio"][0]
    wav = arrays["wav"]
    whole_frames = wav.shape[1] // (audio.shape[1] // len(codes))
    peak, rms = frame_levels(audio, len(codes))
    return CodecProbe(
        codes=codes,
        sample_stride=_STRIDE,
        samples=sample_probes(audio, _STRIDE),
        peak=peak,
        rms=rms,
        sound=wav,
        num_samples=wav.shape[1],
        audio_codes=np.ascontiguousarray(codes[:whole_frames]),
        audio_gaps=np.full((whole_frames, codes.shape[1]), _FAR),
    )
