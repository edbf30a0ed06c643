"""`mosstalk serve`: speech over HTTP."""

import argparse
import importlib.util
import os
from pathlib import Path

from mosstalk.cli.model_arguments import add_model_arguments, open_speaker
from mosstalk.errors import UsageError
from mosstalk.scheduler import Scheduler
from mosstalk.voices import VoiceStore

_KEY_VARIABLE = "MOSSTALK_API_KEY"
_LIBRARIES = (
    "av",
    "multipart",
    "prometheus_client",
    "pydantic",
    "starlette",
    "uvicorn",
    "websockets",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `mosstalk serve`."""
    address = parser.add_argument_group("address")
    address.add_argument("--host", default="127.0.0.1", metavar="H", help="default: 127.0.0.1")
    address.add_argument(
        "--port", type=int, default=8080, metavar="N", help="default: 8080; 0: any that is free"
    )
    address.add_argument(
        "--api-key",
        metavar="KEY",
        help=f"that requests must bring; needed unless the host is this machine's own "
        f"(default: ${_KEY_VARIABLE})",
    )
    address.add_argument(
        "--allow-origin",
        action="append",
        default=[],
        metavar="URL",
        help="origin of web pages that may use the server; may be given again (default: none)",
    )
    work = parser.add_argument_group("work")
    work.add_argument(
        "--max-streams", type=int, default=8, metavar="N", help="texts at a time (default: 8)"
    )
    work.add_argument(
        "--max-queue", type=int, default=64, metavar="N", help="texts that wait (default: 64)"
    )
    work.add_argument(
        "--time-limit",
        type=float,
        default=600.0,
        metavar="S",
        help="seconds for a text, waiting included (default: 600)",
    )
    work.add_argument(
        "--voices", type=Path, metavar="DIR", help="folder of voices (default: as `mosstalk say`)"
    )
    add_model_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Serve until told to stop; raises MosstalkError."""
    missing = [name for name in _LIBRARIES if importlib.util.find_spec(name) is None]
    if missing:
        raise UsageError(
            f"the server needs libraries that are not here ({', '.join(missing)}); "
            "install them with `pip install 'mosstalk[server]'`"
        )
    from mosstalk.server.run import listen, run_server
    from mosstalk.server.service import Service
    from mosstalk.server.settings import ServerSettings

    settings = ServerSettings(
        host=args.host,
        port=args.port,
        api_key=args.api_key or os.environ.get(_KEY_VARIABLE) or None,
        origins=tuple(args.allow_origin),
    )
    with listen(settings) as listener:  # before the model is loaded: an address may be taken
        speaker = open_speaker(args)
        if args.voices is not None:
            speaker.voices = VoiceStore(args.voices)
        scheduler = Scheduler(speaker, args.max_streams, args.max_queue, args.time_limit)
        run_server(Service(speaker, scheduler, args.model), settings, listener)
    return 0
