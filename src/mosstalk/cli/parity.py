"""`mosstalk parity`: proofs that this machine computes what it should."""

import argparse

from mosstalk.compute.backend import BACKENDS
from mosstalk.parity.kv_cache.run import MIN_ROWS, Options, run_kv_cache
from mosstalk.parity.report import Report


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `mosstalk parity` and its commands."""
    commands = parser.add_subparsers(dest="parity_command", metavar="CHECK", required=True)
    kv_cache = commands.add_parser(
        "kv-cache",
        help="decoding step by step over the caches equals a whole computation",
        description="Compute a random prompt and frames in portions, over reused caches and from "
        "the start, and compare. Exit status: 0 equal, 1 not, 2 wrong usage.",
    )
    _add_kv_cache(kv_cache)


def run(args: argparse.Namespace) -> int:
    """Print the report; 0 if all checks passed, else 1. Raises MosstalkError."""
    report = _RUN[args.parity_command](args)
    print(report.as_json() if args.json else report.as_text())
    return 0 if report.passed else 1


def _add_kv_cache(parser: argparse.ArgumentParser) -> None:
    defaults = Options(model="")
    parser.add_argument("--model", required=True, help="model name, directory or .gguf file")
    parser.add_argument("--codec", help="directory of the codec; not needed")
    parser.add_argument("--backend", default=defaults.backend, help=" or ".join(BACKENDS))
    parser.add_argument("--threads", type=int, default=defaults.threads, help="0: automatic")
    parser.add_argument(
        "--weight-type", default=defaults.weight_type, help="native, f32, f16, bf16 or q8_0"
    )
    parser.add_argument(
        "--tolerance",
        type=_tolerance,
        default=None,
        metavar="auto|FLOAT",
        help="relative to the largest value; auto: 0 on cpu (the same bits)",
    )
    parser.add_argument(
        "--rows", type=int, default=defaults.rows, help=f"of the prompt, at least {MIN_ROWS}"
    )
    parser.add_argument("--frames", type=int, default=defaults.frames, help="to generate")
    parser.add_argument("--seed", type=int, default=defaults.seed, help="of prompt and frames")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def _tolerance(text: str) -> float | None:
    return None if text == "auto" else float(text)


def _run_kv_cache(args: argparse.Namespace) -> Report:
    options = Options(
        model=args.model,
        codec=args.codec,
        backend=args.backend,
        threads=args.threads,
        weight_type=args.weight_type,
        tolerance=args.tolerance,
        rows=args.rows,
        frames=args.frames,
        seed=args.seed,
    )
    return run_kv_cache(options)


_RUN = {"kv-cache": _run_kv_cache}
