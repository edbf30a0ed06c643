"""Puts a MOSS-TTS-Nano checkpoint together: config, weights, programs."""

from collections.abc import Mapping

from mosstalk.checkpoint.storage import StorageType, StoredTensor
from mosstalk.compute.backend import Backend
from mosstalk.models.moss_tts_nano.config import parse_config
from mosstalk.models.moss_tts_nano.frame_decoder import FrameDecoder
from mosstalk.models.moss_tts_nano.global_transformer import GlobalTransformer, state_spec
from mosstalk.models.moss_tts_nano.session import NanoSession
from mosstalk.models.moss_tts_nano.weights import load_weights
from mosstalk.models.row_session import PrefillMode


class NanoModel:
    """The language model, ready to run. It holds no state: see NanoSession.

    Its programs work in buffers of their own, so sessions of one model take turns: they may be
    interleaved, but not run from several threads at once.
    """

    def __init__(
        self,
        config: Mapping[str, object],
        tensors: Mapping[str, StoredTensor],
        backend: Backend,
        storage: StorageType = StorageType.NATIVE,
    ) -> None:
        self.config = parse_config(config)
        self.weights = load_weights(self.config, tensors, storage)
        self.spec = state_spec(self.config)
        self.backend = backend
        self.global_transformer = GlobalTransformer(self.config, self.weights, backend)
        self._frame_decoders: dict[tuple[int, int], FrameDecoder] = {}

    def frame_decoder(self, num_codebooks: int, max_rows: int = 1) -> FrameDecoder:
        """The decoder for frames of `num_codebooks` codebooks, recorded at first use.

        `max_rows`: streams that advance together at most.
        """
        key = num_codebooks, max_rows
        if key not in self._frame_decoders:
            self._frame_decoders[key] = FrameDecoder(
                self.config, self.weights, self.backend, num_codebooks, max_rows
            )
        return self._frame_decoders[key]

    def session(
        self, prefill_mode: PrefillMode = "batched", num_codebooks: int | None = None
    ) -> NanoSession:
        """A session with nothing cached."""
        return NanoSession(self, prefill_mode, num_codebooks)
