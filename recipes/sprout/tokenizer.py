# ruff: noqa: SIM905 (long word lists read better as text)
"""Step 4: the SentencePiece tokeniser, with the control ids of the published one.

Its rewriting rules (`pronounce.py`) turn words into phones, and its pieces are single phones: a
phone is one 80 ms frame or two. Longer pieces exist only for the labels of the prompt's template.
Writes `tokenizer.model`.
"""

import argparse
import re
from collections import Counter
from pathlib import Path

import pronounce
import sentencepiece

CONTROLS = (
    "<|im_start|>,<|im_end|>,<|audio_start|>,<|audio_end|>,<|vision_pad|>,<|video_pad|>,"
    "<|vision_start|>,<|vision_end|>,<|audio_pad|>,<user_inst>,</user_inst>"
).split(",")
LABELS = "Reference(s): Instruction: Tokens: Quality: Event: Sound: Language: Text:".split()
CHARACTERS = "".join(pronounce.PHONES) + ".,?!'-:;()\"$/"
NUM_BYTES, NUM_META = 256, 4  # <unk>, <s>, </s>, <pad>
WORDS = Path("/usr/share/dict/american-english")
NUM_SHOUTED = 3000  # most common words, known in capitals too


def write_rules(path: Path, sentences: Path) -> None:
    """How all words of the dictionary and of `sentences` sound, as SentencePiece's TSV."""
    text = sentences.read_text("utf-8").lower()
    common = [word for word, _ in Counter(re.findall(r"[a-z]+", text)).most_common()]
    listed = {word.lower() for word in WORDS.read_text("utf-8").split() if word.isascii()}
    known = {word for word in listed if word.isalpha()}
    rules = pronounce.rules(known | set(common), common[:NUM_SHOUTED])

    def code_points(characters: str) -> str:
        return " ".join(f"{ord(character):X}" for character in characters)

    lines = [f"{code_points(k)}\t{code_points(v)}\n" for k, v in sorted(rules.items())]
    path.write_text("".join(lines), "ascii")


def train(path: Path, sentences: Path) -> None:
    """Write a BPE model without merges; ids 0 to 14 are those of the published tokeniser."""
    vocab = NUM_META + len(CONTROLS) + len(LABELS) + NUM_BYTES + len(CHARACTERS) + 1
    rules = path.with_name("pronunciations.tsv")
    write_rules(rules, sentences)
    sentencepiece.SentencePieceTrainer.train(
        input=str(sentences),
        model_prefix=str(path.with_suffix("")),
        model_type="bpe",
        vocab_size=vocab,
        max_sentencepiece_length=1,
        byte_fallback=True,
        normalization_rule_tsv=str(rules),
        add_dummy_prefix=True,
        required_chars=CHARACTERS,
        character_coverage=1.0,
        pad_id=3,
        user_defined_symbols=CONTROLS + LABELS,
        minloglevel=2,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, required=True, help="folder of this recipe's files")
    args = parser.parse_args()
    path = args.work / "tokenizer.model"
    train(path, args.work / "sentences.txt")
    tokenizer = sentencepiece.SentencePieceProcessor(model_file=str(path))
    for text in ("Hello, World!", "\n- Instruction:\nNone\n", "é 12 I'm"):
        print(tokenizer.encode(text), tokenizer.encode(text, out_type=str))
    print(tokenizer.vocab_size(), [tokenizer.id_to_piece(i) for i in range(24)])


if __name__ == "__main__":
    main()
