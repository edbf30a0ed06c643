"""Puts a checkpoint of the delay family together: config, weights, programs."""

from collections.abc import Mapping

from mosstalk.checkpoint.storage import StorageType, StoredTensor
from mosstalk.compute.backend import Backend
from mosstalk.models.moss_tts_delay.backbone import Backbone, state_spec
from mosstalk.models.moss_tts_delay.config import parse_config
from mosstalk.models.moss_tts_delay.heads import OutputHeads
from mosstalk.models.moss_tts_delay.session import DelaySession
from mosstalk.models.moss_tts_delay.weights import load_weights
from mosstalk.models.row_session import PrefillMode


class DelayModel:
    """The language model, ready to run. It holds no state: see DelaySession.

    Its programs work in buffers of their own, so sessions of one model take turns: they may be
    interleaved, but not run from several threads at once. `special_ids`: see parse_config.
    """

    def __init__(
        self,
        config: Mapping[str, object],
        tensors: Mapping[str, StoredTensor],
        backend: Backend,
        storage: StorageType = StorageType.NATIVE,
        special_ids: Mapping[str, int] | None = None,
    ) -> None:
        self.config = parse_config(config, special_ids)
        self.weights = load_weights(self.config, tensors, storage)
        self.spec = state_spec(self.config)
        self.backend = backend
        self.backbone = Backbone(self.config, self.weights, backend)
        self.heads = OutputHeads(self.config, self.weights, backend)

    def session(self, prefill_mode: PrefillMode = "batched") -> DelaySession:
        """A session with nothing cached."""
        return DelaySession(
            self.backbone,
            self.heads,
            self.spec,
            self.config.max_position_embeddings,
            prefill_mode,
        )
