"""Which language each part of a text is in: by its script, and for the Latin one by its commonest
words.
"""

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from dataclasses import dataclass

_SCRIPTS = {
    "latin": "A-Za-z\u00aa\u00ba\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u024f\u1e00-\u1eff",
    "kana": "\u3041-\u309f\u30a1-\u30ff\u31f0-\u31ff",
    "han": "\u3005\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff",
    "hangul": "\u1100-\u11ff\uac00-\ud7af",
    "cyrillic": "\u0400-\u04ff",
    "greek": "\u0370-\u03ff\u1f00-\u1fff",
    "hebrew": "\u0590-\u05ff",
    "arabic": "\u0620-\u065f\u066e-\u06d3\u0750-\u077f",
}
_RUN = re.compile("|".join(f"(?P<{name}>[{chars}]+)" for name, chars in _SCRIPTS.items()))
_UNSPACED = ("han", "kana", "hangul")
_WEIGHTS = {"han": 3, "kana": 2, "hangul": 2}  # a character is as much as so many letters
_OF_SCRIPT = {"hangul": "ko", "cyrillic": "ru", "greek": "el", "hebrew": "he", "kana": "ja"}
_WRITTEN_IN = {
    "zh": ("han",),
    "ja": ("han", "kana"),
    "ko": ("hangul",),
    "ru": ("cyrillic",),
    "el": ("greek",),
    "he": ("hebrew",),
    "ar": ("arabic",),
    "fa": ("arabic",),
}
_PERSIAN = re.compile("[\u067e\u0686\u0698\u06a9\u06af\u06cc]")

# Words that one meets in most sentences, and letters that others hardly have.
_COMMON = {
    "en": "the of and to in is it's that for was on are with as his they be at this have from or "
    "you i not by but what all were we when your can there an it's i'm there's march may june am "
    "my me he she will would has had more about which their out one said call page please hello",
    "de": "der die das und ist nicht ein eine ich zu den mit von auf für im dem sich auch es an "
    "wird bei einen um uhr kostet am nach aus wir sind war hat oder dezember märz januar mai juni",
    "fr": "le la les des et est une un du pour que dans qui il elle sur pas au avec ce sont à "
    "rendez-vous c'est nous vous à janvier février mars avril juin juillet août décembre",
    "es": "el la los las y es un una que de en por con para se del al está son cuesta no su más "
    "como pero muy enero febrero marzo abril mayo junio julio agosto diciembre",
    "it": "il lo la gli le e è un una di che per con non del della sono alle al nel costa anche "
    "più ma si gennaio febbraio maggio giugno luglio dicembre totale",
    "pt": "o a os as e é um uma de que para com não do da em no na custa são mais por às foi "
    "janeiro fevereiro março maio junho julho dezembro",
    "pl": "i w na z się nie jest to do o że od za po jak co są ale kosztuje był przez stycznia "
    "lutego marca kwietnia maja czerwca lipca sierpnia września grudnia",
    "cs": "a v na se je že s z do o to i jako za by ale po co stojí jsou byl ledna února března "
    "dubna května června července srpna října prosince",
    "da": "og i er det at en den til af på som med ikke de der et koster har fra klokken jeg vi "
    "januar februar marts maj juni juli oktober",
    "sv": "och i är det att en som på av för med inte den till ett kostar har från klockan jag vi "
    "januari februari mars maj juni juli augusti oktober",
    "hu": "a az és egy is nem hogy van volt ez meg el csak ára kerül óra de már ha január február "
    "március április május június július augusztus",
    "tr": "ve bir bu da de için ile çok ne daha gibi var olan saat fiyatı tarih ocak şubat mart "
    "nisan mayıs haziran temmuz ağustos eylül ekim kasım aralık",
}
_LETTERS = {
    "de": "ßäöü",
    "fr": "çêëîïœùû",
    "es": "ñ¿¡",
    "it": "òìù",
    "pt": "ãõç",
    "pl": "łżźśćńąę",
    "cs": "ěřůčšžý",
    "da": "øæå",
    "sv": "åäö",
    "hu": "őűáéíóöúü",
    "tr": "ğışçİ",
}
_LATIN = {code: frozenset(words.split()) for code, words in _COMMON.items()}
_WORD = re.compile(rf"[{_SCRIPTS['latin']}]+(?:['’-][{_SCRIPTS['latin']}]+)*")
_LETTER_WEIGHT = 0.6
_SHORT_WEIGHT = 0.4  # of a word of one letter
_LEAST = 0.6  # what is hardly anything is English
_FEW_WORDS = 3  # in other scripts than that of the given language: units and names
_ADDRESS = re.compile(r"://|@|www\.")
_NO_WORDS = re.compile(r"\[S\d+\]|[<&][^<>;\s]{1,40}[>;]")


@dataclass(frozen=True, slots=True)
class Run:
    """Letters of one script side by side, and their language."""

    start: int
    end: int
    script: str
    language: str


class LanguageMap:
    """The languages of a text.

    Args:
        text: the source.
        language: code of the language that it is mostly in, where that is known.
    """

    def __init__(self, text: str, language: str | None = None) -> None:
        self._given = language
        self._latin = self._latin_language(text, None)
        has_kana = _RUN_OF["kana"].search(text) is not None
        self._han = language if language in ("zh", "ja") else "ja" if has_kana else "zh"
        persian = language == "fa" or (language != "ar" and _PERSIAN.search(text) is not None)
        self._arabic = "fa" if persian else "ar"
        self._runs: list[Run] = []
        self._line_starts: list[int] = []
        self._line_languages: list[str] = []
        whole = self._main(list(_RUN.finditer(text)), self._latin, language or "en")
        start = 0
        for line in text.splitlines(keepends=True):
            self._add_line(line, start, whole)
            start += len(line)
        self.default = whole
        self._starts = [run.start for run in self._runs]
        self._ends = [run.end for run in self._runs]

    @property
    def codes(self) -> tuple[str, ...]:
        """All languages that something in the text may be read in."""
        found = [self.default, *self._line_languages, *(run.language for run in self._runs)]
        return tuple(dict.fromkeys(found))

    def at(self, start: int, end: int) -> str:
        """The language that the signs from `start` to `end` are read in.

        That of the letters on both sides, or of those of a script without spaces that they touch,
        or else that of the line.
        """
        line = bisect_right(self._line_starts, start) - 1
        if line < 0:
            return self.default
        stop = self._line_starts[line + 1] if line + 1 < len(self._line_starts) else None
        before, after = bisect_right(self._ends, start) - 1, bisect_left(self._starts, end)
        left = self._runs[before] if before >= 0 else None
        right = self._runs[after] if after < len(self._runs) else None
        if left is not None and left.start < self._line_starts[line]:
            left = None
        if right is not None and stop is not None and right.start >= stop:
            right = None
        if left is not None and left.end == start and left.script in _UNSPACED:
            return left.language
        if right is not None and right.start == end and right.script in _UNSPACED:
            return right.language
        if left is not None and right is not None and left.language == right.language:
            return left.language
        return self._line_languages[line]

    def _add_line(self, line: str, start: int, whole: str) -> None:
        latin = self._latin_language(line, self._latin)
        matches = list(_RUN.finditer(line))
        for match in matches:
            script = match.lastgroup or ""
            language = self._of(script, match.group(), latin)
            if language is not None:
                self._runs.append(Run(start + match.start(), start + match.end(), script, language))
        self._line_starts.append(start)
        self._line_languages.append(self._main(matches, latin, whole))

    def _of(self, script: str, letters: str, latin: str) -> str | None:
        if script == "latin":
            return latin
        if script == "han":
            return self._han
        if script == "arabic":
            return self._arabic
        if script == "greek" and len(letters) < 2 and self._given != "el":
            return None  # a sign, as in formulas
        return _OF_SCRIPT[script]

    def _main(self, matches: list[re.Match[str]], latin: str, fallback: str) -> str:
        """The given language where it can be, else the one with most letters."""
        weights: Counter[str] = Counter()
        for match in matches:
            script = match.lastgroup or ""
            language = self._of(script, match.group(), latin)
            if language is not None:
                weights[language] += len(match.group()) * _WEIGHTS.get(script, 1)
        few = sum(len(match.group()) > 1 for match in matches) < _FEW_WORDS
        if not weights or (self._given is not None and (few or weights[self._given])):
            return self._given or fallback
        return max(weights, key=lambda code: weights[code])

    def _latin_language(self, text: str, whole: str | None) -> str:
        if self._given in _LATIN:
            return self._given
        if self._given is not None:
            return "en"
        text = " ".join(word for word in text.split() if not _ADDRESS.search(word))
        text = _NO_WORDS.sub(" ", text)
        words = [word.casefold().replace("’", "'") for word in _WORD.findall(text)]
        letters = Counter(text.casefold())
        scores = {
            code: sum((1 if len(word) > 1 else _SHORT_WEIGHT) for word in words if word in common)
            + _LETTER_WEIGHT * sum(letters[letter] for letter in _LETTERS.get(code, ""))
            for code, common in _LATIN.items()
        }
        best = max(scores, key=lambda code: scores[code])
        if scores[best] >= _LEAST and (whole is None or scores[best] > scores[whole]):
            return best
        return whole or "en"


_RUN_OF = {name: re.compile(f"[{chars}]") for name, chars in _SCRIPTS.items()}
