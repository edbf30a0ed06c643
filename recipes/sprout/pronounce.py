"""How words sound, as rewriting rules of the tokeniser.

SentencePiece replaces the longest rule that begins at a character before it cuts text into pieces.
With a rule for every common word the tokeniser itself turns letters into phones, and the small
model need not learn English spelling. A word without a rule is read piece by piece: the longest
known word that it begins with, then the rest; every letter has a rule too.
"""

import ctypes as c
import string
import unicodedata
from collections.abc import Iterable, Iterator

from sentences import number_words

# flite's phone and its character here; a stressed vowel is the capital letter.
_CONSONANTS = dict(zip("bdfgklmnprstvwzy", "bdfgklmnprstvwzy", strict=True))
_CONSONANTS |= {"ch": "c", "jh": "j", "hh": "h", "sh": "ʃ", "zh": "ʒ"}
_CONSONANTS |= {"th": "θ", "dh": "ð", "ng": "ŋ"}
_VOWELS = {"aa": "a", "ae": "æ", "ah": "ʌ", "ao": "ɔ", "aw": "œ", "ax": "ə", "ay": "ɑ", "eh": "e"}
_VOWELS |= {"er": "ɐ", "ey": "ɛ", "ih": "ɪ", "iy": "i", "ow": "o", "oy": "ø", "uh": "ʊ", "uw": "u"}
PHONES = {symbol: name for name, symbol in (_CONSONANTS | _VOWELS).items()}
PHONES |= {symbol.upper(): name for name, symbol in _VOWELS.items()}

# Readings of what no word's rule covers.
_SPELLINGS = (
    "a=æ b=b c=k d=d e=e f=f g=g h=h i=ɪ j=j k=k l=l m=m n=n o=a p=p q=k r=r s=s t=t u=ʌ v=v w=w "
    "x=ks y=i z=z ai=ɛ ar=ar au=ɔ aw=ɔ ay=ɛ bb=b cc=k ce=s ch=c ck=k ci=sɪ dd=d ea=i ed=d ee=i "
    "er=ɐ ew=u ey=i ff=f ge=j gg=g igh=ɑ ing=ɪŋ ir=ɐ kn=n le=əl ll=l mm=m ng=ŋ nn=n oa=o oi=ø oo=u "
    "or=ɔr ou=œ ow=o oy=ø ph=f pp=p qu=kw rr=r sch=sk sh=ʃ sion=ʒən ss=s th=θ tion=ʃən tt=t "
    "ur=ɐ wh=w wr=r zz=z 's=z 'll=əl 've=v 're=ɐ 'd=d 'm=m &=ænd %=pɐsEnt"
)
_LIKE_ASCII = {"\u2018": "'", "\u2019": "'", "\u201c": '"', "\u201d": '"', "\u2026": "..."}
_LIKE_ASCII |= {"\u2013": "-", "\u2014": "-", "\u00a0": " "}
_ENDS_OF_WORD = " .,?!"


class Lexicon:
    """flite's American dictionary, with its letter-to-sound rules for words not in it."""

    def __init__(self) -> None:
        self._lib = lib = c.CDLL("libflite.so.1", mode=c.RTLD_GLOBAL)
        c.CDLL("libflite_usenglish.so.1", mode=c.RTLD_GLOBAL)
        words = c.CDLL("libflite_cmulex.so.1", mode=c.RTLD_GLOBAL)
        lib.lex_lookup.argtypes = [c.c_void_p, c.c_char_p, c.c_char_p, c.c_void_p]
        lib.val_car.argtypes = lib.val_cdr.argtypes = lib.val_string.argtypes = [c.c_void_p]
        lib.lex_lookup.restype = lib.val_car.restype = lib.val_cdr.restype = c.c_void_p
        lib.val_string.restype = c.c_char_p
        lib.flite_init()
        words.cmu_lex_init.restype = c.c_void_p
        self._words = c.c_void_p(words.cmu_lex_init())

    def symbols(self, word: str, part_of_speech: str | None = None) -> str:
        """The phones of a word in lower case, a character each."""
        lib, found = self._lib, []
        pos = part_of_speech.encode() if part_of_speech else None
        item = lib.lex_lookup(self._words, word.encode("ascii"), pos, None)
        while item:
            found.append(_symbol(lib.val_string(lib.val_car(item)).decode()))
            item = lib.val_cdr(item)
        return "".join(found)


def _symbol(phone: str) -> str:
    name = phone.rstrip("01")
    symbol = (_CONSONANTS | _VOWELS)[name]
    return symbol.upper() if name in _VOWELS and phone.endswith("1") else symbol


def rules(words: Iterable[str], shouted: Iterable[str]) -> dict[str, str]:
    """What the tokeniser replaces by what.

    `words` are in lower case, and known with a capital letter too; those of `shouted` also in
    capitals.
    """
    lexicon = Lexicon()
    found: dict[str, str] = {}
    for word in words:
        found[word] = found[word.capitalize()] = lexicon.symbols(word)
    found |= {word.upper(): found[word] for word in shouted}
    for spelling in _SPELLINGS.split():
        letters, _, symbols = spelling.partition("=")
        found[letters] = found[letters.capitalize()] = symbols
    found |= _folded(found)
    names = {letter: lexicon.symbols(letter, "nn") for letter in string.ascii_lowercase}
    for a, name in names.items():
        found |= {a.upper() + end: name + end for end in _ENDS_OF_WORD}
        found |= {(a + b).upper(): name + names[b] for b in names}
    found |= {a + end: lexicon.symbols("a") + end for a in "aA" for end in _ENDS_OF_WORD}
    found["I"] = names["i"]
    found |= _numbers(lexicon)
    return {letters: symbols for letters, symbols in found.items() if letters != symbols}


def _numbers(lexicon: Lexicon) -> Iterable[tuple[str, str]]:
    def spoken(text: str) -> str:
        return " ".join(map(lexicon.symbols, text.split()))

    for n in [*range(1000), *range(1000, 10_000, 1000), *range(2001, 2100)]:
        yield str(n), spoken(number_words(n))
    for century in range(11, 20):
        yield f"{century}00", spoken(f"{number_words(century)} hundred")
        for year in range(1, 100):
            after = f"oh {number_words(year)}" if year < 10 else number_words(year)
            yield f"{century}{year:02d}", spoken(f"{number_words(century)} {after}")


def _folded(symbols: dict[str, str]) -> Iterator[tuple[str, str]]:
    """Typographic signs and accented letters, read as their nearest in ASCII."""
    yield from _LIKE_ASCII.items()
    for code in [*range(0xC0, 0x250), *range(0x1E00, 0x1F00), *range(0xFF01, 0xFF5F)]:
        near = unicodedata.normalize("NFKD", chr(code))[0]
        if near.isascii():
            yield chr(code), symbols.get(near, near)
    yield from ((chr(code), "") for code in range(0x300, 0x370))  # combining accents
