"""The types of the properties say what the table says."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Sequence
from typing import Any, Literal, get_type_hints

import pytest

from kafka_fast.config import KEYS, Key, Partitioner, ValueKind
from kafka_fast.config.properties import (
    CommonProperties,
    ConsumerProperties,
    Password,
    ProducerProperties,
    TokenProvider,
)
from kafka_fast.serialization import DeserializerLike, SerializerLike

PLAIN: dict[ValueKind, Any] = {
    ValueKind.BOOLEAN: bool,
    ValueKind.INT: int,
    ValueKind.FLOAT: float,
    ValueKind.STRING: str,
    ValueKind.ADDRESSES: str | Sequence[str],
    ValueKind.LIST: str | Sequence[object],
    ValueKind.PASSWORD: Password,
    ValueKind.CALLABLE: Callable[..., object],
    ValueKind.CONTEXT: ssl.SSLContext,
    ValueKind.TOKEN_PROVIDER: TokenProvider,
    ValueKind.SERIALIZER: SerializerLike,
    ValueKind.DESERIALIZER: DeserializerLike,
}
CHOICES_LISTED = 5
"""More numbers than that are a range, which no type can say."""


def type_of(key: Key) -> Any:
    if key.kind is ValueKind.PARTITIONER:
        return Literal[key.choices] | Partitioner | None  # type: ignore[operator]
    plain_type = PLAIN[key.kind]
    few = key.kind is ValueKind.STRING or (
        key.kind is ValueKind.INT and len(key.choices) < CHOICES_LISTED
    )
    if key.choices and few:
        plain_type = Literal[key.choices + tuple({"all"} & set(key.words))]
    return plain_type | None if key.nullable or "none" in key.words else plain_type


@pytest.mark.parametrize(
    ("kind", "client"),
    [(CommonProperties, ""), (ProducerProperties, "producer"), (ConsumerProperties, "consumer")],
)
def test_names_and_types_are_the_tables(kind: type[object], client: str) -> None:
    expected = {
        key.field_name: type_of(key)
        for key in KEYS.values()
        if not (key.pending or key.ignored or (key.refused and not key.choices))
        and key.name != "on.delivery"  # a parameter of its own
        and (client in key.clients if client else len(key.clients) == 3)
    }
    assert get_type_hints(kind, localns={"ssl": ssl}) == expected
