"""Real Apache Kafka with listeners for TLS and SASL, users and ACLs; certificates are its own.

    with SecureKafka(folder) as kafka:
        kafka.client_properties("SASL_SSL", "SCRAM-SHA-256", user="bob")   # Java's names
        kafka.allow("bob", "READ", topic="orders")

Each broker has all listeners, so one process serves every test:

    PLAINTEXT        the harness's own; also whoever it lets in is a super user (ANONYMOUS)
    SSL              TLS, nobody says who they are: ANONYMOUS, too
    MTLS             TLS with a client certificate, whose common name is the user
    SASL_PLAINTEXT   SASL without TLS
    SASL_SSL         SASL with TLS
    REAUTH           as SASL_SSL, with sessions of `reauth_ms` (KIP-368)

`alice` and `admin` may do everything. `bob` may do what `allow` allows. All have passwords for all
mechanisms. OAUTHBEARER tokens are those of `provider`.

Kafka reads certificates in PEM since 2.7, and checks signed tokens since 3.1. So brokers with
ZooKeeper have no OAUTHBEARER here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from kafka_fast import Admin
from kafka_fast.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourceType,
    UserScramCredentialUpsertion,
    UserScramMechanism,
)
from kafka_fast.errors import AuthenticationError
from kafka_fast.testing._client_properties import (
    LOGIN_MODULES,
    login_properties,
    tls_properties,
    write_properties_file,
)
from kafka_fast.testing._kafka.broker_jars import DEFAULT_VERSION, release
from kafka_fast.testing._kafka.identity_provider import AUDIENCE, ISSUER, IdentityProvider
from kafka_fast.testing._kafka.installation import PLAINTEXT, Node
from kafka_fast.testing._kafka.real_kafka import RealKafka
from kafka_fast.testing.broker.acls import AclRule, acl_rules
from kafka_fast.testing.certificates import Certificate, CertificateAuthority
from kafka_fast.testing.secure_broker import SUPER_USERS, USERS

__all__ = ["LISTENERS", "MECHANISMS", "USERS", "SecureKafka"]

# Listener -> Kafka's security protocol.
LISTENERS: Mapping[str, str] = {
    "SSL": "SSL",
    "MTLS": "SSL",
    "SASL_PLAINTEXT": "SASL_PLAINTEXT",
    "SASL_SSL": "SASL_SSL",
    "REAUTH": "SASL_SSL",
}
SASL_LISTENERS = ("SASL_PLAINTEXT", "SASL_SSL", "REAUTH")
MECHANISMS: Sequence[str] = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
REAUTH_MS = 2000

# Iterations: the fewest and the most that brokers accept.
_SCRAM = {UserScramMechanism.SCRAM_SHA_256: 4096, UserScramMechanism.SCRAM_SHA_512: 16_384}

_OAUTH = "org.apache.kafka.common.security.oauthbearer"
_ALLOWED_URLS = "org.apache.kafka.sasl.oauthbearer.allowed.urls"


class SecureKafka(RealKafka):
    """A cluster with secure listeners; use it in a `with` block."""

    def __init__(
        self,
        folder: Path,
        nodes: int = 1,
        version: str = DEFAULT_VERSION,
        *,
        reauth_ms: int = REAUTH_MS,
        overrides: Mapping[str, str | int | bool] | None = None,
        **options: Any,
    ) -> None:
        """Make the certificates; `start` starts the brokers.

        Args:
            folder: where certificates and keys are written.
            nodes: 1 or 3.
            version: a key of `broker_jars.RELEASES`.
            reauth_ms: how long a session of the listener REAUTH lasts.
            overrides: broker properties that override those of the harness.
            options: further arguments of `RealKafka`.
        """
        self.authority = CertificateAuthority(folder)
        """Issues certificates that the brokers trust."""
        self.certificate = self.authority.issue("localhost", "127.0.0.1")
        """The brokers' own, for localhost and 127.0.0.1."""
        self.provider = IdentityProvider(self.authority, USERS)
        """Signs tokens for OAUTHBEARER."""
        self._folder = folder
        self._client_certificates: dict[str, Certificate] = {}
        self._given_overrides = dict(overrides or {})
        self._reauth_ms = reauth_ms
        self.mechanisms: Sequence[str] = MECHANISMS
        """Those that the brokers offer."""
        if release(version).kraft:
            format_options = options.pop("format_options", ())
            options["format_options"] = [*format_options, *_scram_format_options()]
        else:
            self.mechanisms = tuple(one for one in MECHANISMS if one != "OAUTHBEARER")
        super().__init__(nodes, version, listeners=LISTENERS, **options)

    def start(self) -> None:
        """Start the identity provider, then the brokers (see `RealKafka.start`)."""
        self.provider.start()
        properties = {
            **_tls_properties(self.certificate, self.authority.certificate),
            **_sasl_properties(self.mechanisms, self.provider.jwks_url),
            **self._authorizer_properties(),
            "listener.name.reauth.connections.max.reauth.ms": str(self._reauth_ms),
            **self._given_overrides,
        }
        self._overrides = {key: str(value) for key, value in properties.items()}
        self._jvm_options += (f"-D{_ALLOWED_URLS}={self.provider.jwks_url}",)
        try:
            super().start()
            if not self.release.kraft:
                for user, password in USERS.items():
                    self.set_password(user, password)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Kill every process, and stop the identity provider."""
        super().close()
        self.provider.close()

    # ---- how clients connect ----

    def client_certificate(self, user: str) -> Certificate:
        """Return the certificate with which a client is `user` on the listener MTLS."""
        if user not in self._client_certificates:
            made = self.authority.issue(f"{user}.test", common_name=user)
            self._client_certificates[user] = made
        return self._client_certificates[user]

    def client_properties(
        self, listener: str, mechanism: str | None = None, *, user: str = "alice"
    ) -> dict[str, str]:
        """Return the configuration of a client, with Java's names.

        Args:
            listener: PLAINTEXT, or one of `LISTENERS`.
            mechanism: one of `MECHANISMS`, on a listener with SASL.
            user: one of `USERS`. On MTLS it may be any name.
        """
        protocol = LISTENERS.get(listener, listener)
        properties = {
            "bootstrap.servers": self.bootstrap_of(listener),
            "security.protocol": protocol,
        }
        if protocol.endswith("SSL"):
            shown = self.client_certificate(user).both if listener == "MTLS" else None
            properties |= tls_properties(self.authority.certificate, shown)
        if mechanism == "OAUTHBEARER":
            properties |= login_properties(mechanism, clientId=user, clientSecret=USERS[user])
            properties |= {
                "sasl.login.callback.handler.class": f"{_OAUTH}.OAuthBearerLoginCallbackHandler",
                "sasl.oauthbearer.token.endpoint.url": self.provider.token_url,
                "https.ca.location": str(self.authority.certificate),  # librdkafka's name
            }
        elif mechanism is not None:
            properties |= login_properties(mechanism, username=user, password=USERS[user])
        return properties

    def doors(self) -> Iterator[tuple[str, str | None]]:
        """Yield every listener with every mechanism that it has, or None without SASL."""
        for listener in (PLAINTEXT, *LISTENERS):
            mechanisms = self.mechanisms if listener in SASL_LISTENERS else (None,)
            yield from ((listener, mechanism) for mechanism in mechanisms)

    def write_properties(self, folder: Path) -> list[Path]:
        """Write a properties file for each listener and mechanism; return their paths."""
        written = []
        for listener, mechanism in self.doors():
            name = "-".join(filter(None, (listener, mechanism))).lower()
            properties = self.client_properties(listener, mechanism)
            written.append(write_properties_file(folder / f"{name}.properties", properties))
        return written

    # ---- what users may do ----

    def allow(self, user: str, *operations: str, **resource: Any) -> None:
        """Let a user do something; return when every node knows.

        Args:
            user: one of `USERS`, or "*".
            operations: READ, WRITE, …
            resource: keywords of `acl_rules`: topic, group, cluster, transactional_id, prefixed.
        """
        self._add_rules(acl_rules(user, operations, **resource))

    def deny(self, user: str, *operations: str, **resource: Any) -> None:
        """Deny a user something, whatever is allowed (see `allow`)."""
        self._add_rules(acl_rules(user, operations, **resource, allows=False))

    def set_password(self, user: str, password: str) -> None:
        """Change a user's password for SCRAM; return when every node knows."""
        credentials = [
            UserScramCredentialUpsertion(user, mechanism, password, iterations)
            for mechanism, iterations in _SCRAM.items()
        ]
        with self._admin() as admin:
            admin.alter_user_scram_credentials(credentials).raise_first()
        self._wait(
            f"the password of {user} on every node",
            lambda: all(
                self._may_log_in(node, mechanism.mechanism_name, user, password)
                for node in self._answering()
                for mechanism in _SCRAM
            ),
        )

    def _may_log_in(self, node: Node, mechanism: str, user: str, password: str) -> bool:
        """Return whether a node takes a user's password."""
        properties = {
            "bootstrap.servers": f"{node.host}:{node.ports['SASL_PLAINTEXT']}",
            "security.protocol": "SASL_PLAINTEXT",
            **login_properties(mechanism, username=user, password=password),
        }
        with Admin(properties) as admin:
            try:
                admin.list_topics()
            except AuthenticationError:
                return False
        return True

    def _add_rules(self, rules: list[AclRule]) -> None:
        bindings = {_binding(rule) for rule in rules}
        with self._admin() as admin:
            admin.create_acls(bindings).raise_first()
        self._wait(
            f"rules of {rules[0].user} on every node",
            lambda: all(bindings <= self._rules_seen_by(node) for node in self._answering()),
        )

    def _rules_seen_by(self, node: Node) -> set[AclBinding]:
        with self._admin(node) as admin:
            return set(admin.describe_acls(AclBindingFilter()))

    def _authorizer_properties(self) -> dict[str, str]:
        kraft = self.release.kraft
        name = (
            "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
            if kraft
            else "kafka.security.authorizer.AclAuthorizer"
        )
        return {
            "authorizer.class.name": name,
            "super.users": ";".join(f"User:{user}" for user in SUPER_USERS),
        }


def _tls_properties(certificate: Certificate, authority: Path) -> dict[str, str]:
    return {
        "ssl.keystore.type": "PEM",
        # Texts and not files: of files Kafka 2.8 wants a password.
        "ssl.keystore.key": _one_line(certificate.key),
        "ssl.keystore.certificate.chain": _one_line(certificate.chain),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(authority),
        "listener.name.mtls.ssl.client.auth": "required",
        "ssl.principal.mapping.rules": "RULE:^CN=([^,]+),.*$/$1/,DEFAULT",
    }


def _one_line(pem: Path) -> str:
    return pem.read_text().replace("\n", " ")


def _sasl_properties(mechanisms: Sequence[str], jwks_url: str) -> dict[str, str]:
    users = " ".join(f'user_{user}="{password}"' for user, password in USERS.items())
    options = {"PLAIN": f" {users}"}
    properties = {
        "sasl.enabled.mechanisms": ",".join(mechanisms),
        "sasl.oauthbearer.jwks.endpoint.url": jwks_url,
        "sasl.oauthbearer.expected.issuer": ISSUER,
        "sasl.oauthbearer.expected.audience": AUDIENCE,
        "delegation.token.secret.key": "only brokers know it",
    }
    for listener in SASL_LISTENERS:
        for mechanism in mechanisms:
            prefix = f"listener.name.{listener.lower()}.{mechanism.lower()}"
            jaas = f"{LOGIN_MODULES[mechanism]} required{options.get(mechanism, '')};"
            properties[f"{prefix}.sasl.jaas.config"] = jaas
        if "OAUTHBEARER" in mechanisms:
            prefix = f"listener.name.{listener.lower()}.oauthbearer"
            handler = f"{_OAUTH}.OAuthBearerValidatorCallbackHandler"
            properties[f"{prefix}.sasl.server.callback.handler.class"] = handler
    return properties


def _binding(rule: AclRule) -> AclBinding:
    """Return a rule as the admin client has it."""
    return AclBinding(
        ResourceType(rule.resource),
        rule.name,
        f"User:{rule.user}",
        AclOperation(rule.operation),
        AclPermissionType.ALLOW if rule.allows else AclPermissionType.DENY,
        pattern_type=PatternType.PREFIXED if rule.prefixed else PatternType.LITERAL,
    )


def _scram_format_options() -> list[str]:
    """Return the arguments that give all users passwords when the storage is formatted."""
    options = []
    for mechanism, iterations in _SCRAM.items():
        for user, password in USERS.items():
            credential = f"name={user},iterations={iterations},password={password}"
            options += ["--add-scram", f"{mechanism.mechanism_name}=[{credential}]"]
    return options
