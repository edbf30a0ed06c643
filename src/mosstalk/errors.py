"""Everything mosstalk raises on purpose.

    MosstalkError            exit status 1
    ├── UsageError           exit status 2: an argument, a text, a name
    ├── AudioError           a clip that cannot be read or used
    ├── CheckpointError      model files that are missing, damaged or not what they should be
    ├── DownloadError        a model that could not be fetched
    ├── DeviceError          a device that is not there, has failed or computes wrong
    ├── OutputError          a result that could not be written or played
    ├── BusyError            no room for a request now
    └── TimeLimitError       a request that took longer than it may

A message names the thing, the value and the way out, in one line.
"""


class MosstalkError(Exception):
    """Base of all errors that a user can cause and mend."""

    exit_status = 1


class UsageError(MosstalkError):
    """An argument, a text or a name that cannot be used as given."""

    exit_status = 2


class AudioError(MosstalkError):
    """A recording that cannot be read, or cannot serve as a reference."""


class CheckpointError(MosstalkError):
    """Model files that are missing, damaged, or of an unknown kind."""


class DownloadError(MosstalkError):
    """A model could not be fetched."""


class DeviceError(MosstalkError):
    """A device that is not there, is out of memory, has failed, or computes wrong."""


class OutputError(MosstalkError):
    """Audio could not be written or played."""


class BusyError(MosstalkError):
    """No room for a request now. `retry_after`: seconds after which there may be."""

    def __init__(self, message: str, retry_after: float) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class TimeLimitError(MosstalkError):
    """A request was not done within its time."""
