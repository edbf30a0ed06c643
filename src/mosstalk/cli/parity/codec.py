"""`mosstalk parity codec`."""

import argparse

from mosstalk.cli.parity.arguments import (
    add_model_arguments,
    add_tolerance,
    list_of,
    model_choice,
)
from mosstalk.parity.codec.run import Options, run_codec
from mosstalk.parity.report import Report

SUMMARY = "decoding a stream equals decoding a whole, at any length"
DESCRIPTION = (
    "Decode random codes in chunks, whole and as the specification says it, encode beginnings, "
    "and compare."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    defaults = Options()
    add_model_arguments(parser, weight_type=False)
    add_tolerance(parser)
    parser.add_argument(
        "--frames",
        type=list_of(int),
        default=defaults.frames,
        help=f"lengths to compare at (default: {','.join(map(str, defaults.frames))})",
    )
    parser.add_argument("--seed", type=int, default=defaults.seed, help="of codes and sounds")


def run(args: argparse.Namespace) -> Report:
    options = Options(args.tolerance, args.frames, args.seed)
    return run_codec(model_choice(args).open(), options)
