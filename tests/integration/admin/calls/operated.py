"""A cluster that an operator has to run: users with and without rights, several log directories.

alice may do everything, bob nothing. With KRaft the quorum of controllers is a dynamic one, and
guests may join it.
"""

from __future__ import annotations

from collections.abc import Mapping

from kafka_fast.testing._client_properties import LOGIN_MODULES, login_properties
from kafka_fast.testing._kafka.broker_jars import release
from kafka_fast.testing._kafka.real_kafka import RealKafka

LISTENER = "SASL_PLAINTEXT"
PASSWORDS: Mapping[str, str] = {"alice": "alice-secret", "bob": "bob-secret"}
SCRAM = "SCRAM-SHA-256"
ITERATIONS = 4096


def operated_kafka(version: str, nodes: int = 1) -> RealKafka:
    """Return a cluster that is not started.

    Args:
        version: a key of `broker_jars.RELEASES`.
        nodes: 1 or 3.
    """
    users = " ".join(f'user_{user}="{password}"' for user, password in PASSWORDS.items())
    jaas = f"listener.name.{LISTENER.lower()}"
    is_kraft = release(version).kraft
    overrides = {
        "authorizer.class.name": _authorizer(version),
        "super.users": "User:ANONYMOUS;User:alice",  # ANONYMOUS: the brokers, and the harness
        "sasl.enabled.mechanisms": f"PLAIN,{SCRAM}",
        f"{jaas}.plain.sasl.jaas.config": f"{LOGIN_MODULES['PLAIN']} required {users};",
        f"{jaas}.{SCRAM.lower()}.sasl.jaas.config": f"{LOGIN_MODULES[SCRAM]} required;",
        "delegation.token.master.key": "only brokers know it",  # before Kafka 2.8
        "delegation.token.secret.key": "only brokers know it",
    }
    if is_kraft:
        overrides.pop("delegation.token.master.key")
    scram = [
        f"{SCRAM}=[name={user},iterations={ITERATIONS},password={password}]"
        for user, password in PASSWORDS.items()
    ]
    return RealKafka(
        nodes,
        version,
        overrides=overrides,
        listeners={LISTENER: LISTENER},
        log_dirs=2,
        dynamic_quorum=is_kraft,
        format_options=[word for one in scram for word in ("--add-scram", one)],
    )


def login(kafka: RealKafka, user: str, mechanism: str = "PLAIN") -> dict[str, str]:
    """Return the properties of a client that logs in, by Java's names."""
    return {
        "bootstrap.servers": kafka.bootstrap_of(LISTENER),
        "security.protocol": LISTENER,
        "allow.insecure.sasl": "true",
        **login_properties(mechanism, username=user, password=PASSWORDS[user]),
    }


def peer_login(kafka: RealKafka, user: str) -> dict[str, str]:
    """Return the same for librdkafka."""
    return {
        "bootstrap.servers": kafka.bootstrap_of(LISTENER),
        "security.protocol": LISTENER,
        "sasl.mechanism": "PLAIN",
        "sasl.username": user,
        "sasl.password": PASSWORDS[user],
    }


def _authorizer(version: str) -> str:
    if release(version).kraft:
        return "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
    if version.startswith("2.1"):
        return "kafka.security.auth.SimpleAclAuthorizer"
    return "kafka.security.authorizer.AclAuthorizer"
