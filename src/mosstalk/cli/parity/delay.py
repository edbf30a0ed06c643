"""`mosstalk parity delay`."""

import argparse
from pathlib import Path

from mosstalk.parity.delay.run import run_delay
from mosstalk.parity.opening import ModelChoice
from mosstalk.parity.report import Report

SUMMARY = "MOSS-VoiceGenerator's rows are those of its specification; needs no model"
DESCRIPTION = (
    "Take runs of the delay pattern row by row: which text ids and codes may be drawn, when a "
    "frame is whole, what a repetition penalty counts."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--model", help="name, directory or .gguf file, for checks of its own ids")
    parser.add_argument(
        "--rows",
        type=Path,
        nargs="+",
        default=(),
        metavar="F",
        help="ref_rows.json of a dump, to be taken through the same steps",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(args: argparse.Namespace) -> Report:
    opened = ModelChoice(args.model).open() if args.model else None
    return run_delay(opened, args.rows)
