"""Links by OpenSSL: handshakes on the thread `kf-tls`; then the data plane drives OpenSSL."""

from __future__ import annotations

import time

from kafka_fast.config._security_settings import TlsSettings
from kafka_fast.errors import TlsError
from kafka_fast.net._pump import Pump
from kafka_fast.net.sockets import Connecting
from kafka_fast.net.tls._tls import Handshakes, TlsContext
from kafka_fast.net.tls.connector import OWN_SHARE, Ended, server_name, told
from kafka_fast.net.tls.context import make_context
from kafka_fast.net.tls.reloading import Reloading

__all__ = ["NativeConnector"]


class NativeConnector:
    """Makes links; see `TlsConnector`."""

    def __init__(self, settings: TlsSettings, protocol: str) -> None:
        """Read the certificates.

        Args:
            settings: of the client.
            protocol: its `security.protocol`.

        Raises:
            ConfigError: a certificate or key cannot be used.
        """
        self._protocol = protocol
        self._handshakes = Handshakes()
        self._current: Reloading[TlsContext] = Reloading(
            settings, make_context, self._handshakes.wake
        )
        self._hosts: dict[int, str] = {}

    @property
    def event(self) -> int:
        """See `TlsConnector`."""
        return self._handshakes.event

    def begin(self, connecting: Connecting) -> None:
        """See `TlsConnector`."""
        if self._current.is_current():
            self._shake(connecting)
        else:
            self._current.wait(connecting)

    def drop(self, link_id: int) -> None:
        """See `TlsConnector`."""
        self._current.drop(link_id)
        self._hosts.pop(link_id, None)
        self._handshakes.drop(link_id)

    def take(self, pump: Pump) -> list[Ended]:
        """See `TlsConnector`."""
        ended: list[Ended] = []
        for link_id, failure in self._handshakes.take(pump):
            host = self._hosts.pop(link_id)
            why = None if failure is None else told(failure, host, self._protocol)
            ended.append((link_id, why))
        for connecting in self._current.take():
            try:
                self._shake(connecting)
            except OSError as error:  # noqa: PERF203 - one for each that is begun
                ended.append((connecting.link_id, error))
        return ended

    def stop(self) -> None:
        """See `TlsConnector`."""
        self._current.stop()
        self._handshakes.stop()

    def _shake(self, connecting: Connecting) -> None:
        now = time.monotonic()
        try:
            name, is_ip = server_name(connecting.host)
        except TlsError:
            connecting.socket.close()
            raise
        self._hosts[connecting.link_id] = connecting.host
        self._handshakes.begin(
            self._current.context,
            connecting.link_id,
            connecting.node_id,
            connecting.socket.detach(),
            name.encode(),
            is_ip,
            now + OWN_SHARE * (connecting.deadline - now),
        )
