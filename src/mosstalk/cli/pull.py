"""`mosstalk pull`: download a model once, to use it without a network from then on."""

import argparse
import json

from mosstalk.checkpoint.hub import HUB_MODELS, pull


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `mosstalk pull`."""
    parser.add_argument("name", metavar="NAME", help=f"one of {', '.join(HUB_MODELS)}")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(args: argparse.Namespace) -> int:
    """Download and check a model, and say where it lies; raises MosstalkError."""
    model, codec = pull(args.name)
    if args.json:
        print(json.dumps({"name": args.name, "model": str(model), "codec": str(codec)}))
    else:
        print(f"{args.name} is ready\n  model  {model}\n  codec  {codec}")
    return 0
