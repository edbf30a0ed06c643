"""Asks the original MOSS-TTS-Nano."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosstalk.checkpoint.checkpoint import Checkpoint
from mosstalk.models.moss_tts_nano.config import NanoConfig, parse_config
from mosstalk.parity.comparison import CheckResult, Comparison
from mosstalk.parity.family.nano import nano_layout
from mosstalk.parity.family.random_rows import random_rows
from mosstalk.parity.reference.dump_codec import dump_codec
from mosstalk.parity.reference.nano_probe import NanoDump, PromptKind, PromptProbe
from mosstalk.parity.reference.origin import origin_of
from mosstalk.parity.reference.original import Original

FRAMES = 24  # at most, of a prompt
_RANDOM_ROWS = 48
_VOICE_FRAMES = 12
_PROBED_ROWS = 64  # at most, of a prompt
_TRANSCRIPT = "It was late, and the lamps were lit. "
# Step by step over its cache against a whole pass, relative to the largest value.
_OWN_TOLERANCE = 1e-5


@dataclass(frozen=True, slots=True)
class _Request:
    """One prompt to ask for; `rows` only where `kind` is "rows"."""

    name: str
    kind: PromptKind
    text: str = ""
    transcript: str = ""
    voice_codes: NDArray[np.int32] | None = None
    rows: NDArray[np.int32] | None = None


def dump_nano(
    original: Original,
    checkpoint: Checkpoint,
    codec_folder: Path | None,
    texts: Sequence[str],
    seed: int,
) -> tuple[NanoDump, list[CheckResult]]:
    """What the original computes, and whether it agrees with itself.

    `texts` are empty for a checkpoint without tokeniser: random rows are then all there is.
    """
    config = parse_config(checkpoint.config)
    model = original.language_model(checkpoint.path)
    # The published config names an attention that needs a GPU.
    original.ask(model._set_attention_implementation, "sdpa")
    tokenizer = None
    if texts:
        place = str(checkpoint.path)
        tokenizer = original.ask(model._load_text_tokenizer, text_tokenizer_path=place)
    prompts, results = [], []
    for request in _requests(config, texts, seed):
        comparison = Comparison(f"steps vs whole pass: {request.name}", _OWN_TOLERANCE)
        rows = _rows(original, model, tokenizer, request)
        prompts.append(_probe(original, model, config, request, rows, comparison))
        results.append(comparison.result())
    codec = None
    if codec_folder is not None:
        codec = dump_codec(original, original.model(codec_folder), seed)
    origin = origin_of(checkpoint, codec_folder, original.versions, seed)
    return NanoDump(origin, tuple(prompts), codec), results


def _requests(config: NanoConfig, texts: Sequence[str], seed: int) -> list[_Request]:
    """Random rows, and each text in the three ways that a prompt can be built."""
    voice = np.random.default_rng(seed).integers(
        config.audio_codebook_sizes, size=(_VOICE_FRAMES, config.n_vq), dtype=np.int32
    )
    rows = random_rows(nano_layout(config), _RANDOM_ROWS, seed)
    requests = [_Request("random rows", "rows", rows=rows)]
    for number, text in enumerate(texts, 1):
        requests += [
            _Request(f"plain {number}", "plain", text),
            _Request(f"clone {number}", "clone", text, voice_codes=voice),
            _Request(f"continuation {number}", "continuation", text, _TRANSCRIPT, voice),
        ]
    return requests


def _rows(original: Original, model: Any, tokenizer: Any, request: _Request) -> Any:
    """The prompt as the original builds it, [1, n, 1 + n_vq]."""
    torch = original.torch
    if request.rows is not None:
        return torch.from_numpy(request.rows.astype(np.int64))[None]
    codes = request.voice_codes
    rows, _ = original.ask(
        model.build_inference_input_ids,
        text=request.text,
        text_tokenizer=tokenizer,
        mode="voice_clone" if request.kind == "clone" else "continuation",
        prompt_text=request.transcript or None,
        prompt_audio_codes=None if codes is None else torch.from_numpy(codes.astype(np.int64)),
    )
    return rows


@dataclass(frozen=True, slots=True)
class _Generation:
    """What hooks saw: logits of every decision, and the vector that each frame started from."""

    codes: Any  # [frames, n_vq]
    gate: list[Any]  # [2] each: go on, stop
    logits: list[Any]  # of the codes, [codebook size] each, frame by frame
    hidden: list[Any]  # [hidden] each


def _generate(original: Original, model: Any, config: NanoConfig, rows: Any) -> _Generation:
    ids = [config.audio_assistant_slot_token_id, config.audio_end_token_id]
    seen = _Generation(None, [], [], [])
    hooks = [
        model.text_lm_head.register_forward_hook(lambda _m, _i, out: seen.gate.append(out[0, ids])),
        model.transformer.register_forward_hook(
            lambda _m, _i, out: seen.hidden.append(out.last_hidden_state[0, -1])
        ),
    ]
    for head in model.audio_lm_heads:
        hooks.append(head.register_forward_hook(lambda _m, _i, out: seen.logits.append(out[0])))
    made = original.ask(model.generate, rows, max_new_frames=FRAMES, do_sample=False)
    for hook in hooks:
        hook.remove()
    return _Generation(made.audio_token_ids[0], seen.gate, seen.logits, seen.hidden)


def _probe(
    original: Original,
    model: Any,
    config: NanoConfig,
    request: _Request,
    rows: Any,
    own: Comparison,
) -> PromptProbe:
    torch = original.torch
    made = _generate(original, model, config, rows)
    num_frames = len(made.codes)
    slots = torch.full((num_frames, 1), config.audio_assistant_slot_token_id)
    whole = torch.cat([rows[0], torch.cat([slots, made.codes], dim=1)])
    output = original.ask(model, input_ids=whole[None], return_dict=True)
    hidden = output.global_hidden_states[0].numpy()
    # The first vector is that of the prompt's last row; after a stop there is one for each frame.
    starts = torch.stack(made.hidden).numpy()
    first = rows.shape[1] - 1
    own.add("hidden", hidden[first : first + len(starts)], starts)
    probed = np.linspace(0, len(whole) - 1, min(_PROBED_ROWS, len(whole))).round().astype(np.int32)
    gate = torch.stack(made.gate)
    best = torch.stack([logits.topk(2).values for logits in made.logits] or [torch.empty(0, 2)])
    first_best, next_best = best.reshape(num_frames, config.n_vq, 2).numpy().transpose(2, 0, 1)
    peak = max(float(logits.abs().max()) for logits in (gate, *made.logits))
    return PromptProbe(
        name=request.name,
        kind=request.kind,
        text=request.text,
        transcript=request.transcript,
        voice_codes=request.voice_codes,
        rows=rows[0].numpy().astype(np.int32),
        codes=made.codes.numpy().astype(np.int32),
        stopped=len(gate) > num_frames,
        gate_gaps=(gate[:, 0] - gate[:, 1]).abs().numpy(),
        code_logits=np.ascontiguousarray(first_best),
        code_gaps=first_best - next_best,
        logit_peak=peak,
        hidden_rows=probed,
        hidden=np.ascontiguousarray(hidden[probed]),
    )
