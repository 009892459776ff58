"""A slow, obvious message codec: the oracle of the compiled one.

It walks the same tables (which another test compares with Apache's definitions), but shares no
code with the programs that run them: values are plain dicts, bytes go through `struct`, and each
rule of the protocol guide is one line.
"""

from __future__ import annotations

import random
import struct
from typing import Any

from kafka_fast.protocol import consumer, control_records, headers
from kafka_fast.protocol.apis import api_keys, request_class, response_class
from kafka_fast.protocol.schema import Field, Message, Struct

#: Every message that has a table.
MESSAGES: list[type[Message]] = [
    *(request_class(key) for key in api_keys()),
    *(response_class(key) for key in api_keys()),
    headers.RequestHeader,
    headers.ResponseHeader,
    consumer.ConsumerProtocolSubscription,
    consumer.ConsumerProtocolAssignment,
    control_records.ControlRecordTypeSchema,
    control_records.EndTxnMarker,
    control_records.AbortedTxn,
]

#: (message, version): all there is, about 570.
ALL = [
    (message, version)
    for message in MESSAGES
    for version in range(message.versions.low, message.versions.high + 1)
]

FIXED = {
    "int8": ">b",
    "int16": ">h",
    "uint16": ">H",
    "int32": ">i",
    "uint32": ">I",
    "int64": ">q",
    "float64": ">d",
}
LENGTHS = {"string": ">h", "bytes": ">i", "records": ">i", "array": ">i"}


def as_dict(message: Struct) -> dict[str, Any]:
    """Return a message as plain values."""
    return {field.name: plain(getattr(message, field.name)) for field in message._fields}


def as_text(message: Struct) -> str:
    """Return all of a message's values: for comparisons in which a NaN is equal to itself."""
    return repr(as_dict(message))


def plain(value: Any) -> Any:
    """Return a field's value as plain values."""
    if isinstance(value, Struct):
        return as_dict(value)
    if isinstance(value, list):
        return [plain(item) for item in value]
    return bytes(value) if isinstance(value, memoryview) else value


def from_dict(cls: type[Struct], values: dict[str, Any]) -> Any:
    """Return the message that `as_dict` would turn into these values."""

    def build(field: Field, value: Any) -> Any:
        if field.struct is None or value is None:
            return value
        if field.wire_type.name == "array":
            return [from_dict(field.struct, item) for item in value]
        return from_dict(field.struct, value)

    return cls(**{field.name: build(field, values[field.name]) for field in cls._fields})


def default(field: Field) -> Any:
    """Return the plain default of a field."""
    if field.default is None:
        return None
    if field.wire_type.name == "struct":
        return defaults(field.struct)
    return [] if field.wire_type.name == "array" else field.default


def defaults(cls: type[Struct]) -> dict[str, Any]:
    """Return the plain defaults of a struct."""
    return {field.name: default(field) for field in cls._fields}


# ---- writing ----


def uvarint(value: int) -> bytes:
    """Encode an unsigned varint."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def encode(cls: type[Message], values: dict[str, Any], version: int) -> bytes:
    """Encode a message."""
    return write_struct(cls, values, version, version in cls.flexible)


def write_struct(cls: type[Struct], values: dict[str, Any], version: int, flexible: bool) -> bytes:
    """Encode the fields that the version has, then the tagged ones that are set."""
    out = b""
    tagged = {}
    for field in cls._fields:
        if version not in field.versions:
            continue
        if version in field.tagged:
            if values[field.name] != default(field):
                tagged[field.tag] = write(field, values[field.name], version, flexible)
        else:
            out += write(field, values[field.name], version, flexible)
    if flexible:
        out += uvarint(len(tagged))
        for tag in sorted(tagged):
            out += uvarint(tag) + uvarint(len(tagged[tag])) + tagged[tag]
    return out


def write(field: Field, value: Any, version: int, flexible: bool) -> bytes:
    """Encode one field."""
    kind = field.wire_type.name
    compact = flexible if field.flexible is None else version in field.flexible
    if kind == "array":
        if value is None:
            return write_length(kind, None, compact)
        items = (write_item(field.item.name, field, item, version, flexible) for item in value)
        return write_length(kind, len(value), compact) + b"".join(items)
    if kind == "struct" and version in field.nullable:
        if value is None:
            return b"\xff"
        return b"\x01" + write_struct(field.struct, value, version, flexible)
    return write_item(kind, field, value, version, compact)


def write_item(kind: str, field: Field, value: Any, version: int, compact: bool) -> bytes:
    """Encode a value that is not an array."""
    if kind == "struct":
        return write_struct(field.struct, value, version, compact)
    if kind == "bool":
        return b"\x01" if value else b"\x00"
    if kind == "uuid":
        return value
    if kind in FIXED:
        return struct.pack(FIXED[kind], value)
    if value is None:
        return write_length(kind, None, compact)
    data = value.encode() if kind == "string" else bytes(value)
    return write_length(kind, len(data), compact) + data


def write_length(kind: str, length: int | None, compact: bool) -> bytes:
    """Encode a length or count; None is null."""
    if compact:
        return uvarint(0 if length is None else length + 1)
    return struct.pack(LENGTHS[kind], -1 if length is None else length)


# ---- reading ----


class Reader:
    """Takes bytes from the front."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def take(self, size: int) -> bytes:
        """Return the next `size` bytes."""
        taken, self.data = self.data[:size], self.data[size:]
        assert len(taken) == size
        return taken

    def fixed(self, layout: str) -> Any:
        """Return the next number."""
        return struct.unpack(layout, self.take(struct.calcsize(layout)))[0]

    def uvarint(self) -> int:
        """Return the next unsigned varint."""
        byte = self.take(1)[0]
        return byte if byte < 0x80 else byte & 0x7F | self.uvarint() << 7

    def length(self, kind: str, compact: bool) -> int:
        """Return the next length or count, -1 for null."""
        return self.uvarint() - 1 if compact else self.fixed(LENGTHS[kind])


def decode(cls: type[Message], data: bytes, version: int) -> dict[str, Any]:
    """Decode a message."""
    reader = Reader(data)
    values = read_struct(cls, reader, version, version in cls.flexible)
    assert not reader.data
    return values


def read_struct(cls: type[Struct], reader: Reader, version: int, flexible: bool) -> dict[str, Any]:
    """Decode the fields that the version has; the others have their defaults."""
    values = defaults(cls)
    tagged = {}
    for field in cls._fields:
        if version not in field.versions:
            continue
        if version in field.tagged:
            tagged[field.tag] = field
        else:
            values[field.name] = read(field, reader, version, flexible)
    if flexible:
        for _ in range(reader.uvarint()):
            tag, size = reader.uvarint(), reader.uvarint()
            part = Reader(reader.take(size))
            if tag in tagged:
                values[tagged[tag].name] = read(tagged[tag], part, version, flexible)
                assert not part.data
    return values


def read(field: Field, reader: Reader, version: int, flexible: bool) -> Any:
    """Decode one field."""
    kind = field.wire_type.name
    compact = flexible if field.flexible is None else version in field.flexible
    if kind == "array":
        count = reader.length(kind, compact)
        if count < 0:
            return None
        return [read_item(field.item.name, field, reader, version, flexible) for _ in range(count)]
    if kind == "struct" and version in field.nullable and reader.fixed(">b") < 0:
        return None
    return read_item(kind, field, reader, version, compact)


def read_item(kind: str, field: Field, reader: Reader, version: int, compact: bool) -> Any:
    """Decode a value that is not an array."""
    if kind == "struct":
        return read_struct(field.struct, reader, version, compact)
    if kind == "bool":
        return reader.take(1) != b"\x00"
    if kind == "uuid":
        return reader.take(16)
    if kind in FIXED:
        return reader.fixed(FIXED[kind])
    length = reader.length(kind, compact)
    if length < 0:
        return None
    data = reader.take(length)
    return data.decode() if kind == "string" else data


# ---- messages to try ----

RANGES = {
    "int8": (-(1 << 7), (1 << 7) - 1),
    "int16": (-(1 << 15), (1 << 15) - 1),
    "uint16": (0, (1 << 16) - 1),
    "int32": (-(1 << 31), (1 << 31) - 1),
    "uint32": (0, (1 << 32) - 1),
    "int64": (-(1 << 63), (1 << 63) - 1),
}
TEXTS = ("", "t", "topic-1", "häß", "\N{SNOWMAN}" * 50, "x" * 200)


def random_struct(cls: type[Struct], version: int, rng: random.Random) -> dict[str, Any]:
    """Return values that this version can carry; fields it does not have keep their defaults."""
    return {
        field.name: random_value(field, version, rng)
        if version in field.versions
        else default(field)
        for field in cls._fields
    }


def random_value(field: Field, version: int, rng: random.Random) -> Any:
    """Return a value for one field: null, its default, an extreme or anything."""
    if version in field.nullable and rng.random() < 0.2:
        return None
    if field.wire_type.name != "array":
        return random_item(field.wire_type.name, field, version, rng)
    return [
        random_item(field.item.name, field, version, rng)
        for _ in range(rng.choice((0, 1, 1, 2, 3)))
    ]


def random_item(kind: str, field: Field, version: int, rng: random.Random) -> Any:
    """Return a value that is neither null nor an array."""
    if kind == "struct":
        return random_struct(field.struct, version, rng)
    if kind == "bool":
        return rng.random() < 0.5
    if kind == "float64":
        return rng.choice((0.0, -1.5, 1e300))
    if kind == "uuid":
        return rng.choice((bytes(16), bytes(range(16))))
    if kind == "string":
        return rng.choice(TEXTS)
    if kind in ("bytes", "records"):
        return rng.choice((b"", b"\x00", b"bytes" * 40))
    low, high = RANGES[kind]
    return rng.choice((low, high, 0, 1, rng.randint(low, high)))
