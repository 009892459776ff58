"""Kerberos by the package gssapi: tickets from a key table, or from the user's ticket cache.

MIT's library renews a ticket by itself while there is a key table. The system's krb5.conf says
which servers are asked, and how host names become principals.
"""

from __future__ import annotations

import importlib
import secrets
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from kafka_fast.control.authentication.gssapi import SecurityContext
from kafka_fast.control.authentication.peer_text import as_told
from kafka_fast.errors import AuthenticationError, KafkaConnectionError
from kafka_fast.net.login.packages import require_package

__all__ = ["KerberosLogin"]

T = TypeVar("T")

SERVICE = "kafka"
UNREACHABLE = -1765328228 & 0xFFFFFFFF
"""KRB5_KDC_UNREACH, as gssapi has it."""


class KerberosLogin:
    """One client's credentials. Thread: control, which may not block here."""

    def __init__(
        self,
        *,
        service: str | None = None,
        principal: str | None = None,
        keytab: str | None = None,
        host: str | None = None,
    ) -> None:
        """Take the settings; nothing is asked for yet.

        Args:
            service: of the brokers' principals; None: kafka.
            principal: this client's; None: the first of the key table, or the cache's.
            keytab: a file with the client's key; None: the ticket cache has tickets.
            host: in the brokers' principals; None: each broker's own name.

        Raises:
            MissingPackageError: the package gssapi is not installed.
        """
        require_package("gssapi", extra="gssapi", what="sasl.mechanism=GSSAPI")
        self._service = service or SERVICE
        self._principal = principal
        self._host = host
        self._store: dict[str, str] | None = None
        if keytab is not None:
            # A cache of our own: that of the user may be another principal's.
            cache = f"MEMORY:kafka_fast-{secrets.token_hex(8)}"
            self._store = {"client_keytab": f"FILE:{keytab}", "ccache": cache}
        self._lock = threading.Lock()

    def make_context(self, host: str) -> SecurityContext:
        """Return a context for the broker of that name."""
        return _Context(lambda: self._made(host))

    def _made(self, host: str) -> Any:
        """Return gssapi's context. May ask Kerberos's server, for one link after the other."""
        gssapi = _library()
        kerberos = gssapi.MechType.kerberos
        name = None
        if self._principal is not None:
            name = gssapi.Name(self._principal, gssapi.NameType.kerberos_principal)
        target = gssapi.Name(
            f"{self._service}@{self._host or host}", gssapi.NameType.hostbased_service
        )
        with self._lock:
            credentials = gssapi.Credentials(
                name=name, usage="initiate", store=self._store, mechs=[kerberos]
            )
            return gssapi.SecurityContext(
                name=target,
                creds=credentials,
                mech=kerberos,
                usage="initiate",
                flags=gssapi.RequirementFlag.mutual_authentication
                | gssapi.RequirementFlag.integrity,
            )


class _Context:
    """A `SecurityContext` over one of gssapi's."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make
        self._context: Any = None

    def step(self, token: bytes | None) -> bytes:
        def step() -> bytes:
            if self._context is None:
                self._context = self._make()
            return self._context.step(token) or b""

        return _translated(step)

    @property
    def is_complete(self) -> bool:
        return self._context is not None and bool(self._context.complete)

    def unwrap(self, message: bytes) -> bytes:
        return _translated(lambda: bytes(self._context.unwrap(message).message))

    def wrap(self, message: bytes) -> bytes:
        return _translated(lambda: bytes(self._context.wrap(message, False).message))


def _translated(call: Callable[[], T]) -> T:
    """Call a function of gssapi's, and raise our errors."""
    try:
        return call()
    except _library().exceptions.GSSError as error:
        kind = KafkaConnectionError if error.min_code == UNREACHABLE else AuthenticationError
        raise kind(f"cannot be authenticated to with Kerberos: {as_told(str(error))}") from error


def _library() -> Any:
    """Return the package gssapi. Untyped: it is not there wherever this is checked."""
    return importlib.import_module("gssapi")
