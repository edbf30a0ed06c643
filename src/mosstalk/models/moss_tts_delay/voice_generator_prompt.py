"""Prompts of MOSS-VoiceGenerator: a voice from its description (spec voicegen.md 4.1)."""

from mosstalk.models.moss_tts_delay.config import DelayConfig
from mosstalk.models.moss_tts_delay.languages import VOICE_GENERATOR_LANGUAGES, language_name
from mosstalk.models.moss_tts_delay.prompt import Fields, Prompt, PromptBuilder, reference_parts
from mosstalk.text.bpe_tokenizer import BpeTokenizer


class VoiceGeneratorPrompts:
    """Takes no recordings: the instruction says how the voice sounds."""

    def __init__(self, config: DelayConfig, tokenizer: BpeTokenizer) -> None:
        self.builder = PromptBuilder(config, tokenizer)

    def speech(
        self, text: str, instruction: str | None = None, language: str | None = None
    ) -> Prompt:
        """`text` in the voice of `instruction`, such as "a tired old man".

        `language` is a code or an English name; most prompts leave it out. Raises UsageError for
        a language that the model does not speak.
        """
        name = language_name(language, VOICE_GENERATOR_LANGUAGES)
        fields = Fields(instruction=instruction, language=name)
        return self.builder.build(reference_parts(()), fields.lines(), text)
