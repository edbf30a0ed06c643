# ruff: noqa: SIM905 (long word lists read better as text)
"""Step 4: the SentencePiece tokeniser, with the control ids of the published one.

Pieces are single characters: the voice's small model learns from letters to sounds, and a letter
is close to one 80 ms frame. Longer pieces exist only for the labels of the prompt's template.
Writes `tokenizer.model`.
"""

import argparse
import string
from pathlib import Path

import sentencepiece

CONTROLS = (
    "<|im_start|>,<|im_end|>,<|audio_start|>,<|audio_end|>,<|vision_pad|>,<|video_pad|>,"
    "<|vision_start|>,<|vision_end|>,<|audio_pad|>,<user_inst>,</user_inst>"
).split(",")
LABELS = "Reference(s): Instruction: Tokens: Quality: Event: Sound: Language: Text:".split()
CHARACTERS = string.ascii_letters + string.digits + ".,?!'-:;()\"&%$/"
NUM_BYTES, NUM_META = 256, 4  # <unk>, <s>, </s>, <pad>


def train(path: Path, sentences: Path) -> None:
    """Write a BPE model without merges; ids 0 to 14 are those of the published tokeniser."""
    vocab = NUM_META + len(CONTROLS) + len(LABELS) + NUM_BYTES + len(CHARACTERS) + 1
    sentencepiece.SentencePieceTrainer.train(
        input=str(sentences),
        model_prefix=str(path.with_suffix("")),
        model_type="bpe",
        vocab_size=vocab,
        max_sentencepiece_length=1,
        byte_fallback=True,
        normalization_rule_name="nmt_nfkc",
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
    for text in ("Hello, World!", "\n- Instruction:\nNone\n", "é 12"):
        print(tokenizer.encode(text), tokenizer.encode(text, out_type=str))
    print(tokenizer.vocab_size(), [tokenizer.id_to_piece(i) for i in range(24)])


if __name__ == "__main__":
    main()
