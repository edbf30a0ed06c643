"""The model that files of a dump are compared with: whether they are of it, and its rows."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mosstalk.errors import CheckpointError, UsageError
from mosstalk.models.identity import language_model_identity
from mosstalk.models.moss_tts_delay.config import DelayConfig
from mosstalk.models.moss_tts_delay.model import DelayModel
from mosstalk.models.moss_tts_delay.session import DelaySession
from mosstalk.parity.comparison import CheckResult, Comparison
from mosstalk.parity.opening import Opened
from mosstalk.parity.reference.origin import Origin


@dataclass(frozen=True, slots=True)
class Check:
    """One row of a report."""

    name: str
    tolerance: float
    compare: Callable[[Comparison], None]


def run_checks(checks: Iterable[Check]) -> Iterator[CheckResult]:
    """In the order of the table."""
    for check in checks:
        comparison = Comparison(check.name, check.tolerance)
        try:
            check.compare(comparison)
        except UsageError:
            raise
        except Exception as error:  # an engine that breaks down under a check has failed it
            comparison.fail(f"{type(error).__name__}: {' '.join(str(error).split())}")
        yield comparison.result()


def check_origin(opened: Opened, origin: Origin | None, where: str) -> None:
    """Raise CheckpointError for a file of another checkpoint, if it says of which it is."""
    if origin is None:
        return
    found = language_model_identity(opened.checkpoint)
    if origin.model_identity != found:
        raise CheckpointError(
            f"{where} is of another checkpoint ({origin.model_identity}) than "
            f"{opened.checkpoint.path} ({found}); make a dump of this one"
        )


def check_rows(config: DelayConfig, rows: NDArray[np.int32], where: str) -> None:
    """Raise CheckpointError for rows that the model cannot have."""
    if rows.shape[1] != 1 + config.n_vq:
        raise CheckpointError(
            f"{where}: rows of {rows.shape[1]} ids, but the model has rows of {1 + config.n_vq}"
        )
    if rows[:, 0].max() >= config.vocab_size or rows[:, 1:].max() > config.audio_pad_code:
        raise CheckpointError(f"{where}: rows with ids that the model does not have")


def session_for(model: DelayModel, rows: int) -> DelaySession:
    """A session with room for so many rows; raises UsageError where the model has none."""
    session = model.session()
    session.begin_generation(rows)
    return session
