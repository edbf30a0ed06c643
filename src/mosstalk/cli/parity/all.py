"""`mosstalk parity all`."""

import argparse
from pathlib import Path

from mosstalk.cli.parity.arguments import add_model_arguments, model_choice
from mosstalk.cli.progress import tell
from mosstalk.parity.document.full_report import FullReport
from mosstalk.parity.everything import run_all, write_documents

SUMMARY = "every check that applies to the model, and a report with plots"
DESCRIPTION = (
    "Run every check that applies to the model, kv-cache in every weight type, and write parity.md "
    "and parity.html."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_model_arguments(parser, weight_type=False)
    parser.add_argument(
        "--dump", type=Path, metavar="F", help="of `mosstalk parity dump`, to compare with"
    )
    parser.add_argument(
        "--out", type=Path, default=Path("parity-report"), help="folder of the report"
    )


def run(args: argparse.Namespace) -> FullReport:
    full = run_all(model_choice(args), args.dump, lambda what: tell(f"running {what}"))
    return write_documents(full, args.out)
