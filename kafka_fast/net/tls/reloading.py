"""A TLS context that is read anew when its files have changed.

The first context is read where the client is made, so that what is wrong with the settings is an
error there. Later ones are read in a thread of their own: a password may come from a function that
blocks. Connections that want a context wait for that thread.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from kafka_fast.config.security._security_settings import TlsSettings
from kafka_fast.logs import get_logger, keep_name
from kafka_fast.net.sockets import Connecting
from kafka_fast.net.tls.stores import Fingerprint, fingerprint

__all__ = ["Reloading"]

logger = get_logger("kafka_fast.net.tls")

Context = TypeVar("Context")


class Reloading(Generic[Context]):
    """The context of a client, and the connections that wait for it. Control thread only."""

    def __init__(
        self,
        settings: TlsSettings,
        make: Callable[[TlsSettings], Context],
        wake: Callable[[], None],
    ) -> None:
        """Read the certificates.

        Args:
            settings: say which.
            make: returns a context made from them.
            wake: called when `take_ready` may have something; any thread.

        Raises:
            ConfigError: a certificate or key cannot be used.
        """
        self._settings = settings
        self._make = make
        self._wake = wake
        self._stamp = fingerprint(settings)
        self._waiting: list[Connecting] = []
        self._is_loading = False
        self.context = make(settings)

    def is_current(self) -> bool:
        """Return whether the context may be used now; if its files have changed, read them."""
        if not self._is_loading and (stamp := fingerprint(self._settings)) != self._stamp:
            self._begin(lambda: self._load(stamp))
        return not self._is_loading

    def wait(self, connecting: Connecting) -> None:
        """Let a connection wait for the context."""
        self._waiting.append(connecting)

    def drop_connection(self, link_id: int) -> None:
        """Give up a connection that may wait."""
        for connecting in self._waiting:
            if connecting.link_id == link_id:
                connecting.socket.close()
        self._waiting = [other for other in self._waiting if other.link_id != link_id]

    def take_ready(self) -> list[Connecting]:
        """Return the connections that need not wait any more."""
        if self._is_loading:
            return []
        waiting, self._waiting = self._waiting, []
        return waiting

    def give_up_all(self) -> None:
        """Give up all connections that wait."""
        for connecting in self._waiting:
            connecting.socket.close()
        self._waiting.clear()

    def _begin(self, load: Callable[[], None]) -> None:
        self._is_loading = True
        try:
            threading.Thread(target=keep_name(load), name="kf-tls-load", daemon=True).start()
        except RuntimeError:  # the interpreter ends: the old context will do
            self._is_loading = False

    def _load(self, stamp: Fingerprint) -> None:
        try:
            self.context = self._make(self._settings)
            self._stamp = stamp
            logger.info("TLS: the certificates have changed and were read anew")
        except Exception as error:  # noqa: BLE001 - a password may come from user code
            # Maybe only half of a pair is written yet: the next connect looks again.
            logger.warning("TLS: changed certificates are not used yet: %s", error)
        finally:
            self._is_loading = False
            self._wake()
