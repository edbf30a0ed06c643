"""Designed voices to choose from: each a recording with what it was made of beside it.

On disk a candidate is `N.wav` and `N.json` (text, instruction, seed, identities of the model and
its codec).
"""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from mosstalk.audio.clip import AudioClip
from mosstalk.audio.read import read_clip, read_file
from mosstalk.checkpoint.atomic import replacing_file
from mosstalk.errors import UsageError
from mosstalk.types import StopReason, VoiceOrigin


@dataclass(frozen=True, slots=True)
class Candidate:
    """A voice that was made from a description.

    Attributes:
        audio: the text in that voice; no samples where the model did not come to speak.
        text: what it says.
        origin: the description, and the seed that gives the same voice for the same text.
        stop_reason: of the run.
        retries: how often the run was begun again.
    """

    audio: AudioClip
    text: str
    origin: VoiceOrigin
    stop_reason: StopReason = "end"
    retries: int = 0

    def write(self, path: Path) -> None:
        """Write the recording to `path` (.wav) and the rest beside it (.json).

        Raises OutputError where a file cannot be written.
        """
        self.audio.write(path)
        about = {"text": self.text, **asdict(self.origin)}
        with replacing_file(path.with_suffix(".json")) as out:
            out.write_text(json.dumps(about, ensure_ascii=False) + "\n", encoding="utf-8")


def read_candidate(path: Path) -> Candidate:
    """The candidate whose recording is at `path`.

    Raises AudioError for a recording that cannot be read, UsageError where what belongs beside it
    is missing or damaged.
    """
    clip = read_clip(read_file(path, name=str(path)), name=str(path))
    beside = path.with_suffix(".json")
    try:
        about = json.loads(beside.read_text(encoding="utf-8"))
        text = str(about.pop("text"))
        origin = VoiceOrigin(**about)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise UsageError(
            f"{beside} is missing or damaged, so {path} is no designed voice; add it as a "
            "recording instead: `mosstalk voices add NAME CLIP`"
        ) from error
    return Candidate(clip, text, origin)
