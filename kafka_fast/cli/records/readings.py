"""What keys and values are read as: `--key-as` and `--value-as` of `kafka-fast consume`.

The names are those of the client's own deserializers: `--value-as long` is a LongDeserializer.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any, TypeAlias

from kafka_fast.cli.records.json_lines import plain
from kafka_fast.consumer import ConsumerRecord
from kafka_fast.errors import SerializationError
from kafka_fast.serialization import DESERIALIZERS, Deserializer

BYTES = "bytes"
KINDS = (BYTES, "string", "json", "integer", "long", "double")

NULL = b"null"

HALVES = "backslashreplace"
"""What becomes of halves of characters, which JSON may have and UTF-8 has not: \\ud800."""

Reading: TypeAlias = Callable[[ConsumerRecord], Any]
"""Returns a record's key or value: bytes, a text, a number or what JSON is; None: it is null."""


def reading_of(name: str, kind: str) -> Reading:
    """Return a function that reads the key or the value of a record.

    It raises SerializationError, which names the record.

    Args:
        name: key or value.
        kind: a member of `KINDS`.
    """
    if kind == BYTES:
        return _key if name == "key" else _value
    deserializer: Deserializer = DESERIALIZERS[f"{kind.title()}Deserializer"]()
    bytes_of = _key if name == "key" else _value

    def read(record: ConsumerRecord) -> Any:
        try:
            return deserializer.deserialize(record.topic, bytes_of(record), None)
        except SerializationError as error:
            raise SerializationError(
                f"{record.topic}-{record.partition}, offset {record.offset}: the {name} is no "
                f"{kind}: {error}"
            ) from error

    return read


def shown(part: Any) -> bytes:
    """Return a key or a value for people."""
    if part is None:
        return NULL
    if isinstance(part, bytes):
        return part
    return (part if isinstance(part, str) else _json(part)).encode(errors=HALVES)


def in_json(name: str, part: Any) -> dict[str, Any]:
    """Return a key or a value as the fields of a JSON object."""
    if part is None or isinstance(part, bytes):
        return plain(name, part)
    if isinstance(part, float) and not math.isfinite(part):
        return {name: str(part)}  # JSON has no such number
    return {name: part}


def _json(part: Any) -> str:
    if isinstance(part, float):
        return repr(part)
    return json.dumps(part, ensure_ascii=False, separators=(",", ":"))


def _key(record: ConsumerRecord) -> bytes | None:
    key: bytes | None = record.key
    return key


def _value(record: ConsumerRecord) -> bytes | None:
    value: bytes | None = record.value
    return value
