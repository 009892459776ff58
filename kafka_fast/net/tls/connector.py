"""What makes an encrypted link of a connected socket: the interface of the two ways.

ThreadedHost ── begin, drop ─► connector ── event: something has ended ─► ThreadedHost ── take ─►
"""

from __future__ import annotations

import ipaddress
import os
from typing import Protocol

from kafka_fast.config._security_settings import TlsSettings
from kafka_fast.errors import ConfigError, KafkaConnectionError, TlsError, drop_frames
from kafka_fast.logs import get_logger
from kafka_fast.net._pump import Pump
from kafka_fast.net.sockets import Connecting
from kafka_fast.net.tls.causes import Failure, lost, refused
from kafka_fast.net.tls.serving import serving

__all__ = ["OWN_SHARE", "Ended", "TlsConnector", "make_connector", "server_name", "told"]

logger = get_logger("kafka_fast.net.tls")

Ended = tuple[int, OSError | None]
"""A link's id, and why it cannot be; None: the data plane has it."""

OWN_SHARE = 0.95
"""Of the time that is left when the socket is connected. The control plane's own deadline comes
after it and cannot tell a handshake from a connection.
"""


class TlsConnector(Protocol):
    """Makes links. Control thread only, unless said otherwise."""

    @property
    def event(self) -> int:
        """File descriptor that is readable while `take` has something to do."""

    def begin(self, connecting: Connecting) -> None:
        """Begin a handshake on a connected socket.

        Raises:
            OSError: it could not begin; the socket is closed.
        """

    def drop(self, link_id: int) -> None:
        """Give up a handshake that `take` has not returned."""

    def take(self, pump: Pump) -> list[Ended]:
        """Hand the data plane what is ready, and return what has ended."""

    def stop(self) -> None:
        """End all threads and close all sockets. Any thread, after the control thread's end."""


def make_connector(tls: TlsSettings, protocol: str) -> TlsConnector:
    """Return what makes a client's links.

    Called by the thread that makes the client. It may block: it reads files.

    Args:
        tls: the client's settings.
        protocol: its `security.protocol`, for errors.

    Raises:
        ConfigError: a certificate or key cannot be used; KAFKA_FAST_TLS has an unknown value.
    """
    way = os.environ.get("KAFKA_FAST_TLS", "native")
    if way not in ("native", "relay"):
        raise ConfigError(f"KAFKA_FAST_TLS is 'native' or 'relay', not {way!r}")
    by = "relay, the user's ssl_context" if tls.context is not None else serving()
    logger.info("TLS: %s", by)
    try:
        return _connector(tls, protocol, by)
    except ConfigError as error:
        drop_frames(error)  # passwords and private keys stand in them
        failure = error
    raise failure  # not in the handler, where Python 3.10 brings the frames back


def _connector(tls: TlsSettings, protocol: str, by: str) -> TlsConnector:
    # Imported here, because each loads an OpenSSL.
    if by.startswith("relay"):
        from kafka_fast.net.tls.relay import RelayConnector

        return RelayConnector(tls, protocol)
    from kafka_fast.net.tls.native import NativeConnector

    return NativeConnector(tls, protocol)


def server_name(host: str) -> tuple[str, bool]:
    """Return what the certificate of a host must name, and whether that is an IP address.

    Raises:
        TlsError: no certificate can name it. OpenSSL would check nothing, or the part before a NUL.
    """
    try:
        return str(ipaddress.ip_address(host.partition("%")[0])), True
    except ValueError:
        pass
    try:
        name = host.rstrip(".").encode("idna").decode()
    except UnicodeError:
        name = ""
    if not name or "\0" in name:
        raise TlsError(f"no certificate can be for {host!r}")
    return name, False


def told(failure: Failure, host: str, protocol: str) -> OSError:
    """Return the error for a handshake that failed.

    Who waits for a link hears of a `TlsError` at once. A handshake that was lost is begun again.
    """
    if failure.is_loss:
        return KafkaConnectionError(lost(failure, protocol))
    return TlsError(refused(failure, host, protocol))
