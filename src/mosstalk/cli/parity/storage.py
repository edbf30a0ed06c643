"""`mosstalk parity storage`."""

import argparse

from mosstalk.cli.parity.arguments import add_model_arguments, model_choice
from mosstalk.parity.report import Report
from mosstalk.parity.storage.run import Options, run_storage

SUMMARY = "what f16, bf16 and q8_0 weights change, against f32"
DESCRIPTION = (
    "Run the model with its weights stored in each type under the same history of frames, and tell "
    "how far hidden vectors, logits, codes and samples are from those of f32."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    defaults = Options()
    add_model_arguments(parser, weight_type=False)
    parser.add_argument(
        "--rows", type=int, default=defaults.rows, help="of a random prompt, without a tokeniser"
    )
    parser.add_argument("--frames", type=int, default=defaults.frames, help="to generate")
    parser.add_argument("--seed", type=int, default=defaults.seed, help="of prompt and codes")


def run(args: argparse.Namespace) -> Report:
    return run_storage(model_choice(args).open(), Options(args.rows, args.frames, args.seed))
