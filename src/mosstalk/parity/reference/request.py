"""What a dump is asked for, and what it is made of."""

from dataclasses import dataclass
from pathlib import Path

from mosstalk.checkpoint.checkpoint import Checkpoint
from mosstalk.errors import UsageError


@dataclass(frozen=True, slots=True)
class DumpOptions:
    """What the user can choose.

    Attributes:
        texts: of prompts; None: each family's own, if there is a tokeniser.
        instruction, language: of the prompt, for a family that is told them; None: its own.
        seed: of what is drawn: random rows, codes, sound.

    Raises UsageError for a value that cannot be used.
    """

    texts: tuple[str, ...] | None = None
    instruction: str | None = None
    language: str | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.seed < 2**63:
            raise UsageError(f"the seed is {self.seed}, but must be from 0 to 2^63 - 1")
        if self.texts is not None and not all(text.strip() for text in self.texts):
            raise UsageError("a text is empty; leave it out or give one with words")


@dataclass(frozen=True, slots=True)
class Source:
    """An opened directory with the original code, and that of its codec, if there is one."""

    folder: Path
    checkpoint: Checkpoint
    codec_folder: Path | None
