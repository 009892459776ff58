"""Links by OpenSSL: handshakes on the thread `kf-tls`; then the data plane drives OpenSSL."""

from __future__ import annotations

import time

from kafka_fast.config.security._security_settings import TlsSettings
from kafka_fast.net._pump import Pump
from kafka_fast.net.sockets import Connecting
from kafka_fast.net.tls._tls import Handshakes, TlsContext
from kafka_fast.net.tls.connector import OWN_SHARE, Ended, TlsConnector, told
from kafka_fast.net.tls.context import make_context

__all__ = ["NativeConnector"]


class NativeConnector(TlsConnector):
    """Makes links; see `TlsConnector`."""

    def __init__(self, settings: TlsSettings, protocol: str) -> None:
        """Read the certificates; see `TlsConnector`."""
        self._handshakes = Handshakes()
        self._hosts: dict[int, str] = {}
        super().__init__(settings, protocol, make_context, self._handshakes.wake)

    @property
    def event(self) -> int:
        """See `TlsConnector`."""
        return self._handshakes.event

    def _shake(
        self, context: TlsContext, connecting: Connecting, name: str, *, is_ip: bool
    ) -> None:
        now = time.monotonic()
        self._hosts[connecting.link_id] = connecting.host
        self._handshakes.begin_handshake(
            context,
            connecting.link_id,
            connecting.node_id,
            connecting.socket.detach(),
            name.encode(),
            is_ip,
            now + OWN_SHARE * (connecting.deadline - now),
        )

    def _drop(self, link_id: int) -> None:
        self._hosts.pop(link_id, None)
        self._handshakes.drop_handshake(link_id)

    def _take(self, pump: Pump) -> list[Ended]:
        ended: list[Ended] = []
        for link_id, failure in self._handshakes.take_ended(pump):
            host = self._hosts.pop(link_id)
            why = None if failure is None else told(failure, host, self._protocol)
            ended.append((link_id, why))
        return ended

    def _stop(self) -> None:
        self._handshakes.stop()
