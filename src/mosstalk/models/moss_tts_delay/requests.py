"""From a request to the prompt of a member of the family."""

from collections.abc import Callable, Sequence

from mosstalk.errors import UsageError
from mosstalk.models.moss_tts_delay.config import DelayConfig
from mosstalk.models.moss_tts_delay.members import TTS, VOICE_GENERATOR, Member
from mosstalk.models.moss_tts_delay.prompt import Fields, Prompt, PromptBuilder
from mosstalk.models.moss_tts_delay.tts_prompt import TtsPrompts
from mosstalk.models.moss_tts_delay.ttsd_prompt import Recording, TtsdPrompts
from mosstalk.models.moss_tts_delay.voice_generator_prompt import VoiceGeneratorPrompts
from mosstalk.text.bpe_tokenizer import BpeTokenizer
from mosstalk.types import SpeechOptions, Voice

# Text, a voice for each speaker, options.
PromptMaker = Callable[[str, Sequence[Voice], SpeechOptions], Prompt]


def prompt_maker(member: Member, config: DelayConfig, tokenizer: BpeTokenizer) -> PromptMaker:
    """What turns requests into prompts of `member`. It raises UsageError for one it cannot follow:
    a language that the model does not speak, a continuation without a transcript.
    """
    if member is VOICE_GENERATOR:
        make = _voice_generator(VoiceGeneratorPrompts(config, tokenizer))
    elif member is TTS:
        make = _tts(TtsPrompts(config, tokenizer))
    else:
        make = _ttsd(TtsdPrompts(config, tokenizer))
    builder = PromptBuilder(config, tokenizer)

    def made(text: str, voices: Sequence[Voice], options: SpeechOptions) -> Prompt:
        prompt = make(text, voices, options)
        starts = options.force_audio_start and not len(prompt.lead_in)
        return builder.with_audio_start(prompt) if starts else prompt

    return made


def _voice_generator(prompts: VoiceGeneratorPrompts) -> PromptMaker:
    def make(text: str, voices: Sequence[Voice], options: SpeechOptions) -> Prompt:
        if options.mode == "continuation":
            raise UsageError("this model makes voices and takes none, so it cannot go on from one")
        return prompts.speech(text, options.instruction, options.language)

    return make


def _tts(prompts: TtsPrompts) -> PromptMaker:
    def make(text: str, voices: Sequence[Voice], options: SpeechOptions) -> Prompt:
        fields = _fields(options)
        if options.mode == "continuation":
            (voice,) = _with_transcripts(voices)
            return prompts.continuation(text, voice.codes, voice.transcript, fields=fields)
        return prompts.speech(text, [voice.codes for voice in voices], fields)

    return make


def _ttsd(prompts: TtsdPrompts) -> PromptMaker:
    def make(text: str, voices: Sequence[Voice], options: SpeechOptions) -> Prompt:
        fields = _fields(options)
        if options.mode == "continuation":
            return prompts.continuation(text, _with_transcripts(voices), fields)
        return prompts.dialogue(text, [voice.codes for voice in voices], fields)

    return make


def _fields(options: SpeechOptions) -> Fields:
    return Fields(instruction=options.instruction, language=options.language)


def _with_transcripts(voices: Sequence[Voice]) -> list[Recording]:
    for voice in voices:
        if not voice.transcript:
            raise UsageError(
                f"continuation needs the words of voice {voice.name!r}; add it again with "
                "`mosstalk voices add NAME CLIP --transcript TEXT`"
            )
    if not voices:
        raise UsageError("continuation needs a voice to go on from; give --voice NAME")
    return [Recording(voice.codes, voice.transcript or "") for voice in voices]
