"""TLS handshakes that block, made as the client's settings say, and watched."""

from __future__ import annotations

import socket
import ssl
import time

from kafka_fast.config import TlsSettings
from kafka_fast.errors import TlsError
from kafka_fast.net.probe.certificates import CertificateFacts, HandshakeWatch
from kafka_fast.net.probe.findings import TlsFacts
from kafka_fast.net.tls.causes import EXPIRED
from kafka_fast.net.tls.connector import OWN_SHARE, server_name, told
from kafka_fast.net.tls.relay import failure_of
from kafka_fast.net.tls.relay_context import make_ssl_context
from kafka_fast.values import replace

__all__ = ["WatchedHandshakes"]

LEAST = 0.001
"""Seconds; 0 would mean not to block."""


class WatchedHandshakes:
    """Makes all handshakes of a check. Any thread."""

    def __init__(self, settings: TlsSettings, protocol: str) -> None:
        """Read the certificates.

        Args:
            settings: of a client without an SSLContext of the user's.
            protocol: its `security.protocol`.

        Raises:
            ConfigError: a certificate or key cannot be used.
        """
        # Python's `ssl` cannot choose suites of TLS 1.3: all of them are offered instead.
        self._context = make_ssl_context(replace(settings, tls13_cipher_suites=()))
        self._protocol = protocol
        self._has_certificate = settings.keystore is not None
        self._watch = HandshakeWatch(self._context)

    def shake(
        self, sock: socket.socket, host: str, deadline: float
    ) -> tuple[ssl.SSLSocket | OSError, TlsFacts]:
        """Make a handshake.

        Args:
            sock: connected; it is taken over.
            host: what the certificate must name.
            deadline: when the handshake has failed.

        Returns:
            The connection, or why there is none; and what was seen.
        """
        self._watch.forget_last()
        try:
            name, _ = server_name(host)
        except TlsError as error:
            sock.close()
            return error, TlsFacts()
        try:
            sock.settimeout(max(LEAST, OWN_SHARE * (deadline - time.monotonic())))
            wrapped = self._context.wrap_socket(sock, server_hostname=name)
        except OSError as error:
            sock.close()
            return self._explain(error, host)
        cipher = wrapped.cipher()
        return wrapped, TlsFacts(
            version=wrapped.version() or "",
            cipher=cipher[0] if cipher else "",
            chain=self._watch.chain,
            asks_certificate=self._watch.asks_certificate,
        )

    def lacks_certificate(self, facts: TlsFacts) -> bool:
        """Return whether the broker has asked for a certificate, and there is none."""
        return facts.asks_certificate and not self._has_certificate

    def _explain(self, error: Exception, host: str) -> tuple[OSError, TlsFacts]:
        watch = self._watch
        facts = TlsFacts(chain=watch.chain, asks_certificate=watch.asks_certificate)
        was_asked = self.lacks_certificate(facts)
        failure = replace(failure_of(error), head=watch.head, was_asked=was_asked)
        if failure.verify and facts.chain:
            shown = _refused_one(facts.chain, failure.verify)
            failure = replace(
                failure,
                subject=shown.subject,
                names=", ".join(shown.names),
                not_before=shown.not_before,
                not_after=shown.not_after,
            )
        return told(failure, host, self._protocol), facts


def _refused_one(chain: tuple[CertificateFacts, ...], verify: int) -> CertificateFacts:
    """Return the certificate that is most likely meant: the broker's own, or one that has ended."""
    if verify == EXPIRED:
        return min(chain, key=lambda certificate: certificate.not_after)
    return chain[0]
