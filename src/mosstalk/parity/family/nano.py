"""MOSS-TTS-Nano as the checks see it: a row is a frame."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mosstalk.checkpoint.storage import StoredTensor
from mosstalk.compute.backend import Backend
from mosstalk.models.moss_tts_nano.config import NanoConfig
from mosstalk.models.moss_tts_nano.frame_decoder import FrameSampling
from mosstalk.models.moss_tts_nano.global_transformer import GlobalTransformer
from mosstalk.models.moss_tts_nano.model import NanoModel
from mosstalk.models.moss_tts_nano.prompt import PromptBuilder
from mosstalk.models.moss_tts_nano.session import NanoSession
from mosstalk.models.row_session import PrefillMode, RowSession, RowTransformer
from mosstalk.parity.family.language_model import Choice, Drawing, GreedyRow, Turn
from mosstalk.parity.family.random_rows import RowLayout, changed_rows, random_rows
from mosstalk.parity.greedy_frame import decode_greedy
from mosstalk.text.tokenizer import Tokenizer


def nano_layout(config: NanoConfig) -> RowLayout:
    return RowLayout(
        num_texts=config.vocab_size,
        slots=(config.audio_user_slot_token_id, config.audio_assistant_slot_token_id),
        code_sizes=config.audio_codebook_sizes,
        pad_code=config.audio_pad_token_id,
    )


class NanoLanguageModel:
    """See LanguageModel. `tokenizer_model`: the checkpoint's, if it has one."""

    def __init__(self, model: NanoModel, tokenizer_model: bytes | None = None) -> None:
        config = model.config
        self.model = model
        self.spec = model.spec
        self.backend = model.backend
        self.max_positions = config.max_position_embeddings
        self.codebook_counts: tuple[int, ...] = (config.n_vq, (config.n_vq + 1) // 2)
        self.layout = nano_layout(config)
        self._tokenizer_model = tokenizer_model

    def session(self, prefill_mode: PrefillMode = "batched") -> NanoSession:
        return self.model.session(prefill_mode)

    def transformer(self, backend: Backend) -> RowTransformer:
        return GlobalTransformer(self.model.config, self.model.weights, backend)

    def random_prompt(self, count: int, seed: int) -> NDArray[np.int32]:
        return random_rows(self.layout, count, seed)

    def changed(self, rows: NDArray[np.int32], at: int) -> Sequence[tuple[str, NDArray[np.int32]]]:
        return changed_rows(self.layout, rows, at)

    def sentence_prompt(self, sentence: str) -> NDArray[np.int32] | None:
        if self._tokenizer_model is None:
            return None
        builder = PromptBuilder(self.model.config, Tokenizer(self._tokenizer_model))
        return builder.plain(sentence).rows

    def rows_for(self, frames: int) -> int:
        return frames

    def start(self, session: RowSession, prompt: NDArray[np.int32], drawing: Drawing) -> "_NanoRun":
        assert isinstance(session, NanoSession)
        return _NanoRun(self.model, session, drawing)

    def start_greedy(self, session: RowSession, prompt: NDArray[np.int32]) -> "_NanoGreedyRun":
        assert isinstance(session, NanoSession)
        return _NanoGreedyRun(self.model, session)

    def matrices(self) -> list[StoredTensor]:
        weights = self.model.weights
        blocks = (*weights.global_stack.blocks, *weights.local_stack.blocks)
        inner = [m for b in blocks for m in (b.c_attn[0], b.c_proj[0], b.fc_in[0], b.fc_out[0])]
        return [weights.wte, *weights.audio_embeddings, *inner]


class _NanoRun:
    """Frames by `next_frame`. Where the model would end, the codes it has drawn are appended by a
    step."""

    def __init__(self, model: NanoModel, session: NanoSession, drawing: Drawing) -> None:
        self.session: RowSession = session
        self._session = session
        self._model = model
        self._sampling = FrameSampling(drawing.text, drawing.audio, drawing.seed)
        self._index = 0  # the session's own count of frames
        self._drawn: list[NDArray[np.int32]] = []
        session.num_codebooks = drawing.num_codebooks or model.config.n_vq

    def next(self) -> Turn:
        session = self._session
        seen_before = [seen.copy() for seen in session.state.seen]
        codes = session.next_frame(self._sampling)
        stops = codes is None
        if codes is None:
            for seen, before in zip(session.state.seen, seen_before, strict=True):
                seen[:] = before
            assert session.hidden is not None
            decoder = self._model.frame_decoder(session.num_codebooks)
            _, codes, _ = decoder.run(session.state, session.hidden, self._index, self._sampling)
            session.step(self._model.config.audio_assistant_slot_token_id, codes.tolist())
        else:
            self._index += 1
        self._drawn.append(codes)
        return self._turn(codes, stops)

    def expected(self, whole: RowSession) -> Turn:
        assert isinstance(whole, NanoSession) and whole.hidden is not None
        active = self._session.num_codebooks
        whole.state.forget_seen()
        for codes in self._drawn:
            for seen, code in zip(whole.state.seen, codes[:active], strict=False):
                seen[0, code] = 1
        decoder = self._model.frame_decoder(active)
        goes_on, codes, _ = decoder.run(whole.state, whole.hidden, self._index, self._sampling)
        return self._turn(codes, not goes_on)

    def _turn(self, codes: NDArray[np.int32], stops: bool) -> Turn:
        slot = self._model.config.audio_assistant_slot_token_id
        row = np.array([slot, *codes], np.int32)
        return Turn(row, stops, codes[: self._session.num_codebooks])


class _NanoGreedyRun:
    def __init__(self, model: NanoModel, session: NanoSession) -> None:
        self._model = model
        self._session = session

    def choose(self) -> GreedyRow:
        frame = decode_greedy(self._model, self._session)
        choices = tuple(
            Choice(f"codebook {q}", logits, int(frame.codes[q]))
            for q, logits in enumerate(frame.logits)
        )
        slot = self._model.config.audio_assistant_slot_token_id
        return GreedyRow(np.array([slot, *frame.codes], np.int32), choices, is_chain=True)

    def append(self, row: NDArray[np.int32]) -> NDArray[np.float32]:
        return self._session.append(row)
