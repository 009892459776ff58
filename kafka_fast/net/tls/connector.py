"""What makes an encrypted link of a connected socket: what the two ways have in common.

ThreadedHost ── begin, drop ─► connector ── event: something has ended ─► ThreadedHost ── take ─►
"""

from __future__ import annotations

import ipaddress
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from kafka_fast.config.security._security_settings import TlsSettings
from kafka_fast.errors import ConnectionReason, KafkaConnectionError, TlsError
from kafka_fast.net._pump import Pump
from kafka_fast.net.sockets import Connecting
from kafka_fast.net.tls.causes import Failure, lost, refused
from kafka_fast.net.tls.reloading import Reloading

__all__ = ["OWN_SHARE", "Ended", "TlsConnector", "server_name", "told"]

Ended = tuple[int, OSError | None]
"""A link's id, and why it cannot be; None: the data plane has it."""

OWN_SHARE = 0.95
"""Of the time that is left when the socket is connected. The control plane's own deadline comes
after it and cannot tell a handshake from a connection.
"""


class TlsConnector(ABC):
    """Makes links, with certificates that are read anew when they change.

    How hands are shaken is the subclass's. Control thread only, unless said otherwise.
    """

    def __init__(
        self,
        settings: TlsSettings,
        protocol: str,
        make: Callable[[TlsSettings], Any],
        wake: Callable[[], None],
    ) -> None:
        """Read the certificates.

        Args:
            settings: of the client.
            protocol: its `security.protocol`, for errors.
            make: returns a context made from the settings.
            wake: raises `event`; any thread.

        Raises:
            ConfigError: a certificate or key cannot be used.
        """
        self._protocol = protocol
        self._current: Reloading[Any] = Reloading(settings, make, wake)

    @property
    @abstractmethod
    def event(self) -> int:
        """File descriptor that is readable while `take_ended` has something to do."""

    def begin_handshake(self, connecting: Connecting) -> None:
        """Start a handshake on a connected socket, or queue the socket while certificates are read.

        Raises:
            OSError: it could not begin; the socket is closed.
        """
        if self._current.is_current():
            self._begin(connecting)
        else:
            self._current.wait(connecting)

    def drop_handshake(self, link_id: int) -> None:
        """Give up a handshake that `take_ended` has not returned."""
        self._current.drop_connection(link_id)
        self._drop(link_id)

    def take_ended(self, pump: Pump) -> list[Ended]:
        """Hand the data plane what is ready, and return what has ended."""
        ended = self._take(pump)
        for connecting in self._current.take_ready():
            try:
                self._begin(connecting)
            except OSError as error:  # noqa: PERF203 - one for each that is begun
                ended.append((connecting.link_id, error))
        return ended

    def stop(self) -> None:
        """End all threads and close all sockets. Any thread, after the control thread's end."""
        self._current.give_up_all()
        self._stop()

    def _begin(self, connecting: Connecting) -> None:
        try:
            name, is_ip = server_name(connecting.host)
        except TlsError:
            connecting.socket.close()
            raise
        self._shake(self._current.context, connecting, name, is_ip=is_ip)

    @abstractmethod
    def _shake(self, context: Any, connecting: Connecting, name: str, *, is_ip: bool) -> None:
        """Start a handshake; `_take` returns how it ended.

        Args:
            context: what `make` has returned.
            connecting: a connected socket, which is closed if this fails.
            name: what the certificate must name.
            is_ip: whether that is an address.

        Raises:
            OSError: there is no thread for it.
        """

    @abstractmethod
    def _drop(self, link_id: int) -> None:
        """Give up a handshake, if it was begun."""

    @abstractmethod
    def _take(self, pump: Pump) -> list[Ended]:
        """Do as `take_ended` says with the handshakes that were begun."""

    @abstractmethod
    def _stop(self) -> None:
        """Do as `stop` says with the handshakes that were begun, and the links."""


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
        return KafkaConnectionError(lost(failure, protocol), reason=_reason(failure))
    return TlsError(refused(failure, host, protocol))


def _reason(failure: Failure) -> ConnectionReason:
    """Return how a handshake was lost."""
    if failure.is_late:
        return ConnectionReason.TIMED_OUT
    return ConnectionReason.RESET if failure.error else ConnectionReason.CLOSED
