"""Asks the original code of the delay family and of its codec."""

import io
import sys
from contextlib import redirect_stderr
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosstalk.errors import CheckpointError
from mosstalk.models.moss_tts_delay.config import DelayConfig
from mosstalk.parity.comparison import Comparison
from mosstalk.parity.delay.files import CodecFile, HiddenFile, PromptFile, RowsFile, probe_codes
from mosstalk.parity.reference.original import Original
from mosstalk.parity.reference.request import Source

_PROCESSING, _PROCESSOR = "processing_moss_tts", "MossTTSDelayProcessor"
_STEPS = 40  # generated, besides those that drain the staircase
_CODEC_FRAMES = 40  # fewer than the original decodes at once
_CODEC_PROBES = 64


@dataclass(slots=True)
class _Seen:
    """What hooks saw of a generation, step by step."""

    hidden: list[Any] = field(default_factory=list)  # [hidden], of the last row
    logits: list[list[Any]] = field(default_factory=list)  # of each head, [size]


class OriginalModel:
    """The language model and its prompts."""

    def __init__(self, original: Original, source: Source, config: DelayConfig) -> None:
        self._original = original
        self._config = config
        self._folder = source.folder
        self._processor_class: Any = None
        if (source.folder / f"{_PROCESSING}.py").is_file():
            # Before the model's code, which imports it: what it imports itself comes with it.
            self._processor_class = original.code(source.folder, _PROCESSING, _PROCESSOR)
        self._model = original.model(source.folder)

    def prompt_rows(
        self, text: str, instruction: str | None, language: str | None
    ) -> NDArray[np.int32]:
        """The rows that its processor makes of a request.

        Raises CheckpointError where there is no such code, or it fails.
        """
        ask, made = self._original.ask, self._processor_class
        if made is None:
            raise CheckpointError(
                f"{self._folder} has no {_PROCESSING}.py; the directory must be as published, with "
                "the model's own code"
            )
        processor = ask(
            made,
            tokenizer=self._original.tokenizer(self._folder),
            audio_tokenizer=None,
            model_config=self._model.config,
        )
        message = sys.modules[made.__module__].UserMessage(
            text=text, instruction=instruction, language=language
        )
        rows: NDArray[np.int32] = ask(processor, [[message]])["input_ids"][0].numpy()
        return rows.astype(np.int32)

    def hidden(self, prompt: PromptFile) -> HiddenFile:
        """Vectors of one whole pass."""
        hidden, count = self._whole_pass(prompt.rows), len(prompt.rows)
        probes = np.unique(np.array([0, 1, count // 2], np.int32).clip(max=count - 1))
        return HiddenFile(prompt.name, count, hidden[-1], probes, hidden[probes], None)

    def likeliest_rows(
        self, name: str, prompt: NDArray[np.int32], penalty: float, own: Comparison
    ) -> RowsFile:
        """Rows that its `generate` makes after a prompt, without chance.

        `own` compares its vectors step by step over its cache with those of a whole pass.
        """
        seen, rows = self._generate(prompt, penalty)
        whole = self._whole_pass(np.concatenate([prompt, rows[:-1]]))
        own.add(name, whole[len(prompt) - 1 :], np.stack(seen.hidden))
        logits = np.zeros(rows.shape, np.float32)
        peak, pad = 0.0, self._config.audio_pad_code
        for step, (row, heads) in enumerate(zip(rows, seen.logits, strict=True)):
            for channel, (head, chosen) in enumerate(zip(heads, row, strict=True)):
                values = head[:pad] if channel else head  # the pad's logit is -inf
                if not channel or chosen != pad:
                    logits[step, channel] = values[chosen]
                    peak = max(peak, float(values.abs().max()))
        return RowsFile(name, penalty, prompt, rows, logits, peak, None)

    def _whole_pass(self, rows: NDArray[np.int32]) -> NDArray[np.float32]:
        """Vectors after the final norm, [rows, hidden]."""
        ids = self._original.torch.from_numpy(rows.astype(np.int64))[None]
        kept: list[NDArray[np.float32]] = []

        def keep(_module: Any, _inputs: Any, output: Any) -> None:
            kept.append(output.last_hidden_state[0].numpy())

        hook = self._model.language_model.register_forward_hook(keep)
        self._original.ask(self._model, input_ids=ids, use_cache=False)
        hook.remove()
        return kept[0]

    def _generate(
        self, prompt: NDArray[np.int32], penalty: float
    ) -> tuple[_Seen, NDArray[np.int32]]:
        torch, seen = self._original.torch, _Seen()
        hooks = [
            self._model.language_model.register_forward_hook(
                lambda _m, _i, out: seen.hidden.append(out.last_hidden_state[0, -1].numpy())
            ),
            self._model.register_forward_hook(
                lambda _m, _i, out: seen.logits.append([head[0, -1].clone() for head in out.logits])
            ),
        ]
        ids = torch.from_numpy(prompt.astype(np.int64))[None]
        with redirect_stderr(io.StringIO()):  # where it draws a bar
            made = self._original.ask(
                self._model.generate,
                input_ids=ids,
                attention_mask=torch.ones(ids.shape[:2], dtype=torch.bool),
                max_new_tokens=_STEPS + self._config.n_vq,
                text_temperature=0.0,
                audio_temperature=0.0,
                audio_repetition_penalty=penalty,
            )
        for hook in hooks:
            hook.remove()
        rows: NDArray[np.int64] = made[0][1][-len(seen.logits) :].numpy()
        return seen, rows.astype(np.int32)


def ask_codec(original: Original, codec: Any, codebooks: int) -> CodecFile:
    """Samples, largest and mean of the audio of `probe_codes`."""
    size = len(codec.quantizer.quantizers[0].codebook.weight)
    codes = probe_codes(_CODEC_FRAMES, codebooks, size)
    ids = original.torch.from_numpy(codes.T.astype(np.int64))[:, None]
    audio: NDArray[np.float32] = (
        original.ask(codec.decode, ids, return_dict=True).audio[0, 0].numpy()
    )
    stride = len(audio) // _CODEC_PROBES
    index = np.arange(_CODEC_PROBES, dtype=np.int32) * stride
    return CodecFile(
        codebooks=codebooks,
        frames=_CODEC_FRAMES,
        samples=len(audio),
        peak=float(np.abs(audio).max()),
        rms=float(np.sqrt(np.square(audio, dtype=np.float64).mean())),
        probe_index=index,
        probe_values=audio[index],
        origin=None,
    )
