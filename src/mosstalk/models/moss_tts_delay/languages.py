"""Languages that the members speak, by code and by the English name that a prompt holds."""

from collections.abc import Mapping

from mosstalk.errors import UsageError

VOICE_GENERATOR_LANGUAGES = {"zh": "Chinese", "en": "English"}

TTSD_LANGUAGES = VOICE_GENERATOR_LANGUAGES | {
    "ar": "Arabic",
    "cs": "Czech",
    "da": "Danish",
    "de": "German",
    "el": "Greek",
    "es": "Spanish",
    "fa": "Persian (Farsi)",
    "fr": "French",
    "he": "Hebrew",
    "hu": "Hungarian",
    "it": "Italian",
    "ja": "Japanese",
    "ko": "Korean",
    "pl": "Polish",
    "pt": "Portuguese",
    "ru": "Russian",
    "sv": "Swedish",
    "tr": "Turkish",
}

TTS_LANGUAGES = TTSD_LANGUAGES | {
    "fi": "Finnish",
    "hi": "Hindi",
    "mk": "Macedonian",
    "ms": "Malay",
    "nl": "Dutch",
    "ro": "Romanian",
    "sw": "Swahili",
    "th": "Thai",
    "tl": "Tagalog",
    "vi": "Vietnamese",
    "yue": "Cantonese",
}


def language_name(language: str | None, languages: Mapping[str, str]) -> str | None:
    """The English name of a language that is given by its code or that name, in any case.

    What stands in brackets in a name may be left out. Raises UsageError for a language that is
    not among `languages`.
    """
    if language is None:
        return None
    asked = language.strip().casefold()
    for code, name in languages.items():
        if asked in (code, name.casefold(), name.casefold().partition(" (")[0]):
            return name
    choices = ", ".join(f"{code} ({name.partition(' (')[0]})" for code, name in languages.items())
    raise UsageError(f"unknown language {language!r}; this model speaks {choices}")
