"""The table against the Java client's own definitions, printed from its 4.4.0 jar."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kafka_fast.config import KEYS, ConsumerConfig, Key, ProducerConfig, ValueKind

DEFINITIONS = Path(__file__).with_name("config_java_4.4.0.txt")

KINDS = {
    "BOOLEAN": {ValueKind.BOOLEAN},
    "INT": {ValueKind.INT},
    "LONG": {ValueKind.INT},
    "SHORT": {ValueKind.INT},
    "DOUBLE": {ValueKind.FLOAT},
    "STRING": {ValueKind.STRING, ValueKind.INT},  # acks
    "PASSWORD": {ValueKind.PASSWORD},
    "LIST": {ValueKind.LIST, ValueKind.ADDRESSES},
    "CLASS": {
        ValueKind.STRING,
        ValueKind.SERIALIZER,
        ValueKind.DESERIALIZER,
        ValueKind.PARTITIONER,
    },
}

# Defaults that only a JVM can have.
JVM_ONLY = {
    "ssl.keymanager.algorithm",
    "ssl.trustmanager.algorithm",
    "sasl.oauthbearer.jwt.retriever.class",
    "sasl.oauthbearer.jwt.validator.class",
}

# An operation of our admin client is tried again until its timeout, as Java's is by default.
NOT_OURS = {("admin", "retries")}


def _definitions() -> list[tuple[str, str, str, str, str]]:
    rows, clients = [], ["producer", "consumer", "admin"]
    for line in DEFINITIONS.read_text().splitlines():
        if line.startswith("----"):
            del clients[0]
        elif not line.startswith("#"):
            name, kind, default, validator = line.split("|")
            rows.append((clients[0], name, kind, default, validator))
    return [row for row in rows if row[:2] not in NOT_OURS]


def _as_java(key: Key, value: object) -> str:
    """Return a default of ours as Java prints its own."""
    if key.name == "acks":
        return "all"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return f"[{', '.join(value)}]"
    if key.kind is ValueKind.PARTITIONER or value is None:
        return "null"
    return str(value)


@pytest.mark.parametrize(("client", "name", "kind", "default", "validator"), _definitions())
def test_key(client: str, name: str, kind: str, default: str, validator: str) -> None:
    key = KEYS[name]
    assert client in key.clients
    assert not key.own
    assert key.kind in KINDS[kind]
    if default != "REQUIRED" and name not in JVM_ONLY and not key.differs:
        java = re.sub(r"class [\w.]*\.(\w+)Assignor", r"\1", default)
        java = java.replace("Range, CooperativeSticky", "range, cooperative-sticky")
        assert _as_java(key, key.default_of(client)).lower() == java.lower()
    least = re.match(r"\[(-?\d+),\.\.\.", validator)
    if least and not key.differs and key.kind is ValueKind.INT and not key.pending:
        low = key.low if key.low is not None else min(key.choices)  # type: ignore[type-var]
        assert low == int(least[1])
    if validator.startswith(("[", "(")) and "..." not in validator and not key.pattern:
        choices = re.sub(r"^\(case insensitive\) ", "", validator).strip("[]").lower().split(", ")
        ours = {str(choice).lower() for choice in (*key.choices, *key.later, *key.words)}
        assert set(choices) <= ours or key.pending


def test_nothing_else_claims_to_be_javas() -> None:
    java = {name for _, name, *_ in _definitions()}
    assert {key.name for key in KEYS.values() if not key.own} == java


@pytest.mark.parametrize(
    ("names", "client"), [(ProducerConfig, "producer"), (ConsumerConfig, "consumer")]
)
def test_constants_are_the_table(names: type, client: str) -> None:
    constants = {value for name, value in vars(names).items() if name[0].isupper()}
    security = ("ssl.", "sasl.", "security.protocol", "on.delivery")
    elsewhere = {"metadata.recovery.strategy", "metadata.recovery.rebootstrap.trigger.ms",
                 "metadata.cluster.check.enable", "config.providers"}  # fmt: skip
    assert (
        constants
        == {
            key.name
            for key in KEYS.values()
            if client in key.clients and not key.name.startswith(security) and not key.field
        }
        - elsewhere
    )
