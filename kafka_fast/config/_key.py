"""What the configuration table is made of: one `Key` says all there is to know of one property.

The tables `_common`, `_producer`, `_consumer`, `_admin` and `_security` are lists of these; the
normaliser, the settings classes and the reference page read nothing else.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from kafka_fast.values import Value

INT_MAX = 2**31 - 1
LONG_MAX = 2**63 - 1

PRODUCER = "producer"
CONSUMER = "consumer"
ADMIN = "admin"
EVERY_CLIENT = (PRODUCER, CONSUMER, ADMIN)

_NOTHING: Mapping[str, object] = MappingProxyType({})


class ValueKind(enum.Enum):
    """The type of a property's value; the value of the member is what the page prints."""

    BOOLEAN = "boolean"
    INT = "int"
    FLOAT = "float"
    STRING = "string"
    PASSWORD = "password"
    LIST = "list"
    ADDRESSES = "list of host:port"
    SERIALIZER = "serializer"
    DESERIALIZER = "deserializer"
    PARTITIONER = "partitioner"
    CALLABLE = "callable"
    CONTEXT = "ssl.SSLContext"
    TOKEN_PROVIDER = "token provider"


class Alias(NamedTuple):
    """Another client's name for a property."""

    name: str
    """Lower case, dotted: what the user's spelling becomes."""
    peer: str
    """The client that uses this name."""
    scale: int = 1
    """The alias's unit in units of the property (1024 for a property in bytes named in KiB)."""


class Key(Value, kw_only=True, eq=False):
    """One property.

    A key whose feature this version lacks has `pending` set: it accepts its default, which asks
    for nothing, and refuses every other value. `later` does the same for single choices.
    """

    name: str
    """Canonical: the Java client's name, or ours in the same style."""
    kind: ValueKind
    default: object
    doc: str
    """One or two sentences for the reference page."""
    unit: str = ""
    low: int | float | None = None
    high: int | float | None = None
    choices: tuple[object, ...] = ()
    """All the values allowed, if they can be listed."""
    pattern: str = ""
    """Regular expression of the strings allowed, if they cannot be listed."""
    method: str = ""
    """Of a list: objects that have this method are values as well, and stand for themselves."""
    later: tuple[str, ...] = ()
    """Choices that Kafka knows and this version does not support yet."""
    words: Mapping[str, object] = _NOTHING
    """Other spellings of a value, lower case -> value ("all" -> -1, "none" also means None)."""
    aliases: tuple[Alias, ...] = ()
    clients: tuple[str, ...] = EVERY_CLIENT
    default_for: Mapping[str, object] = _NOTHING
    """Client -> default, where it is not the same for all."""
    field: str = ""
    """Name of the settings' field that the property becomes a part of; empty: its own name's."""
    pending: str = ""
    """The feature that must exist before the key means anything; empty if it does."""
    refused: str = ""
    """Why values other than the default and the choices are refused, and what to do instead."""
    ignored: str = ""
    """Why every value is accepted and means nothing."""
    own: bool = False
    """True if Java has no such key."""
    differs: str = ""
    """Java's default and why ours is another, where it is."""
    since: str = "0.1"

    @property
    def field_name(self) -> str:
        """The name as a Python attribute and keyword: `linger_ms`."""
        return self.name.replace(".", "_")

    @property
    def nullable(self) -> bool:
        """True if None is a value."""
        return self.default is None

    def default_of(self, client: str) -> object:
        """Return the default that this key has in that client."""
        return self.default_for.get(client, self.default)


def confluent(*names: str, scale: int = 1) -> tuple[Alias, ...]:
    """Return aliases known from librdkafka and confluent-kafka."""
    return tuple(Alias(name, "confluent-kafka", scale) for name in names)


def aiokafka(*names: str) -> tuple[Alias, ...]:
    """Return aliases known from aiokafka."""
    return tuple(Alias(name, "aiokafka") for name in names)


def kafka_python(*names: str) -> tuple[Alias, ...]:
    """Return aliases known from kafka-python (aiokafka mostly has the same)."""
    return tuple(Alias(name, "kafka-python") for name in names)
