"""`mosstalk parity backbone`."""

import argparse
from pathlib import Path

from mosstalk.cli.parity.arguments import (
    REFERENCE_AUTO,
    add_model_arguments,
    add_tolerance,
    model_choice,
)
from mosstalk.parity.delay.backbone import run_backbone
from mosstalk.parity.report import Report

SUMMARY = "MOSS-VoiceGenerator's prompt and hidden vectors are the original's"
DESCRIPTION = (
    "Build a prompt's rows from its text, compute their hidden vectors by one prefill and by a "
    "prefill and a step, and compare with files that `mosstalk parity dump` made."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_model_arguments(parser)
    parser.add_argument(
        "--prompt", required=True, type=Path, metavar="F", help="ref_prompt.json of the dump"
    )
    parser.add_argument(
        "--hidden", required=True, type=Path, metavar="F", help="ref_hidden.json of the dump"
    )
    add_tolerance(parser, REFERENCE_AUTO)


def run(args: argparse.Namespace) -> Report:
    return run_backbone(model_choice(args).open(), args.prompt, args.hidden, args.tolerance)
