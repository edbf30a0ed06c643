"""`mosstalk parity kv-cache`."""

import argparse

from mosstalk.cli.parity.arguments import add_model_arguments, add_tolerance, model_choice
from mosstalk.parity.kv_cache.run import MIN_ROWS, Options, run_kv_cache
from mosstalk.parity.report import Report

SUMMARY = "decoding step by step over the caches equals a whole computation"
DESCRIPTION = (
    "Compute a random prompt and frames in portions, over reused caches and from the start, and "
    "compare."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    defaults = Options()
    add_model_arguments(parser)
    add_tolerance(parser)
    parser.add_argument(
        "--rows", type=int, default=defaults.rows, help=f"of the prompt, at least {MIN_ROWS}"
    )
    parser.add_argument("--frames", type=int, default=defaults.frames, help="to generate")
    parser.add_argument("--seed", type=int, default=defaults.seed, help="of prompt and frames")


def run(args: argparse.Namespace) -> Report:
    options = Options(args.tolerance, args.rows, args.frames, args.seed)
    return run_kv_cache(model_choice(args).open(), options)
