"""The command `mosstalk`: finds the sub-command, and says what went wrong in one line."""

import argparse
import io
import json
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from typing import Any, NoReturn

from mosstalk import __version__
from mosstalk.audio.target import write_failure
from mosstalk.cli.progress import tell
from mosstalk.errors import MosstalkError, OutputError, UsageError

# Each is a module of this package with `add_arguments(parser)` and `run(args) -> exit status`.
_COMMANDS = {
    "say": "speak a text into a file, a pipe or the loudspeaker",
    "design": "make voices from a description, to choose from",
    "voices": "add, list, show, play and remove voices",
    "serve": "speak for other programs, over HTTP",
    "convert": "write a model in another format or weight type",
    "inspect": "show what a model file is and what it holds",
    "pull": "download a model",
    "devices": "list what there is to compute on, and measure how fast it speaks a model",
    "parity": "prove on this machine that cached and full computation agree",
}
# What a shell reports for a program ended by SIGINT or SIGPIPE.
_INTERRUPTED = 130
_PIPE_CLOSED = 141


class _Parser(argparse.ArgumentParser):
    """Raises UsageError where argparse would print its usage and end the process.

    Flags are not completed: what works today goes on working when a flag is added.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(allow_abbrev=False, **options)

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}; see `{self.prog} --help`")


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; its exit status: 0, 1 for a failure, 2 for a wrong use, 130 interrupted."""
    arguments = sys.argv[1:] if argv is None else list(argv)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # names may hold any character
    try:
        status = _run_and_report(arguments)
        if sys.stdout is not None:
            sys.stdout.flush()  # here, where a failure can still be told
    except BrokenPipeError:
        _abandon_stdout()
        return _PIPE_CLOSED
    except OSError as error:
        _abandon_stdout()
        _tell_error(write_failure(error.filename or "standard output", error))
        return OutputError.exit_status
    return status


def kv_cache_parity() -> int:
    """`moss_tts_nano_kv_cache_parity`: the command `mosstalk parity kv-cache` by its own name."""
    return main(["parity", "kv-cache", *sys.argv[1:]])


def voicegen_backbone_parity() -> int:
    """`moss_voicegen_backbone_parity`: `mosstalk parity backbone` by its own name."""
    return main(["parity", "backbone", *sys.argv[1:]])


def _run_and_report(arguments: list[str]) -> int:
    try:
        return _run(arguments)
    except SystemExit as end:  # after --help and --version
        return int(end.code or 0)
    except KeyboardInterrupt:
        tell("mosstalk: interrupted")
        return _INTERRUPTED
    except MosstalkError as error:
        _tell_error(error)
        if "--json" in arguments:
            print(json.dumps({"error": _one_line(error), "kind": type(error).__name__}))
        return error.exit_status


def _run(arguments: list[str]) -> int:
    parser = _Parser(
        prog="mosstalk",
        description="Text to speech on your own machine with the MOSS models.",
    )
    parser.add_argument("--version", action="version", version=f"mosstalk {__version__}")
    commands = parser.add_subparsers(title="commands", dest="command", required=True)
    wanted = next((word for word in arguments if not word.startswith("-")), "")
    for name, summary in _COMMANDS.items():
        command = commands.add_parser(name, help=summary, description=f"{summary.capitalize()}.")
        if name == wanted:
            module = import_module(f"mosstalk.cli.{name}")  # the others' imports cost time
            module.add_arguments(command)
    args = parser.parse_args(arguments)
    status: int = module.run(args)
    return status


def _tell_error(error: MosstalkError) -> None:
    tell(f"mosstalk: error: {_one_line(error)}")


def _one_line(error: MosstalkError) -> str:
    return " ".join(str(error).split())


def _abandon_stdout() -> None:
    """Lead standard output to nowhere, so that what it still holds fails no more at exit."""
    with suppress(OSError, ValueError):
        broken = sys.stdout.fileno()
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, broken)
        os.close(nowhere)
