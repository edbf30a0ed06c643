"""Our MOSS-TTS-Nano against a dump."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mosstalk.models.moss_tts_nano.model import NanoModel
from mosstalk.models.moss_tts_nano.prompt import PromptBuilder
from mosstalk.models.moss_tts_nano.session import NanoSession
from mosstalk.parity.comparison import Comparison
from mosstalk.parity.greedy_frame import GREEDY_FRAMES
from mosstalk.parity.reference.decisions import GO_ON, STOP, Agreement
from mosstalk.parity.reference.nano_probe import PromptProbe
from mosstalk.text.tokenizer import Tokenizer


def check_prompts(
    model: NanoModel,
    tokenizer_model: bytes | None,
    probes: Sequence[PromptProbe],
    comparison: Comparison,
) -> None:
    """Text and voice to rows."""
    if tokenizer_model is None:
        comparison.fail("the model has no tokenizer.model")
        return
    builder = PromptBuilder(model.config, Tokenizer(tokenizer_model))
    for probe in probes:
        comparison.add_ids(probe.name, probe.rows, _build(builder, probe))


def check_hidden(model: NanoModel, probe: PromptProbe, comparison: Comparison) -> None:
    """Vectors of the prompt's rows, and of the frames' rows behind them, from one prefill."""
    slot = model.config.audio_assistant_slot_token_id
    frames = np.insert(probe.codes, 0, slot, axis=1)
    rows = np.concatenate([probe.rows, frames])
    hidden = _session(model, len(rows)).prefill(rows)
    found = hidden[probe.hidden_rows]
    comparison.add("hidden", probe.hidden, found, positions=probe.hidden_rows.tolist())


def check_greedy(model: NanoModel, probe: PromptProbe, comparison: Comparison) -> Agreement:
    """Frame after frame over the cache, as speech is made: the codes and their logits.

    After a disagreement it goes on from the reference's frame, so that the next are compared too.
    """
    allowed = 2 * comparison.tolerance * probe.logit_peak
    agreement = Agreement(f"greedy: {probe.name}", allowed)
    session = _session(model, len(probe.rows) + len(probe.gate_gaps))
    session.prefill(probe.rows)
    logits: list[float] = []
    expected_logits: list[float] = []
    for frame, gate_gap in enumerate(probe.gate_gaps.tolist()):
        length = session.cached_positions
        codes = session.next_frame(GREEDY_FRAMES)
        found = STOP if codes is None else GO_ON
        if frame == len(probe.codes):
            agreement.compare_gate(frame, STOP, found, gate_gap)
            break
        expected = probe.codes[frame]
        agrees = 0
        if agreement.compare_gate(frame, GO_ON, found, gate_gap) and codes is not None:
            agrees = agreement.compare_codes(frame, expected, codes, probe.code_gaps[frame])
        logits += _logits(model, expected)[:agrees]
        expected_logits += probe.code_logits[frame, :agrees].tolist()
        if agrees < len(expected):
            session.truncate(length)
            session.step(model.config.audio_assistant_slot_token_id, expected.tolist())
    agreement.judge(comparison)
    if logits:
        comparison.add("logits", np.array(expected_logits), np.array(logits))
    return agreement


def _logits(model: NanoModel, codes: NDArray[np.int32]) -> list[float]:
    """Those of `codes` in the frame that was decoded last."""
    decoder = model.frame_decoder(model.config.n_vq)
    tables = [decoder.program.array(decoder.outputs[f"logits.{q}"])[0] for q in range(len(codes))]
    return [float(table[code]) for table, code in zip(tables, codes, strict=True)]


def _build(builder: PromptBuilder, probe: PromptProbe) -> NDArray[np.int32]:
    if probe.voice_codes is None:
        return builder.plain(probe.text).rows
    if probe.kind == "clone":
        return builder.clone(probe.text, probe.voice_codes).rows
    return builder.continuation(probe.text, probe.voice_codes, probe.transcript).rows


def _session(model: NanoModel, budget: int) -> NanoSession:
    session = model.session()
    session.begin_generation(budget)
    return session
