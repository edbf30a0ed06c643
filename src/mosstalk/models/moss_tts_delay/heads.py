"""From the hidden vector of the last row to the logits of the next one (spec 3.3, 3.4)."""

import numpy as np
from numpy.typing import NDArray

from mosstalk.checkpoint.storage import StoredTensor
from mosstalk.compute.backend import Backend
from mosstalk.compute.program import Program
from mosstalk.models.moss_tts_delay.config import DelayConfig
from mosstalk.models.moss_tts_delay.weights import DelayWeights


class OutputHeads:
    """The text head, its two rows that count inside audio, and the heads of the codebooks."""

    def __init__(self, config: DelayConfig, weights: DelayWeights, backend: Backend) -> None:
        self._pad = config.audio_pad_code
        slots = (
            config.audio_assistant_gen_slot_token_id,
            config.audio_assistant_delay_slot_token_id,
        )
        self._text = _Head([weights.text_head], backend)
        self._slots = _Head([_rows_of(weights.text_head, slots)], backend)
        self._audio = _Head(list(weights.audio_heads), backend)

    def text(self, hidden: NDArray[np.float32]) -> NDArray[np.float32]:
        """Logits of all text ids [vocab_size] after a row with this hidden vector."""
        return self._text.logits(hidden).reshape(-1)

    def slots(self, hidden: NDArray[np.float32]) -> NDArray[np.float32]:
        """Those of the gen slot and the delay slot alone [2], the same numbers as in `text`."""
        return self._slots.logits(hidden).reshape(-1)

    def audio(self, hidden: NDArray[np.float32]) -> NDArray[np.float32]:
        """Logits of each codebook [n_vq, audio_table_size]; the pad's are -inf: it is not drawn."""
        logits = self._audio.logits(hidden)
        logits[:, self._pad] = -np.inf
        return logits


class _Head:
    """Products of one vector with matrices of the same shape."""

    def __init__(self, matrices: list[StoredTensor], backend: Backend) -> None:
        program = Program(max_rows=1)
        self._hidden = program.input("hidden", matrices[0].shape[1])
        self._logits = [
            program.output(matrix.name, program.linear(self._hidden, matrix)) for matrix in matrices
        ]
        self._program = backend.build(program)

    def logits(self, hidden: NDArray[np.float32]) -> NDArray[np.float32]:
        """A copy of the products, [matrices, rows]."""
        self._program.array(self._hidden)[0] = hidden
        self._program.run(1)
        return np.stack([self._program.array(logits)[0] for logits in self._logits])


def _rows_of(matrix: StoredTensor, rows: tuple[int, ...]) -> StoredTensor:
    """Some rows of a packed matrix, as they are packed."""
    shape = (len(rows), matrix.shape[1])
    return StoredTensor(matrix.name, shape, matrix.storage, matrix.data[list(rows)])
