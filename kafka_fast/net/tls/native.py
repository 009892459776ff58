"""Links by OpenSSL: handshakes on the thread `kf-tls`, then the data plane drives OpenSSL itself."""

from __future__ import annotations

import threading
import time

from kafka_fast.config._security_settings import TlsSettings
from kafka_fast.logs import get_logger
from kafka_fast.net._pump import Pump
from kafka_fast.net.sockets import Connecting
from kafka_fast.net.tls._tls import Context, Handshakes
from kafka_fast.net.tls.connector import OWN_SHARE, Ended, server_name, told
from kafka_fast.net.tls.context import make_context
from kafka_fast.net.tls.stores import Fingerprint, fingerprint

__all__ = ["NativeConnector"]

logger = get_logger("kafka_fast.net.tls")


class NativeConnector:
    """Handshakes by OpenSSL, on the thread `kf-tls`."""

    def __init__(self, settings: TlsSettings, protocol: str) -> None:
        """Read the certificates.

        Args:
            settings: of the client.
            protocol: its `security.protocol`.

        Raises:
            ConfigError: a certificate or key cannot be used.
        """
        self._settings = settings
        self._protocol = protocol
        self._stamp: Fingerprint = fingerprint(settings)
        self._context: Context = make_context(settings)
        self._handshakes = Handshakes()
        self._hosts: dict[int, str] = {}
        self._waiting: list[Connecting] = []  # until the certificates have been read anew
        self._is_loading = False

    @property
    def event(self) -> int:
        """See `TlsConnector`."""
        return self._handshakes.event

    def begin(self, connecting: Connecting) -> None:
        """See `TlsConnector`."""
        if not self._is_loading:
            stamp = fingerprint(self._settings)
            if stamp != self._stamp:
                self._begin_loading(stamp)
        if self._is_loading:
            self._waiting.append(connecting)
        else:
            self._shake(connecting)

    def drop(self, link_id: int) -> None:
        """See `TlsConnector`."""
        for connecting in self._waiting:
            if connecting.link_id == link_id:
                connecting.socket.close()
        self._waiting = [it for it in self._waiting if it.link_id != link_id]
        self._hosts.pop(link_id, None)
        self._handshakes.drop(link_id)

    def take(self, pump: Pump) -> list[Ended]:
        """See `TlsConnector`."""
        ended: list[Ended] = []
        for link_id, failure in self._handshakes.take(pump):
            host = self._hosts.pop(link_id)
            why = None if failure is None else told(failure, host, self._protocol)
            ended.append((link_id, why))
        if not self._is_loading:
            waiting, self._waiting = self._waiting, []
            for connecting in waiting:
                try:
                    self._shake(connecting)
                except OSError as error:
                    ended.append((connecting.link_id, error))
        return ended

    def stop(self) -> None:
        """See `TlsConnector`."""
        for connecting in self._waiting:
            connecting.socket.close()
        self._waiting.clear()
        self._handshakes.stop()

    def _shake(self, connecting: Connecting) -> None:
        now = time.monotonic()
        host = connecting.host
        self._hosts[connecting.link_id] = host
        name, is_ip = server_name(host)
        self._handshakes.begin(
            self._context,
            connecting.link_id,
            connecting.node_id,
            connecting.socket.detach(),
            name.encode(),
            is_ip,
            now + OWN_SHARE * (connecting.deadline - now),
        )

    # ---- certificates that have changed ----

    def _begin_loading(self, stamp: Fingerprint) -> None:
        def load() -> None:
            try:
                self._context = make_context(self._settings)
                logger.info("TLS: the certificates have changed and were read anew")
                self._stamp = stamp
            except Exception as error:  # a password may come from a function of the user's
                # Maybe only half of a pair is written yet: the next connect looks again.
                logger.warning("TLS: changed certificates are not used yet: %s", error)
            finally:
                self._is_loading = False
                self._handshakes.wake()

        self._is_loading = True
        try:
            threading.Thread(target=load, name="kf-tls-load", daemon=True).start()
        except RuntimeError:  # the interpreter ends: what is there will do
            self._is_loading = False
