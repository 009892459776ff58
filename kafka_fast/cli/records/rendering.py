r"""Records as bytes for people and for pipes.

* value: the value and a line feed, byte for byte;
* json: one object per line; bytes that are not UTF-8 stand in `key_base64`, `value_base64`;
* hex: key, tab, value, in hexadecimal digits;
* any other text: a template, in which % letters stand for parts of the record.

A null, such as the value of a tombstone, is shown as `null` everywhere. Only json and hex tell a
null from the text `null`.
"""

from __future__ import annotations

import base64
import json
import os
import re
from collections.abc import Callable
from typing import TypeAlias

from kafka_fast.cli.records.escapes import unescape
from kafka_fast.consumer import ConsumerRecord, ConsumerRecords
from kafka_fast.errors import UsageError

Render: TypeAlias = Callable[[ConsumerRecords], bytes]

NULL = b"null"

_PLACE = re.compile(rb"%(.|$)", re.DOTALL)


def make_render(form: str) -> Render:
    """Return a function that renders records as one block of bytes.

    Raises:
        UsageError: a % letter is unknown, or there is none.
    """
    if form == "value":
        return _values
    if form == "json":
        return _json
    if form == "hex":
        return _hex
    return _template(unescape(os.fsencode(form)))


def _values(records: ConsumerRecords) -> bytes:
    values = records.values()
    try:
        block = b"\n".join(values)
    except TypeError:  # tombstones
        block = b"\n".join([NULL if value is None else value for value in values])
    return block + b"\n" if values else b""


def _json(records: ConsumerRecords) -> bytes:
    return "".join(
        json.dumps(_as_dict(record), ensure_ascii=False, separators=(",", ":")) + "\n"
        for record in records
    ).encode()


def _as_dict(record: ConsumerRecord) -> dict[str, object]:
    return {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp_ms": record.timestamp_ms,
        **_text("key", record.key),
        **_text("value", record.value),
        "headers": [{"name": name, **_text("value", value)} for name, value in record.headers],
    }


def _text(name: str, data: bytes | None) -> dict[str, str | None]:
    if data is None:
        return {name: None}
    try:
        return {name: data.decode()}
    except UnicodeDecodeError:
        return {f"{name}_base64": base64.b64encode(data).decode()}


def _hex(records: ConsumerRecords) -> bytes:
    return "".join(
        f"{_digits(record.key)}\t{_digits(record.value)}\n" for record in records
    ).encode()


def _digits(data: bytes | None) -> str:
    return NULL.decode() if data is None else data.hex()


def _shown(data: bytes | None) -> bytes:
    return NULL if data is None else data


_FIELDS: dict[bytes, Callable[[ConsumerRecord], bytes]] = {
    b"t": lambda record: record.topic.encode(),
    b"p": lambda record: b"%d" % record.partition,
    b"o": lambda record: b"%d" % record.offset,
    b"T": lambda record: b"%d" % record.timestamp_ms,
    b"k": lambda record: _shown(record.key),
    b"v": lambda record: _shown(record.value),
    b"h": lambda record: b",".join(
        name.encode() + b"=" + _shown(value) for name, value in record.headers
    ),
    b"%": lambda record: b"%",
}


def _template(text: bytes) -> Render:
    # Odd pieces are the % letters, even pieces the text between them.
    pieces = _PLACE.split(text)
    if len(pieces) == 1:
        known = "value, json, hex, or a text with % letters such as %v"
        raise UsageError(f"the format {os.fsdecode(text)!r} shows nothing of a record: {known}")
    for letter in pieces[1::2]:
        if letter not in _FIELDS:
            known = ", ".join("%" + field.decode() for field in _FIELDS)
            raise UsageError(f"the format has %{os.fsdecode(letter)}; known are {known}")
    parts: list[bytes | Callable[[ConsumerRecord], bytes]] = [
        _FIELDS[piece] if index % 2 else piece for index, piece in enumerate(pieces)
    ]

    def render(records: ConsumerRecords) -> bytes:
        return b"".join(
            part if isinstance(part, bytes) else part(record)
            for record in records
            for part in parts
        )

    return render
