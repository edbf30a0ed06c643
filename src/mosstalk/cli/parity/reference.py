"""`mosstalk parity reference`."""

import argparse
from pathlib import Path

from mosstalk.cli.parity.arguments import (
    REFERENCE_AUTO,
    add_model_arguments,
    add_tolerance,
    model_choice,
)
from mosstalk.parity.reference.run import run_reference
from mosstalk.parity.report import Report

SUMMARY = "this machine computes what the original PyTorch code computes"
DESCRIPTION = (
    "Compare prompts, hidden vectors, greedy frames and the codec with a dump that `mosstalk "
    "parity dump` made of the same checkpoint."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_model_arguments(parser)
    parser.add_argument(
        "--dump", required=True, type=Path, metavar="F", help=".npz, .json or a folder"
    )
    add_tolerance(parser, REFERENCE_AUTO)


def run(args: argparse.Namespace) -> Report:
    return run_reference(model_choice(args).open(), args.dump, args.tolerance)
