"""How a server is run."""

import ipaddress
from dataclasses import dataclass

from mosstalk.errors import UsageError

_SHORTEST_KEY = 8


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """Where a server listens, and whom it serves.

    Attributes:
        host, port: the address; port 0 takes a free one.
        api_key: that every request must bring; None on a loopback address only.
        origins: of web pages elsewhere whose scripts may use the server.

    Raises:
        UsageError: a value is outside its range, or a key is missing.
    """

    host: str = "127.0.0.1"
    port: int = 8080
    api_key: str | None = None
    origins: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not 0 <= self.port < 2**16:
            raise UsageError(f"the port is {self.port}, but must be from 0 to 65535")
        if self.api_key is not None and not (
            len(self.api_key) >= _SHORTEST_KEY
            and self.api_key.isascii()
            and self.api_key.isprintable()
        ):
            raise UsageError(
                f"an API key has {_SHORTEST_KEY} or more printable ASCII characters; give another"
            )
        if self.api_key is None and not self.is_loopback:
            raise UsageError(
                f"{self.host} can be reached from other machines; give --api-key KEY (or "
                "MOSSTALK_API_KEY) as well, or --host 127.0.0.1"
            )
        for origin in self.origins:
            if not origin.startswith(("http://", "https://")) or origin.count("/") != 2:
                raise UsageError(f"{origin!r} is no origin; give one such as https://example.org")

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine reaches the address."""
        return is_loopback(self.host)


def is_loopback(host: str) -> bool:
    """Whether a host's name or address, as written, is this machine's own."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
