"""The embedded broker with TLS, users and ACLs.

    authority = CertificateAuthority(folder)
    with SecureBroker(authority) as kafka:
        kafka.client_properties("SCRAM-SHA-256", user="bob")     # Java's names
        kafka.allow("bob", "READ", topic="orders")

`alice` and `admin` may do everything, `bob` may do what `allow` allows. `secure_kafka` has the same
users on real Kafka. Needs trustme.
"""

from __future__ import annotations

import ssl
import time
from collections.abc import Mapping, Sequence
from typing import Any

from kafka_fast.testing._client_properties import login_properties, tls_properties
from kafka_fast.testing.broker.acls import ANONYMOUS
from kafka_fast.testing.broker.sasl.tokens import write_token
from kafka_fast.testing.broker.security import MECHANISMS, Security, TokenCheck
from kafka_fast.testing.broker.serving.server import LOOPBACK, EmbeddedKafka
from kafka_fast.testing.certificates import Certificate, CertificateAuthority

__all__ = ["SUPER_USERS", "USERS", "SecureBroker"]

USERS: Mapping[str, str] = {
    "admin": "admin-secret",
    "alice": "alice-secret",
    "bob": "bob-secret",
}
SUPER_USERS = (ANONYMOUS, "admin", "alice")


class SecureBroker(EmbeddedKafka):
    """A cluster that clients reach by TLS only; use it as a context manager."""

    def __init__(
        self,
        authority: CertificateAuthority,
        brokers: int = 1,
        *,
        users: Mapping[str, str] = USERS,
        mechanisms: Sequence[str] = MECHANISMS,
        asks_certificates: bool = False,
        certificate: Certificate | None = None,
        scram_iterations: int = 4096,
        reauth_ms: int = 0,
        check_token: TokenCheck | None = None,
        **options: Any,
    ) -> None:
        """Describe the cluster; `start` starts it.

        Args:
            authority: issues the brokers' certificate.
            brokers: their number.
            users: names and passwords.
            mechanisms: of SASL; empty: clients do not authenticate by SASL.
            asks_certificates: refuse clients without a certificate of the authority; its common
                name is the user if there is no SASL.
            certificate: the brokers'; None: one for localhost and 127.0.0.1.
            scram_iterations: of every password.
            reauth_ms: when clients have to authenticate again (KIP-368); 0: never.
            check_token: of OAUTHBEARER; None: tokens are those of `token`.
            options: further arguments of `EmbeddedKafka`.
        """
        self.authority = authority
        """Issues certificates that the brokers trust."""
        self.users = dict(users)
        """Names and passwords."""
        self._client_certificates: dict[str, Certificate] = {}
        made = certificate or authority.issue("localhost", LOOPBACK)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(made.both)
        if asks_certificates:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(authority.certificate)
        self._asks_certificates = asks_certificates
        security = Security(
            users=users,
            mechanisms=mechanisms,
            scram_iterations=scram_iterations,
            reauth_ms=reauth_ms,
            check_token=check_token,
            super_users=SUPER_USERS,
        )
        super().__init__(brokers, security=security, tls=context, **options)

    def client_properties(
        self, mechanism: str | None = "SCRAM-SHA-256", *, user: str = "alice"
    ) -> dict[str, str]:
        """Return the configuration of a client, with Java's names.

        With OAUTHBEARER the client needs a token as well: `token(user)`.

        Args:
            mechanism: of SASL; None if the cluster has none.
            user: who the client is.
        """
        shown = self.client_certificate(user).both if self._asks_certificates else None
        properties = {
            "bootstrap.servers": self.bootstrap,
            "security.protocol": self.security_protocol,
            **tls_properties(self.authority.certificate, shown),
        }
        if mechanism == "OAUTHBEARER":
            properties["sasl.mechanism"] = mechanism
        elif mechanism is not None:
            password = self.users[user]
            properties |= login_properties(mechanism, username=user, password=password)
        return properties

    def client_certificate(self, user: str) -> Certificate:
        """Return a certificate with which a client is `user`."""
        if user not in self._client_certificates:
            made = self.authority.issue(f"{user}.test", common_name=user)
            self._client_certificates[user] = made
        return self._client_certificates[user]

    def token(self, user: str, *, lifetime: float = 3600.0) -> str:
        """Return a token for OAUTHBEARER, valid for `lifetime` seconds; nobody signs it."""
        return write_token(user, int(time.time()) * 1000, lifetime)
