"""Step 9: the voice as a checkpoint directory in the published layout.

Put beside the target first and renamed into place, so that a reader never sees half of it.
"""

import argparse
import json
import shutil
from pathlib import Path

import torch
from language_model import HEAD_DIM, ModelSize
from safetensors.torch import save_file
from trained import load_codec, load_language_model

# What suits this voice best: its frames are phones, which come back and must not be penalised.
AUDIO_SAMPLING = {"temperature": 0.3, "top_k": 25, "top_p": 0.9, "repetition_penalty": 1.0}
MAX_POSITIONS = 2048


def model_config(size: ModelSize) -> dict[str, object]:
    gpt2 = {
        "activation_function": "gelu_new",
        "attn_pdrop": 0.0,
        "bos_token_id": 1,
        "embd_pdrop": 0.0,
        "eos_token_id": 2,
        "initializer_range": 0.02,
        "layer_norm_epsilon": 1e-05,
        "model_type": "gpt2",
        "n_ctx": MAX_POSITIONS,
        "n_embd": size.width,
        "n_head": size.width // HEAD_DIM,
        "n_inner": 4 * size.width,
        "n_layer": size.layers,
        "n_positions": MAX_POSITIONS,
        "pad_token_id": 3,
        "position_embedding_type": "rope",
        "reorder_and_upcast_attn": False,
        "resid_pdrop": 0.0,
        "rope_base": 10000.0,
        "scale_attn_by_inverse_layer_idx": False,
        "scale_attn_weights": True,
        "use_cache": True,
        "vocab_size": size.vocab,
    }
    return {
        "architectures": ["MossTTSNanoForCausalLM"],
        "attn_implementation": "sdpa",
        "audio_assistant_slot_token_id": 9,
        "audio_codebook_sizes": [size.book_len] * size.num_books,
        "audio_end_token_id": 7,
        "audio_pad_token_id": size.book_len,
        "audio_sampling": AUDIO_SAMPLING,
        "audio_start_token_id": 6,
        "audio_tokenizer_sample_rate": 16000,
        "audio_tokenizer_type": "moss-audio-tokenizer-nano",
        "audio_user_slot_token_id": 8,
        "audio_vocab_size": size.book_len,
        "dtype": "float32",
        "gpt2_config": gpt2,
        "hidden_size": size.width,
        "im_end_token_id": 5,
        "im_start_token_id": 4,
        "initializer_range": 0.02,
        "local_transformer_attn_implementation": "sdpa",
        "local_transformer_layers": size.local_layers,
        "max_position_embeddings": MAX_POSITIONS,
        "model_architecture": "global_local_transformer",
        "model_type": "moss_tts_nano",
        "n_vq": size.num_books,
        "needs_voice": False,
        "pad_token_id": 3,
        "tokenizer_use_fast": False,
        "vocab_size": size.vocab,
    }


def write_part(folder: Path, config: dict[str, object], module: torch.nn.Module) -> int:
    """config.json and model.safetensors; returns the number of parameters."""
    folder.mkdir(parents=True)
    text = json.dumps(config, indent=1, sort_keys=True)
    (folder / "config.json").write_text(text + "\n", "utf-8")
    weights = {name: w.detach().contiguous() for name, w in module.state_dict().items()}
    save_file(weights, folder / "model.safetensors")
    return sum(w.numel() for w in weights.values())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, required=True, help="folder of this recipe's files")
    args = parser.parse_args()
    model, codec = load_language_model(args.work), load_codec(args.work)
    out, part, old = (args.work / name for name in ("export", "export.part", "export.old"))
    shutil.rmtree(part, ignore_errors=True)
    count = write_part(part, model_config(model.size), model)
    count += write_part(part / "audio_tokenizer", codec.config(), codec)
    shutil.copy(args.work / "tokenizer.model", part)
    shutil.rmtree(old, ignore_errors=True)
    if out.exists():
        out.rename(old)
    part.rename(out)
    print(f"{count:,} parameters, about {count * 34 / 32 / 1e6:.1f} MB as q8_0")


if __name__ == "__main__":
    main()
