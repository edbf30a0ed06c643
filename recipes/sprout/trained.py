"""What the trainings have reached so far, with averaged weights."""

from pathlib import Path

import quantiser
import torch
from codec_model import Codec, CodecSize
from language_model import LanguageModel, ModelSize
from prompt import Prompts


def load_language_model(work: Path) -> LanguageModel:
    size = ModelSize(vocab=0)
    vocab = Prompts(work / "tokenizer.model", size.num_books, size.book_len).vocab
    model = LanguageModel(ModelSize(vocab=vocab))
    saved = torch.load(work / "language_model.pt", "cpu", weights_only=True)
    model.load_state_dict(saved["averaged"])
    return model.eval()


def load_codec(work: Path) -> Codec:
    """The codec with the halves trained so far."""
    codec = Codec(CodecSize())
    codec.quantizer.set_books(quantiser.load(work))
    for half in ("encoder", "decoder"):
        path = work / f"{half}.pt"
        if path.exists():
            saved = torch.load(path, "cpu", weights_only=True)
            codec.half(half).load_state_dict(saved["averaged"])
    return codec.eval()
