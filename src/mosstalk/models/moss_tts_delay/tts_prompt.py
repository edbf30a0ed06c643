"""Prompts of MOSS-TTS 8B, 1.0 and v1.5 (spec voicegen.md 4.1, 4.5)."""

from collections.abc import Sequence
from dataclasses import replace

from mosstalk.models.moss_tts_delay.config import DelayConfig
from mosstalk.models.moss_tts_delay.delay_pattern import Codes
from mosstalk.models.moss_tts_delay.languages import TTS_LANGUAGES, language_name
from mosstalk.models.moss_tts_delay.prompt import Fields, Prompt, PromptBuilder, reference_parts
from mosstalk.text.bpe_tokenizer import BpeTokenizer

_NO_FIELDS = Fields()


class TtsPrompts:
    """Speech, as in recordings where there are any.

    All methods raise UsageError for a language that the model does not speak and for a recording
    of too few codebooks. The language in `fields` is a code or an English name.
    """

    def __init__(self, config: DelayConfig, tokenizer: BpeTokenizer) -> None:
        self.builder = PromptBuilder(config, tokenizer)

    def speech(
        self,
        text: str,
        references: Sequence[Codes | None] = (),
        fields: Fields = _NO_FIELDS,
    ) -> Prompt:
        """`text`, with one recording [frames, codebooks] for each speaker."""
        named = replace(fields, language=language_name(fields.language, TTS_LANGUAGES))
        return self.builder.build(reference_parts(references), named.lines(), text)

    def continuation(
        self,
        text: str,
        codes: Codes,
        transcript: str,
        references: Sequence[Codes | None] = (),
        fields: Fields = _NO_FIELDS,
    ) -> Prompt:
        """Go on after a recording whose words are `transcript`; nothing is put between the two."""
        prompt = self.speech(transcript + text, references, fields)
        return self.builder.spoken(prompt, codes)
