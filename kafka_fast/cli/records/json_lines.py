"""Records as lines of JSON: what `consume --format json` writes and `produce --format json` reads.

    {"topic": "users", "partition": 0, "offset": 1, "timestamp_ms": 1772323200000,
     "key": "8", "value_base64": "/w==", "headers": [{"name": "source", "value": null}]}

Nothing is lost: bytes that are not UTF-8 stand in `key_base64` and `value_base64`, and null is not
the empty text. What is read back has the same key, value, headers and timestamp.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from kafka_fast.errors import UsageError
from kafka_fast.types import Header
from kafka_fast.values import Value

if TYPE_CHECKING:
    from kafka_fast.consumer import ConsumerRecord

LONGEST_BYTE = 6
"""Most characters that a byte of a record takes in a line, such as \\u0001."""
MOST_AROUND = 1 << 16
"""More than a line has beside what the record has."""

_LAST = 2**63 - 1
_LAST_PARTITION = 2**31 - 1


def line_of(record: ConsumerRecord, key: dict[str, Any], value: dict[str, Any]) -> str:
    """Return a record as one line.

    Args:
        record: which one.
        key: its key, as `plain` returns it, or in another form.
        value: its value.
    """
    fields = {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp_ms": record.timestamp_ms,
        **key,
        **value,
        "headers": [{"name": name, **plain("value", data)} for name, data in record.headers],
    }
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":")) + "\n"


def plain(name: str, data: bytes | None) -> dict[str, str | None]:
    """Return bytes as text if they are UTF-8, and in base64 under another name if not."""
    if data is None:
        return {name: None}
    try:
        return {name: data.decode()}
    except UnicodeDecodeError:
        return {f"{name}_base64": base64.b64encode(data).decode()}


class RecordColumns(Value):
    """What lines say of the records to send; None: nothing is said of this one."""

    keys: list[bytes | None]
    values: list[bytes | None]
    headers: list[list[Header] | None]
    timestamps_ms: list[int | None]
    partitions: list[int | None]


def read_records(lines: Iterable[bytes], first_line: int) -> RecordColumns:
    """Return the records of lines.

    Args:
        lines: an object each. Its topic and offset are not looked at.
        first_line: number of the first line, for the message.

    Raises:
        UsageError: a line is not as it must be.
    """
    columns = RecordColumns([], [], [], [], [])
    for number, line in enumerate(lines, first_line):
        _add_line(columns, number, line)
    return columns


def _add_line(columns: RecordColumns, number: int, line: bytes) -> None:
    try:
        _add_record(columns, _object(json.loads(line.decode())))
    except RecursionError:
        raise UsageError(f"line {number}: its JSON is nested too deep") from None
    except (ValueError, TypeError) as error:
        raise UsageError(f"line {number}: {error}") from error


def _add_record(columns: RecordColumns, fields: dict[str, Any]) -> None:
    """Add a record to the columns.

    Raises:
        TypeError, ValueError: a field is not what it must be.
    """
    columns.keys.append(_bytes(fields, "key", is_needed=False))
    columns.values.append(_bytes(fields, "value", is_needed=True))
    headers = fields.get("headers") or ()
    if not isinstance(headers, (list, tuple)):
        raise TypeError("its headers are no list")
    columns.headers.append([_header(_object(header)) for header in headers] or None)
    timestamp = _number(fields, "timestamp_ms", -1, _LAST)  # -1: the record had none
    columns.timestamps_ms.append(None if timestamp == -1 else timestamp)
    columns.partitions.append(_number(fields, "partition", 0, _LAST_PARTITION))


def _header(fields: dict[str, Any]) -> Header:
    name = fields.get("name")
    if not isinstance(name, str):
        raise TypeError("a header has no name")
    return name, _bytes(fields, "value", is_needed=True)


def _object(document: Any) -> dict[str, Any]:
    if not isinstance(document, dict):
        raise TypeError("this is no JSON object")
    return document


def _bytes(fields: dict[str, Any], name: str, *, is_needed: bool) -> bytes | None:
    in_base64 = f"{name}_base64"
    if in_base64 in fields:
        text = fields[in_base64]
        if name in fields:
            raise ValueError(f"it has both {name} and {in_base64}")
        try:
            return base64.b64decode(text, validate=True)
        except (binascii.Error, TypeError, ValueError):
            raise ValueError(f"its {in_base64} is no base64") from None
    if name not in fields and is_needed:
        raise ValueError(f"it has no {name}; null is a {name}, too")
    text = fields.get(name)
    if text is None:
        return None
    if not isinstance(text, str):
        raise TypeError(
            f"its {name} is neither text nor null: what consume shows with --{name}-as cannot be "
            "sent back"
        )
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise ValueError(f"its {name} has half of a surrogate pair, which no UTF-8 has") from None


def _number(fields: dict[str, Any], name: str, least: int, most: int) -> int | None:
    number = fields.get(name)
    if number is None:
        return None
    if type(number) is not int or not least <= number <= most:
        raise ValueError(f"its {name} is no number that one can be")
    return number
