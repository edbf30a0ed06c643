"""`mosstalk parity dump`."""

import argparse
from pathlib import Path

from mosstalk.parity.reference.request import DumpOptions
from mosstalk.parity.reference.write import write_dump
from mosstalk.parity.report import Report

SUMMARY = "record what the original PyTorch code computes"
DESCRIPTION = (
    "Run the original code that lies with a checkpoint, in float32 on the CPU, and write its "
    "answers for `mosstalk parity reference`. Needs PyTorch: pip install 'mosstalk[reference]', or "
    "'mosstalk[reference-delay]' for MOSS-VoiceGenerator and its family. The directory's Python "
    "files are run as they are."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    defaults = DumpOptions()
    parser.add_argument(
        "--reference",
        required=True,
        type=Path,
        metavar="DIR",
        help="the checkpoint as published, with its modeling_*.py",
    )
    parser.add_argument(
        "--codec", type=Path, metavar="DIR", help="of the codec, if not audio_tokenizer in DIR"
    )
    parser.add_argument(
        "--out",
        required=True,
        type=Path,
        metavar="F",
        help="the dump, named .npz or .json; of MOSS-VoiceGenerator's family a new folder",
    )
    parser.add_argument(
        "--text",
        action="append",
        dest="texts",
        metavar="TEXT",
        help="of a prompt; may be given again, but of MOSS-VoiceGenerator's family there is one",
    )
    parser.add_argument(
        "--instruction", metavar="TEXT", help="of the prompt: how it is spoken, in words"
    )
    parser.add_argument("--language", metavar="L", help="of the prompt, as a name: English")
    parser.add_argument(
        "--seed", type=int, default=defaults.seed, help="of random rows, codes and sound"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(args: argparse.Namespace) -> Report:
    texts = None if args.texts is None else tuple(args.texts)
    options = DumpOptions(texts, args.instruction, args.language, args.seed)
    return write_dump(args.reference, args.out, args.codec, options)
