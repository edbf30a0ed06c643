"""The delay family as the checks see it: a frame is whole n_vq - 1 rows after it was begun."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from mosstalk.checkpoint.storage import StoredTensor
from mosstalk.compute.backend import Backend
from mosstalk.compute.sampling import SamplingParams
from mosstalk.models.moss_tts_delay.backbone import Backbone
from mosstalk.models.moss_tts_delay.config import DelayConfig
from mosstalk.models.moss_tts_delay.delay_pattern import Staircase, undelayed
from mosstalk.models.moss_tts_delay.delay_state import DelayState, Limits
from mosstalk.models.moss_tts_delay.members import TTSD, member_of
from mosstalk.models.moss_tts_delay.model import DelayModel
from mosstalk.models.moss_tts_delay.requests import prompt_maker
from mosstalk.models.moss_tts_delay.run import DelayRun
from mosstalk.models.moss_tts_delay.sampling import CodeHistory, DelaySampling
from mosstalk.models.moss_tts_delay.session import DelaySession
from mosstalk.models.row_session import PrefillMode, RowSession, RowTransformer
from mosstalk.parity.family.language_model import Choice, Drawing, GreedyRow, Turn
from mosstalk.parity.family.random_rows import RowLayout, changed_rows, random_rows
from mosstalk.text.bpe_tokenizer import BpeTokenizer
from mosstalk.types import SpeechOptions

# No check reaches the frames. Text rows are few: what follows the end of a text is not codes.
_LIMITS = Limits(max_frames=10**6, max_text_rows=2)
_GREEDY = SamplingParams(temperature=0.0)


def delay_layout(config: DelayConfig) -> RowLayout:
    return RowLayout(
        num_texts=config.vocab_size,
        slots=(config.audio_user_slot_token_id, config.audio_assistant_gen_slot_token_id),
        code_sizes=(config.audio_vocab_size,) * config.n_vq,
        pad_code=config.audio_pad_code,
    )


class DelayLanguageModel:
    """See LanguageModel. `tokenizer`: the checkpoint's, if it has one."""

    def __init__(self, model: DelayModel, tokenizer: BpeTokenizer | None = None) -> None:
        config = model.config
        self.model = model
        self.spec = model.spec
        self.backend = model.backend
        self.max_positions = config.max_position_embeddings
        self.codebook_counts: tuple[int, ...] = (config.n_vq,)
        self.layout = delay_layout(config)
        self._tokenizer = tokenizer

    def session(self, prefill_mode: PrefillMode = "batched") -> DelaySession:
        return self.model.session(prefill_mode)

    def transformer(self, backend: Backend) -> RowTransformer:
        return Backbone(self.model.config, self.model.weights, backend)

    def random_prompt(self, count: int, seed: int) -> NDArray[np.int32]:
        rows = random_rows(self.layout, count, seed)
        rows[-1] = self.layout.pad_code
        rows[-1, 0] = self.model.config.audio_start_token_id
        return rows

    def changed(self, rows: NDArray[np.int32], at: int) -> Sequence[tuple[str, NDArray[np.int32]]]:
        return changed_rows(self.layout, rows, at)

    def sentence_prompt(self, sentence: str) -> NDArray[np.int32] | None:
        if self._tokenizer is None:
            return None
        member = member_of(self.model.config)
        make = prompt_maker(member, self.model.config, self._tokenizer)
        text = f"[S1] {sentence}" if member is TTSD else sentence
        return make(text, (), SpeechOptions(force_audio_start=True)).rows

    def rows_for(self, frames: int) -> int:
        return frames + self.model.config.n_vq - 1

    def start(
        self, session: RowSession, prompt: NDArray[np.int32], drawing: Drawing
    ) -> "_DelayRun":
        assert isinstance(session, DelaySession)
        return _DelayRun(self.model.config, session, prompt, drawing)

    def start_greedy(self, session: RowSession, prompt: NDArray[np.int32]) -> "_DelayGreedyRun":
        assert isinstance(session, DelaySession)
        return _DelayGreedyRun(self.model.config, session, prompt)

    def matrices(self) -> list[StoredTensor]:
        weights = self.model.weights
        inner = [
            matrix
            for block in weights.blocks
            for matrix in (
                block.q_proj,
                block.k_proj,
                block.v_proj,
                block.o_proj,
                block.gate_proj,
                block.up_proj,
                block.down_proj,
            )
        ]
        return [
            weights.embed_tokens,
            *weights.emb_ext,
            *inner,
            weights.text_head,
            *weights.audio_heads,
        ]


class _DelayRun:
    """Rows by `DelayRun`, as the engine draws them. Where the model would end, or writes on, the
    run stands as if speech had just begun."""

    def __init__(
        self,
        config: DelayConfig,
        session: DelaySession,
        prompt: NDArray[np.int32],
        drawing: Drawing,
    ) -> None:
        self.session: RowSession = session
        self._session = session
        self._prompt = prompt
        self._sampling = DelaySampling(drawing.text, drawing.audio, drawing.seed)
        self._run = DelayRun.start(config, prompt, _LIMITS)
        self._staircase = Staircase(config.n_vq, config.audio_pad_code)
        self._drawn: list[NDArray[np.int32]] = []

    def next(self) -> Turn:
        run, row = self._run.draw(self._session, self._sampling)
        self._staircase, frame = self._staircase.push(row[1:])
        self._session.step(row)
        self._drawn.append(row)
        self._run = replace(run, state=_going_on(run.state))
        return Turn(row, run.state.stop is not None, frame)

    def expected(self, whole: RowSession) -> Turn:
        assert isinstance(whole, DelaySession)
        config = self._run.state.config
        state = DelayState.start(config, self._prompt[:, 0], _LIMITS)
        for row in self._drawn:
            state = _going_on(_after(state, row))
        history = CodeHistory.of(config, np.stack([*self._prompt, *self._drawn]))
        run, row = DelayRun(state, history).draw(whole, self._sampling)
        frames = undelayed(np.stack([*self._drawn, row])[:, 1:])
        is_whole = len(frames) > 0 and (frames[-1] != config.audio_pad_code).all()
        return Turn(row, run.state.stop is not None, frames[-1] if is_whole else None)


class _DelayGreedyRun:
    def __init__(
        self, config: DelayConfig, session: DelaySession, prompt: NDArray[np.int32]
    ) -> None:
        self._session = session
        self._run = DelayRun.start(config, prompt, _LIMITS)

    def choose(self) -> GreedyRow:
        state = self._run.state
        decision = state.decide()
        _, row = self._run.draw(self._session, DelaySampling(_GREEDY, _GREEDY, seed=0))
        choices = []
        if decision.allowed is None:
            logits = self._session.text_logits()
            logits[list(decision.banned)] = -np.inf
            choices.append(Choice("text", logits, int(row[0])))
        elif decision.forced is None:
            chosen = decision.allowed.index(int(row[0]))
            choices.append(Choice("text", self._session.slot_logits(), chosen))
        if decision.codebooks:
            codes = self._session.audio_logits()[:, : state.config.audio_pad_code]
            choices += [
                Choice(f"codebook {q}", codes[q], int(row[1 + q])) for q in decision.codebooks
            ]
        return GreedyRow(row, tuple(choices), is_chain=False)

    def append(self, row: NDArray[np.int32]) -> NDArray[np.float32]:
        state = _going_on(_after(self._run.state, row))
        self._run = DelayRun(state, self._run.history.after(row))
        return self._session.step(row)


def _after(state: DelayState, row: NDArray[np.int32]) -> DelayState:
    """The state after a row that may have been drawn from it."""
    codebooks = state.decide().codebooks
    after, again = state.advance(int(row[0]), row[1 + codebooks.start : 1 + codebooks.stop])
    assert np.array_equal(again, row), (again, row)
    return after


def _going_on(state: DelayState) -> DelayState:
    """The state itself, or where it has ended one in which speech begins."""
    if state.stop is None:
        return state
    start = np.array([state.config.audio_start_token_id], np.int32)
    return replace(DelayState.start(state.config, start, state.limits), step=state.step)
