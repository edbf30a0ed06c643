"""`mosstalk parity`: proofs that this machine computes what it should."""

import argparse
from importlib import import_module
from types import ModuleType

from mosstalk.parity.document.full_report import FullReport
from mosstalk.parity.report import Report

# Each is a module of this package with SUMMARY, DESCRIPTION, `add_arguments(parser)` and
# `run(args) -> Report`.
_CHECKS = {
    "all": "all",
    "kv-cache": "kv_cache",
    "codec": "codec",
    "streams": "streams",
    "storage": "storage",
    "dump": "dump",
    "reference": "reference",
    "backbone": "backbone",
    "heads": "heads",
    "delay": "delay",
}
_STATUS = "Exit status: 0 passed, 1 failed, 2 wrong usage."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `mosstalk parity` and its commands."""
    commands = parser.add_subparsers(dest="parity_command", metavar="CHECK", required=True)
    for name in _CHECKS:
        module = _module(name)
        command = commands.add_parser(
            name, help=module.SUMMARY, description=f"{module.DESCRIPTION} {_STATUS}"
        )
        module.add_arguments(command)


def run(args: argparse.Namespace) -> int:
    """Print the report; 0 if all checks passed, else 1. Raises MosstalkError."""
    report: Report | FullReport = _module(args.parity_command).run(args)
    print(report.as_json() if args.json else report.as_text())
    return 0 if report.passed else 1


def _module(name: str) -> ModuleType:
    return import_module(f"mosstalk.cli.parity.{_CHECKS[name]}")
