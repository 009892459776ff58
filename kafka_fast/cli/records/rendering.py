r"""Records as bytes for people and for pipes.

* value, key: the value or the key, and a line feed, byte for byte;
* json: one object per line, see `json_lines`;
* hex: key, tab, value, in hexadecimal digits;
* any other text: a template, in which % letters stand for parts of the record.

A null, such as the value of a tombstone, is shown as `null` everywhere. Only json and hex tell a
null from the text `null`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from functools import partial
from typing import TypeAlias

from kafka_fast.cli.records.escapes import unescape
from kafka_fast.cli.records.json_lines import line_of
from kafka_fast.cli.records.readings import BYTES, HALVES, NULL, Reading, in_json, reading_of, shown
from kafka_fast.consumer import ConsumerRecord, ConsumerRecords
from kafka_fast.errors import UsageError
from kafka_fast.values import Value

Records: TypeAlias = ConsumerRecords | list[ConsumerRecord]
Render: TypeAlias = Callable[[Records], bytes]

_PLACE = re.compile(rb"%(h\{[^}]*\}|.|$)", re.DOTALL)


class Readings(Value):
    """What keys and values are read as: members of `readings.KINDS`."""

    key: str = BYTES
    value: str = BYTES

    @property
    def are_bytes(self) -> bool:
        """Whether both are shown as they are."""
        return self.key == self.value == BYTES


AS_BYTES = Readings()


def make_render(form: str, readings: Readings = AS_BYTES) -> Render:
    """Return a function that renders records as one block of bytes.

    It raises SerializationError if a key or a value cannot be read.

    Args:
        form: value, key, json, hex or a template.
        readings: what keys and values are.

    Raises:
        UsageError: a % letter is unknown, or there is none.
    """
    key, value = reading_of("key", readings.key), reading_of("value", readings.value)
    if form == "value":
        return _values if readings.value == BYTES else partial(_lines, value)
    if form == "key":
        return partial(_lines, key)
    if form == "json":
        return partial(_json, key, value)
    if form == "hex":
        if not readings.are_bytes:
            raise UsageError("--format hex shows bytes: leave --key-as and --value-as out")
        return _hex
    return _template(unescape(os.fsencode(form)), key, value)


def _values(records: Records) -> bytes:
    if isinstance(records, list):
        return _lines(reading_of("value", BYTES), records)
    values = records.values()
    try:
        block = b"\n".join(values)
    except TypeError:  # tombstones
        block = b"\n".join([NULL if value is None else value for value in values])
    return block + b"\n" if values else b""


def _lines(reading: Reading, records: Records) -> bytes:
    return b"".join([shown(reading(record)) + b"\n" for record in records])


def _json(key: Reading, value: Reading, records: Records) -> bytes:
    return "".join(
        line_of(record, in_json("key", key(record)), in_json("value", value(record)))
        for record in records
    ).encode(errors=HALVES)


def _hex(records: Records) -> bytes:
    return "".join(
        f"{_digits(record.key)}\t{_digits(record.value)}\n" for record in records
    ).encode()


def _digits(data: bytes | None) -> str:
    return NULL.decode() if data is None else data.hex()


_FIELDS: dict[bytes, Callable[[ConsumerRecord], bytes]] = {
    b"t": lambda record: record.topic.encode(),
    b"p": lambda record: b"%d" % record.partition,
    b"o": lambda record: b"%d" % record.offset,
    b"T": lambda record: b"%d" % record.timestamp_ms,
    b"h": lambda record: b",".join(
        name.encode() + b"=" + shown(value) for name, value in record.headers
    ),
    b"%": lambda record: b"%",
}


def _template(text: bytes, key: Reading, value: Reading) -> Render:
    fields = {
        **_FIELDS,
        b"k": lambda record: shown(key(record)),
        b"v": lambda record: shown(value(record)),
    }
    # Odd pieces are the % letters, even pieces the text between them.
    pieces = _PLACE.split(text)
    if len(pieces) == 1:
        known = "value, key, json, hex, or a text with % letters such as %v"
        raise UsageError(f"the format {os.fsdecode(text)!r} shows nothing of a record: {known}")
    for place, letter in enumerate(pieces[1::2]):
        if letter.startswith(b"h{"):
            fields[letter] = partial(_last_header, os.fsdecode(letter[2:-1]))
        elif letter == b"h" and pieces[2 * place + 2].startswith(b"{"):
            raise UsageError("the format has a %h{NAME without its }")
        elif letter not in fields:
            known = ", ".join("%" + field.decode() for field in fields if len(field) == 1)
            raise UsageError(
                f"the format has %{os.fsdecode(letter)}; known are {known} and %h{{NAME}}"
            )
    parts: list[bytes | Callable[[ConsumerRecord], bytes]] = [
        fields[piece] if index % 2 else piece for index, piece in enumerate(pieces)
    ]

    def render(records: Records) -> bytes:
        return b"".join(
            part if isinstance(part, bytes) else part(record)
            for record in records
            for part in parts
        )

    return render


def _last_header(name: str, record: ConsumerRecord) -> bytes:
    """Return the value of the last header of this name, as Java's `lastHeader`; null if none."""
    return next((shown(data) for key, data in reversed(record.headers) if key == name), NULL)
