"""A lock that who waits for it gets, however often its last holder asks again."""

from threading import Lock
from types import TracebackType


class FairLock:
    """A mutual exclusion for `with`. Releasing it and asking again lets a waiting thread go first.

    Who waits for the lock holds the door meanwhile, so that a thread that has just released it
    must queue at the door.
    """

    def __init__(self) -> None:
        self._door = Lock()
        self._lock = Lock()

    def __enter__(self) -> None:
        with self._door:
            self._lock.acquire()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._lock.release()
