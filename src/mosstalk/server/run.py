"""Runs a server until it is told to stop."""

import logging
import os
import signal
import socket
import sys
from types import FrameType

import uvicorn

from mosstalk.errors import UsageError
from mosstalk.server.app import build_app
from mosstalk.server.log import LOGGER, JsonLines
from mosstalk.server.service import Service
from mosstalk.server.settings import ServerSettings

_GRACE_SECONDS = 30  # for streams to finish, before they are cancelled
_MAX_MESSAGE_BYTES = 2**18  # of a WebSocket: 50,000 characters of any script


def listen(settings: ServerSettings) -> socket.socket:
    """A socket bound to the server's address; raises UsageError if that cannot be had."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        if os.name == "posix":  # a port that was just given up can be taken at once
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((settings.host, settings.port))
    except OSError as error:
        listener.close()
        raise UsageError(
            f"cannot listen on {settings.host} port {settings.port} ({error.strerror}); "
            "give another --host or --port"
        ) from error
    return listener


def run_server(service: Service, settings: ServerSettings, listener: socket.socket) -> None:
    """Serve until SIGINT or SIGTERM; requests that are under way then have time to finish."""
    _log_to_stderr()
    _Server(server_config(service, settings)).run(sockets=[listener])
    LOGGER.info("stopped")


def server_config(service: Service, settings: ServerSettings) -> uvicorn.Config:
    """uvicorn's configuration: its own logs go where ours go, and there are no others."""
    return uvicorn.Config(
        build_app(service, settings),
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=False,
        proxy_headers=False,
        ws="websockets-sansio",
        ws_max_size=_MAX_MESSAGE_BYTES,
        ws_per_message_deflate=False,
        timeout_graceful_shutdown=_GRACE_SECONDS,
        lifespan="on",
    )


class _Server(uvicorn.Server):
    """Says when it is up; ends without raising the signal again, as being told to stop is no
    failure."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """uvicorn's own, and a word about it."""
        await super().startup(sockets)
        for listener in sockets or ():
            host, port = listener.getsockname()[:2]
            where = f"http://{f'[{host}]' if ':' in host else host}:{port}"
            LOGGER.info("listening", extra={"fields": {"address": where}})

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """The first signal lets requests finish, an interrupt after it does not."""
        self.force_exit = self.should_exit and sig == signal.SIGINT
        self.should_exit = True


def _log_to_stderr() -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    for name in (LOGGER.name, "uvicorn"):
        logger = logging.getLogger(name)
        logger.handlers = [handler]
        logger.setLevel(logging.INFO if name == LOGGER.name else logging.WARNING)
        logger.propagate = False
