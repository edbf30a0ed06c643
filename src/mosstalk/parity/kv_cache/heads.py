"""The output heads of the delay family, read again and again and in parts."""

import numpy as np

from mosstalk.models.moss_tts_delay.model import DelayModel
from mosstalk.models.moss_tts_delay.session import DelaySession
from mosstalk.parity.comparison import Comparison
from mosstalk.parity.family.delay import DelayLanguageModel
from mosstalk.parity.kv_cache.subject import Subject

_REPEATS = 3


def check_repeat(subject: Subject, comparison: Comparison) -> None:
    """The same row gives the same logits each time, and a pad code none."""
    model, session = _prefilled(subject)
    pad = model.config.audio_pad_code
    text, audio = session.text_logits(), session.audio_logits()
    for i in range(1, _REPEATS):
        comparison.add(f"repeat {i}, text", text, session.text_logits())
        comparison.add(f"repeat {i}, codes", audio[:, :pad], session.audio_logits()[:, :pad])
    comparison.require(bool((audio[:, pad:] == -np.inf).all()), "a pad code can be drawn")


def check_slots(subject: Subject, comparison: Comparison) -> None:
    """The two text ids that count inside audio have the same logits as among all of them."""
    model, session = _prefilled(subject)
    config = model.config
    ids = [config.audio_assistant_gen_slot_token_id, config.audio_assistant_delay_slot_token_id]
    comparison.add("slots", session.text_logits()[ids], session.slot_logits())


def check_cached(subject: Subject, comparison: Comparison) -> None:
    """After a prompt in two portions, the logits are those after the whole prompt."""
    _, whole = _prefilled(subject)
    session = subject.prefilled(len(subject.rows) // 2)
    assert isinstance(session, DelaySession)
    session.prefill(subject.rows, reuse_rows=len(subject.rows) // 2)
    comparison.add("text", whole.text_logits(), session.text_logits())
    codes = [logits[:, :-1] for logits in (whole.audio_logits(), session.audio_logits())]
    comparison.add("codes", *codes)


def _prefilled(subject: Subject) -> tuple[DelayModel, DelaySession]:
    session = subject.prefilled()
    assert isinstance(subject.model, DelayLanguageModel) and isinstance(session, DelaySession)
    return subject.model.model, session
