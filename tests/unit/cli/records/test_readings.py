"""What `--key-as` and `--value-as` make of bytes, in each format."""

from __future__ import annotations

import json
import struct

import pytest

from kafka_fast.cli.records.readings import KINDS
from kafka_fast.cli.records.rendering import Readings, make_render
from kafka_fast.consumer import ConsumerRecord
from kafka_fast.errors import SerializationError, UsageError

LONG = struct.pack(">q", -5)
NAN = struct.pack(">d", float("nan"))


def record(key: bytes | None, value: bytes | None) -> ConsumerRecord:
    return ConsumerRecord("t", 0, 3, key, value, timestamp_ms=1, headers=[("a", b"1")])


@pytest.mark.parametrize(
    ("kind", "data", "text", "in_json"),
    [
        ("bytes", b"a", b"a", "a"),
        ("string", "ä".encode(), "ä".encode(), "ä"),
        ("json", b'{"b": [1, "\xc3\xa4"]}', '{"b":[1,"ä"]}'.encode(), {"b": [1, "ä"]}),
        ("json", b"null", b"null", None),
        ("integer", struct.pack(">i", 7), b"7", 7),
        ("long", LONG, b"-5", -5),
        ("double", struct.pack(">d", 0.1), b"0.1", 0.1),
        ("double", NAN, b"nan", "nan"),
        ("long", None, b"null", None),
    ],
)
def test_kinds(kind: str, data: bytes | None, text: bytes, in_json: object) -> None:
    one = record(data, data)
    readings = Readings(kind, kind)
    assert make_render("value", readings)([one]) == text + b"\n"
    assert make_render("key", readings)([one]) == text + b"\n"
    assert make_render("%k=%v", readings)([one]) == text + b"=" + text
    line = json.loads(make_render("json", readings)([one]))
    assert (line["key"], line["value"]) == (in_json, in_json)
    assert line["headers"] == [{"name": "a", "value": "1"}]


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "bytes"])
def test_what_is_no_such_thing(kind: str) -> None:
    bad = record(b"\xff", b"")
    with pytest.raises(SerializationError, match=f"t-0, offset 3: the key is no {kind}: "):
        make_render("%k", Readings(key=kind))([bad])


def test_half_a_character_of_json_is_written_as_json_has_it() -> None:
    """Regression: it is no UTF-8, and ended the command with a traceback."""
    one = record(None, b'{"a": "\\ud800"}')
    readings = Readings(value="json")
    assert make_render("value", readings)([one]) == b'{"a":"\\ud800"}\n'
    assert make_render("%v", readings)([one]) == b'{"a":"\\ud800"}'
    assert json.loads(make_render("json", readings)([one]))["value"] == {"a": "\ud800"}


def test_json_that_is_nested_too_deep() -> None:
    deep = record(None, b"[" * 100_000)
    with pytest.raises(SerializationError, match="the value is no json"):
        make_render("value", Readings(value="json"))([deep])


def test_hex_shows_bytes() -> None:
    with pytest.raises(UsageError, match="leave --key-as and --value-as out"):
        make_render("hex", Readings(key="long"))
