"""One frame's slots in the local transformer of MOSS-TTS-Nano."""

import numpy as np
from numpy.typing import NDArray

from mosstalk.compute.program import Program
from mosstalk.compute.state import State
from mosstalk.models.moss_tts_nano.model import NanoModel
from mosstalk.models.moss_tts_nano.session import NanoSession
from mosstalk.models.moss_tts_nano.transformer import record_stack
from mosstalk.nn.attention import Rows
from mosstalk.nn.rope import inverse_frequencies
from mosstalk.parity.comparison import Comparison
from mosstalk.parity.family.nano import NanoLanguageModel
from mosstalk.parity.greedy_frame import decode_greedy
from mosstalk.parity.kv_cache.subject import Subject

_REPEATS = 3


def check_repeat(subject: Subject, comparison: Comparison) -> None:
    """The same state gives the same codes each time, within their codebooks."""
    model, session = _prefilled(subject)
    first = decode_greedy(model, session)
    for i in range(1, _REPEATS):
        again = decode_greedy(model, session)
        comparison.add_ids(f"repeat {i}, codes", first.codes, again.codes)
        comparison.add(f"repeat {i}, hidden", first.hidden, again.hidden)
        for q, logits in enumerate(zip(first.logits, again.logits, strict=True)):
            comparison.add(f"repeat {i}, logits of codebook {q}", *logits)
    for q, size in enumerate(model.config.audio_codebook_sizes):
        code = int(first.codes[q])
        comparison.require(0 <= code < size, f"code {code} is outside codebook {q} of {size}")


def check_slots(subject: Subject, comparison: Comparison) -> None:
    """Slot after slot over the local cache, against all slots in one pass."""
    model, session = _prefilled(subject)
    frame = decode_greedy(model, session)
    assert session.hidden is not None
    slot = model.config.audio_assistant_slot_token_id
    embedded = [
        table.to_float32()[code]
        for table, code in zip(model.weights.audio_embeddings, frame.codes[:-1], strict=False)
    ]
    inputs = [session.hidden, model.weights.wte.to_float32()[slot], *embedded]
    comparison.add("slots", _one_pass(model, np.stack(inputs)), frame.hidden)


def check_fewer_codebooks(subject: Subject, comparison: Comparison) -> None:
    """With some codebooks only, their slots are the same and the other codes are pads."""
    model, session = _prefilled(subject)
    full, config = decode_greedy(model, session), model.config
    for active in sorted({1, (config.n_vq + 1) // 2}):
        session = model.session(num_codebooks=active)
        session.begin_generation(subject.budget)
        session.prefill(subject.rows)
        part = decode_greedy(model, session)
        pads = np.full(config.n_vq - active, config.audio_pad_token_id, np.int32)
        expected = np.concatenate([full.codes[:active], pads])
        comparison.add_ids(f"{active} codebooks", expected, part.codes)
        comparison.add(f"{active} codebooks, hidden", full.hidden[: active + 1], part.hidden)


def _prefilled(subject: Subject) -> tuple[NanoModel, NanoSession]:
    session = subject.prefilled()
    assert isinstance(subject.model, NanoLanguageModel) and isinstance(session, NanoSession)
    return subject.model.model, session


def _one_pass(model: NanoModel, inputs: NDArray[np.float32]) -> NDArray[np.float32]:
    """Hidden vectors of all slots, whose inputs are known, in one run of the local blocks."""
    config, slots = model.config, len(inputs)
    program = Program(max_rows=1)
    x = program.input("slots", config.hidden_size, slots)
    rows = Rows.record(program, "local", config.head_dim, slots)
    stack = record_stack(program, x, model.weights.local_stack, config, config.n_layer, rows)
    out = program.output("hidden", stack)
    built = model.backend.build(program)
    built.array(x)[:] = inputs
    positions = np.arange(slots, dtype=np.int32)
    rows.place(built, positions, 0, inverse_frequencies(config.head_dim, config.rope_base))
    built.run(1, State(model.spec, 1))
    return built.array(out).copy()
