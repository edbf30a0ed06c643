"""From a text as it was given to the stretches of words that a model speaks."""

from collections.abc import Callable

from mosstalk.errors import UsageError
from mosstalk.text.normalise import normalise
from mosstalk.text.normalise.dictionary import Dictionary
from mosstalk.text.pauses import Stretch, split_at_pauses

# Takes out what must not reach a prompt, and says what it was.
Clean = Callable[[str], tuple[str, tuple[str, ...]]]


def prepare(
    text: str, clean: Clean, language: str | None, dictionary: Dictionary | None
) -> tuple[list[Stretch], tuple[str, ...]]:
    """The words of `text`, divided at its pauses, and warnings about what is not spoken.

    Special tokens go first and once more at the end, as reading might form one.

    Raises:
        UsageError: nothing in the text can be spoken, an unknown language, or markup that is not
            understood (see split_at_pauses).
    """
    cleaned, warnings = clean(text)
    found = list(warnings)
    spoken: list[Stretch] = []
    for stretch in split_at_pauses(cleaned):
        read = normalise(stretch.text, language, dictionary)
        words, more = clean(read.text)
        found += [*read.warnings, *more]
        if words.strip():
            spoken.append(Stretch(words, stretch.pause_seconds))
        elif spoken:
            last = spoken[-1]
            spoken[-1] = Stretch(last.text, last.pause_seconds + stretch.pause_seconds)
    found = list(dict.fromkeys(found))
    if not spoken:
        why = f" ({'; '.join(found)})" if found else ""
        raise UsageError(f"there is no text to speak{why}; give some words")
    return spoken, tuple(found)
