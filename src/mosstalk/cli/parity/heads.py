"""`mosstalk parity heads`."""

import argparse
from pathlib import Path

from mosstalk.cli.parity.arguments import (
    REFERENCE_AUTO,
    add_model_arguments,
    add_tolerance,
    model_choice,
)
from mosstalk.parity.delay.heads import run_heads
from mosstalk.parity.report import Report

SUMMARY = "MOSS-VoiceGenerator's likeliest rows are the original's"
DESCRIPTION = (
    "Choose the likeliest rows after a prompt, and tell where they first differ from those of a "
    "file that `mosstalk parity dump` made, and by how much."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_model_arguments(parser)
    parser.add_argument(
        "--rows",
        required=True,
        type=Path,
        nargs="+",
        metavar="F",
        help="ref_rows.json, ref_rows_penalty.json of the dump",
    )
    parser.add_argument(
        "--prompt", type=Path, metavar="F", help="ref_prompt.json, for rows that hold no prompt"
    )
    add_tolerance(parser, REFERENCE_AUTO)


def run(args: argparse.Namespace) -> Report:
    return run_heads(model_choice(args).open(), args.rows, args.prompt, args.tolerance)
