# ruff: noqa: SIM905 (long word lists read better as text)
"""Step 1: sentences for the built-in voice, from free English text and from templates.

Sources (Debian packages): `fortunes` (sayings), `wordnet-base` (example sentences, WordNet
licence) and `wamerican` (word list, public domain), plus everyday sentences, numbers, dates and
times written by the templates below. No personal data. Writes `sentences.txt` (training) and
`held_out.txt` (never trained on), one sentence a line.
"""

import argparse
import random
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import everyday

FORTUNES = Path("/usr/share/games/fortunes")
WORDNET = Path("/usr/share/wordnet")
WORDS = Path("/usr/share/dict/american-english")
# Never trained on: the sentences of the package's own test, and those of `evaluate.py`.
KEPT_OUT = ("test_sentences.txt", "unseen_sentences.txt")

# One sentence: starts with a capital, only letters and simple punctuation, ends itself.
SENTENCE = re.compile(r"[A-Z][A-Za-z ,.'?!;:-]+[.!?]")
MIN_WORDS, MAX_WORDS = 2, 13

ONES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen "
    "fifteen sixteen seventeen eighteen nineteen"
).split()
TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
MONTHS = (
    "January February March April May June July August September October November December"
).split()
ORDINALS = (
    "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth "
    "thirteenth fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth twentieth"
).split()

# Everyday vocabulary of the templates: a slot's name is the key.
SLOTS: dict[str, list[str]] = {
    "who": (
        "I|you|we|they|he|she|my mother|your father|our teacher|the doctor|the old man|the girl|"
        "the boy|my friend|the driver|the children|his brother|her sister|the farmer|the cook|"
        "a young woman|the neighbors|everyone|nobody|the captain|the writer|my uncle|the nurse"
    ).split("|"),
    "past": (
        "saw|found|wanted|liked|bought|lost|needed|made|took|brought|opened|closed|watched|"
        "remembered|forgot|carried|cleaned|painted|fixed|broke|sold|kept|left|touched|followed"
    ).split("|"),
    "thing": (
        "the book|a letter|the red car|some bread|a cup of tea|the window|the door|a small dog|"
        "the big house|an apple|the blue bag|a new hat|the table|the clock|some water|the key|"
        "a long story|the picture|the old bridge|a good idea|the ticket|some flowers|a warm coat|"
        "the answer|the garden|a green bottle|the paper|the money|a glass of milk|the chair|"
        "the boat|a fresh egg|the yellow box|the lamp|a wooden spoon|the phone|the map|a bird"
    ).split("|"),
    "place": (
        "in the kitchen|at the station|near the river|in the city|on the hill|at school|"
        "behind the house|under the tree|by the sea|in the morning sun|at the market|"
        "on the train|in the garden|at home|across the street|in the rain|near the window|"
        "on the table|at the office|in the small town|over the bridge|along the road"
    ).split("|"),
    "when": (
        "yesterday|today|this morning|last night|last week|every day|after dinner|before lunch|"
        "on {day}|in {month}|two days ago|a long time ago|tomorrow morning|at night|at noon"
    ).split("|"),
    "adj": (
        "good|bad|big|small|old|young|warm|cold|happy|sad|quiet|loud|fast|slow|clean|dark|bright|"
        "heavy|soft|sweet|strong|tired|ready|late|early|empty|full|easy|hard|beautiful|strange|"
        "simple|open|closed|cheap|free|busy|safe|deep|wide|short|long|new|wet|dry|rich|poor"
    ).split("|"),
    "noun": (
        "water|house|day|night|friend|road|river|mountain|summer|winter|music|question|teacher|"
        "morning|evening|dinner|train|garden|horse|dog|cat|bird|ship|city|village|room|kitchen|"
        "story|song|picture|weather|wind|fire|snow|sun|moon|forest|field|bridge|market|school"
    ).split("|"),
    "verb": (
        "go|come|help|wait|listen|read|write|sing|walk|run|sleep|eat|drink|work|play|learn|"
        "speak|call|stay|leave|look|think|talk|begin|stop|swim|drive|cook|travel|rest"
    ).split("|"),
}

TEMPLATES = [
    "{who} {past} {thing}.",
    "{who} {past} {thing} {place}.",
    "{when}, {who} {past} {thing}.",
    "{who} {past} {thing} and {past} {thing}.",
    "the {noun} is {adj}.",
    "the {noun} was {adj} and {adj}.",
    "the {adj} {noun} {place} is very {adj}.",
    "is the {noun} {adj}?",
    "do you want to {verb} {place}?",
    "can we {verb} {when}?",
    "where is {thing}?",
    "please {verb} with me {when}.",
    "I would like to {verb} and {verb}.",
    "let us {verb} now.",
    "there is {thing} {place}.",
    "what a {adj} {noun}!",
    "they will {verb} {when}.",
    "we do not {verb} {place}.",
    "why did {who} leave {thing} {place}?",
    "{number} {noun}s are enough.",
    "the {noun} costs {number} dollars.",
    "I have {number} books and {number} pens.",
    "the train leaves at {clock}.",
    "the meeting starts at {clock}.",
    "it is {clock}.",
    "today is {day}.",
    "today is {day}, {month} {ordinal}.",
    "see you on {day} at {clock}.",
    "my birthday is in {month}.",
    "he was born on {month} {ordinal}, {year}.",
    "good morning, {who} can {verb} now.",
    "page {number}, line {number}.",
    "chapter {number}.",
    "the number is {number}.",
    "{digits}.",
    "call me at {digits}.",
]

GREETINGS = (
    "Hello.|Hello, world.|Hi.|Good morning.|Good afternoon.|Good evening.|Good night.|Goodbye.|"
    "Thank you.|Thank you very much.|Thanks a lot.|Please.|Yes.|No.|Maybe.|Of course.|"
    "You are welcome.|Excuse me.|I am sorry.|How are you?|I am fine.|How are you today?|"
    "What is your name?|My name is sprout.|Nice to meet you.|See you later.|See you tomorrow.|"
    "Welcome.|Welcome back.|Well done.|Good luck.|Have a nice day.|Take care.|Just a moment.|"
    "Please wait.|Are you ready?|I do not know.|What time is it?|Where are you?|Come in.|"
    "Happy birthday.|Happy new year.|Wake up.|Stop.|Go.|Help.|Okay.|Sure.|Never mind."
).split("|")


def number_words(n: int) -> str:
    """The cardinal `n` (0 to 9999) in English words."""
    if n < 20:
        return ONES[n]
    if n < 100:
        return TENS[n // 10 - 2] + (f" {ONES[n % 10]}" if n % 10 else "")
    if n < 1000:
        rest = f" {number_words(n % 100)}" if n % 100 else ""
        return f"{ONES[n // 100]} hundred{rest}"
    rest = f" {number_words(n % 1000)}" if n % 1000 else ""
    return f"{number_words(n // 1000)} thousand{rest}"


def _slot(name: str, slots: dict[str, list[str]], rng: random.Random) -> str:
    match name:
        case "day":
            return rng.choice(DAYS)
        case "month":
            return rng.choice(MONTHS)
        case "ordinal":
            return rng.choice(ORDINALS)
        case "number":
            n = rng.choice([rng.randrange(21), rng.randrange(100), rng.randrange(2000)])
            return str(n) if n < 100 and rng.random() < 0.3 else number_words(n)
        case "digits":
            return " ".join(ONES[rng.randrange(10)] for _ in range(rng.randrange(1, 8)))
        case "year":
            return f"{rng.choice(['nineteen', 'twenty'])} {number_words(rng.randrange(10, 100))}"
        case "clock":
            hour = ONES[rng.randrange(1, 13)]
            minute = rng.choice(
                ["o'clock", "thirty", "fifteen", number_words(rng.randrange(20, 60))]
            )
            return f"{hour} {minute}"
        case _:
            return rng.choice(slots[name])


def _fill(template: str, slots: dict[str, list[str]], rng: random.Random) -> str:
    while match := re.search(r"\{(\w+)\}", template):
        template = template[: match.start()] + _slot(match[1], slots, rng) + template[match.end() :]
    return template[0].upper() + template[1:]


def from_templates(count: int, rng: random.Random) -> Iterator[str]:
    yield from GREETINGS
    for n in range(101):
        yield number_words(n).capitalize() + "."
    yield from (f"{name}." for name in DAYS + MONTHS)
    for i in range(count):
        if i % 4 == 0:
            yield _fill(TEMPLATES[i // 4 % len(TEMPLATES)], SLOTS, rng)
        else:
            yield _fill(rng.choice(everyday.PATTERNS), everyday.SLOTS, rng)


def from_fortunes(folder: Path) -> Iterator[str]:
    for path in sorted(p for p in folder.iterdir() if p.is_file() and "." not in p.name):
        for fortune in path.read_text(encoding="utf-8", errors="replace").split("\n%\n"):
            text = re.sub(r"\n\s*--.*", "", fortune, flags=re.DOTALL)  # who said it
            for sentence in re.split(r"(?<=[.!?])\s+", re.sub(r"\s+", " ", text)):
                yield sentence.strip()


def from_wordnet(folder: Path, rng: random.Random) -> Iterator[str]:
    for part in ("adj", "adv", "noun", "verb"):
        for line in (folder / f"data.{part}").read_text("utf-8", errors="replace").splitlines():
            for example in re.findall(r'"([^"]+)"', line.partition("|")[2]):
                text = example.strip()
                if text and text[-1].isalpha():
                    text += "."
                if text and rng.random() < 0.8:
                    text = text[0].upper() + text[1:]
                yield text


def from_words(path: Path, known: Counter[str], rng: random.Random) -> Iterator[str]:
    """Single common words, and lists of dictionary words for their spelling."""
    yield from (f"{word.capitalize()}." for word, _ in known.most_common(2000))
    words = [w for w in path.read_text("utf-8").split() if re.fullmatch(r"[a-z]{3,12}", w)]
    for _ in range(2500):
        picked = ", ".join(rng.sample(words, rng.randrange(2, 5)))
        yield f"{picked[0].upper()}{picked[1:]}."


def simplest(sentences: list[str], known: Counter[str], count: int) -> list[str]:
    """The `count` sentences whose rarest word is the most common."""

    def commonness(text: str) -> int:
        return min((known[w] for w in re.findall(r"[a-z]{2,}", text.lower())), default=0)

    return sorted(sentences, key=commonness, reverse=True)[:count]


def is_speakable(text: str) -> bool:
    words = text.split()
    return (
        MIN_WORDS <= len(words) <= MAX_WORDS
        and re.fullmatch(r"[A-Za-z][A-Za-z ,.'?!;:-]+[.!?]", text) is not None
        and re.search(r"[A-Z]{2,}|\.\.|--|[,;:'][,;:]", text) is None
    )


def spoken_form(text: str) -> str:
    """`text` without case and punctuation: two that differ in no more sound alike."""
    return " ".join(re.findall(r"[a-z0-9']+", text.lower()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, required=True, help="folder of this recipe's files")
    parser.add_argument("--templates", type=int, default=14_000, help="sentences from templates")
    parser.add_argument("--free", type=int, default=12_000, help="free sentences, simplest first")
    parser.add_argument("--share", type=float, default=1.0, help="of all sentences to keep")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    rng = random.Random(args.seed)

    free = [s for s in from_fortunes(FORTUNES) if SENTENCE.fullmatch(s) and is_speakable(s)]
    free += [s for s in from_wordnet(WORDNET, rng) if is_speakable(s)]
    free = sorted(set(free))
    rng.shuffle(free)
    known = Counter(w for s in free for w in re.findall(r"[a-z]{2,}", s.lower()))
    held_out = free[:500]
    free = simplest(free[500:], known, args.free)
    made = list(from_templates(args.templates, rng)) + list(from_words(WORDS, known, rng))
    kept_out = {
        spoken_form(text)
        for name in KEPT_OUT
        for text in Path(__file__).with_name(name).read_text("utf-8").splitlines()
    }
    sentences = [s for s in dict.fromkeys(free + made) if spoken_form(s) not in kept_out]
    rng.shuffle(sentences)
    sentences = sentences[: round(len(sentences) * args.share)]
    seen = set(sentences)

    args.work.mkdir(parents=True, exist_ok=True)
    (args.work / "sentences.txt").write_text("\n".join(sentences) + "\n", "utf-8")
    held_out = [s for s in held_out if s not in seen]
    (args.work / "held_out.txt").write_text("\n".join(held_out) + "\n", "utf-8")
    print(f"{len(sentences)} sentences, {len(held_out)} held out")


if __name__ == "__main__":
    main()
