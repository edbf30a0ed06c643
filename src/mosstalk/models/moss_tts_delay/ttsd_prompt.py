"""Prompts of MOSS-TTSD: dialogues (spec voicegen.md 4.1).

The template is the one in the model's own checkpoint. It has a scene, always `None`; its tokens
are always `None` too, and a speaker without a recording is named.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from mosstalk.errors import UsageError
from mosstalk.models.moss_tts_delay.config import DelayConfig
from mosstalk.models.moss_tts_delay.delay_pattern import Codes
from mosstalk.models.moss_tts_delay.languages import TTSD_LANGUAGES, language_name
from mosstalk.models.moss_tts_delay.prompt import Fields, Prompt, PromptBuilder, reference_parts
from mosstalk.text.bpe_tokenizer import BpeTokenizer

MAX_SPEAKERS = 5
_TAG = re.compile(r"\[S(\d+)\]")
_NO_FIELDS = Fields()


@dataclass(frozen=True, slots=True)
class Recording:
    """A speaker's voice: codes [frames, codebooks] and the words."""

    codes: Codes
    transcript: str


class TtsdPrompts:
    """Dialogues whose turns begin with `[S1]` to `[S5]`.

    All methods raise UsageError for a text without such tags or with others, for a language that
    the model does not speak and for a recording of too few codebooks. The language in `fields` is
    a code or an English name.
    """

    def __init__(self, config: DelayConfig, tokenizer: BpeTokenizer) -> None:
        self.builder = PromptBuilder(config, tokenizer)

    def dialogue(
        self,
        text: str,
        references: Sequence[Codes | None] = (),
        fields: Fields = _NO_FIELDS,
    ) -> Prompt:
        """The dialogue, with a recording for each speaker; None for a speaker without one."""
        check_dialogue(text)
        if len(references) > MAX_SPEAKERS:
            raise UsageError(
                f"{len(references)} speakers were given, but this model knows {MAX_SPEAKERS}"
            )
        name = language_name(fields.language, TTSD_LANGUAGES)
        lines = [*replace(fields, language=name, tokens=None).lines(), ("Scene", None)]
        return self.builder.build(reference_parts(references, absent="None"), lines, text)

    def continuation(
        self,
        text: str,
        speakers: Sequence[Recording | None],
        fields: Fields = _NO_FIELDS,
    ) -> Prompt:
        """The dialogue as if the speakers had just said the words of their recordings.

        This is how the model clones best. Raises UsageError where no speaker has a recording.
        """
        known = [(i, voice) for i, voice in enumerate(speakers, start=1) if voice is not None]
        if not known:
            raise UsageError("a dialogue that goes on needs a speaker with a recording")
        check_dialogue(text)
        turns = [(i, voice.transcript) for i, voice in known]
        references = [None if voice is None else voice.codes for voice in speakers]
        prompt = self.dialogue(joined_turns(turns, text), references, fields)
        return self.builder.spoken(prompt, np.concatenate([voice.codes for _, voice in known]))


def check_dialogue(text: str) -> None:
    """Raises UsageError where a text has no speaker tags, or one that the model does not know."""
    speakers = [int(tag) for tag in _TAG.findall(text)]
    if not speakers:
        raise UsageError("the dialogue has no speaker tags; begin each turn with [S1], [S2] ...")
    for speaker in speakers:
        if not 1 <= speaker <= MAX_SPEAKERS:
            raise UsageError(
                f"the dialogue has a speaker [S{speaker}]; this model knows [S1] to "
                f"[S{MAX_SPEAKERS}]"
            )


def joined_turns(turns: Sequence[tuple[int, str]], text: str) -> str:
    """Spoken turns and the dialogue that follows, one space between them.

    A transcript may begin with its speaker's tag. Where the dialogue goes on with the last
    speaker, no second tag is put between the two.
    """
    said = []
    for speaker, transcript in turns:
        tag = f"[S{speaker}]"
        said.append(f"{tag} {transcript.strip().removeprefix(tag).lstrip()}")
    last_tag = f"[S{turns[-1][0]}]"
    return " ".join([*said, text.strip().removeprefix(last_tag).lstrip()])
