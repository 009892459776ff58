"""`bootstrap.servers` and the like: what a user may write there, as host and port."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from kafka_fast.errors import ConfigError

DEFAULT_PORT = 9092
PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")

_ENTRY = re.compile(
    r"(?:(?P<scheme>[A-Za-z_]+)://)?"
    r"(?:\[(?P<bracketed>[^\[\]]+)\]|(?P<host>[^\s\[\]:/,]+))"
    r"(?::(?P<port>[0-9]+))?"
)


SERVERS = "bootstrap.servers"


class Address(NamedTuple):
    """Where a broker listens."""

    host: str
    """Name or IP address, an IPv6 address without brackets."""
    port: int

    def __str__(self) -> str:
        """Return the address as it is written in `bootstrap.servers`."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_address(entry: str, label: str = SERVERS) -> Address:
    """Return the address that one entry of `bootstrap.servers` means.

    Raises:
        ConfigError: the entry is not `host:port`; the message names it.
    """
    match = _ENTRY.fullmatch(entry.strip())
    if match is None:
        raise ConfigError(f"{label}: {entry!r} is not host:port (IPv6 addresses go in brackets)")
    # As in Java, a protocol before the address says nothing: security.protocol does.
    if (match["scheme"] or PROTOCOLS[0]).upper() not in PROTOCOLS:
        raise ConfigError(f"{label}: {entry!r}: the protocol is none of {', '.join(PROTOCOLS)}")
    port = int(match["port"] or DEFAULT_PORT)
    if not 0 < port < 65536:
        raise ConfigError(f"{label}: {entry!r}: port {port} is not in 1..65535")
    return Address(match["bracketed"] or match["host"], port)


def parse_addresses(value: object, label: str = SERVERS) -> tuple[Address, ...]:
    """Return the addresses in a comma-separated string, or in an iterable of strings, in order.

    A pair (host, port) among the entries is taken as it is; entries named twice count once. Errors
    name the property by its label.
    """
    entries: Iterable[object]
    if isinstance(value, str):
        entries = [part for part in value.split(",") if part.strip()]
    elif isinstance(value, Iterable) and not isinstance(value, bytes | bytearray):
        entries = value
    else:
        raise ConfigError(f"{label}: expected a string or a list of strings, not {value!r}")
    addresses: dict[Address, None] = {}
    for entry in entries:
        if isinstance(entry, str):
            addresses[parse_address(entry, label)] = None
        elif isinstance(entry, tuple) and len(entry) == 2 and isinstance(entry[0], str):
            host = f"[{entry[0]}]" if ":" in entry[0] else entry[0]
            addresses[parse_address(f"{host}:{entry[1]}", label)] = None
        else:
            raise ConfigError(f"{label}: {entry!r} is not host:port")
    if not addresses:
        raise ConfigError(f"{label}: no address in it")
    return tuple(addresses)
