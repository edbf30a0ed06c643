"""`mosstalk parity streams`."""

import argparse

from mosstalk.cli.parity.arguments import add_model_arguments, add_tolerance, model_choice
from mosstalk.parity.report import Report
from mosstalk.parity.streams.run import MIN_STREAMS, Options, run_streams

SUMMARY = "requests that take turns get what each gets alone"
DESCRIPTION = (
    "Advance several requests frame by frame in shuffled order, start one late and cancel one, and "
    "compare each with the same request alone."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    defaults = Options()
    add_model_arguments(parser)
    add_tolerance(parser)
    parser.add_argument(
        "--streams", type=int, default=defaults.streams, help=f"at least {MIN_STREAMS}"
    )
    parser.add_argument("--frames", type=int, default=defaults.frames, help="of each request")
    parser.add_argument(
        "--seed", type=int, default=defaults.seed, help="of prompts, codes and turns"
    )


def run(args: argparse.Namespace) -> Report:
    options = Options(args.tolerance, args.streams, args.frames, args.seed)
    return run_streams(model_choice(args).open(), options)
