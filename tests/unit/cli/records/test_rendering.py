"""Forms of records on the command line."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from kafka_fast.cli.records.rendering import make_render
from kafka_fast.consumer import ConsumerRecord
from kafka_fast.errors import UsageError

RECORD = ConsumerRecord(
    "t", 3, 17, b"k\xff", b"v", timestamp_ms=1500, headers=[("a", b"1"), ("b", None)]
)
TOMBSTONE = ConsumerRecord("t", 3, 18, b"k", None, timestamp_ms=1501)


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ("hex", b"6bff\t76\n6b\tnull\n"),
        (r"%t-%p@%o\t%T %k=%v\n", b"t-3@17\t1500 k\xff=v\nt-3@18\t1501 k=null\n"),
        ("%h%%;", b"a=1,b=null%;%;"),
        ("%h{a}%h{b}%h{c};", b"1nullnull;nullnullnull;"),
        ("key", b"k\xff\nk\n"),
        ("value", b"v\nnull\n"),
        ("%%", b"%%"),
    ],
)
def test_forms(form: str, text: bytes):
    assert make_render(form)([RECORD, TOMBSTONE]) == text  # type: ignore[arg-type]


def test_a_null_is_shown():
    """Regression: a tombstone was an empty line, as an empty value is."""
    assert make_render("value")(columns(b"a", None, b"")) == b"a\nnull\n\n"
    assert make_render("value")(columns(None)) == b"null\n"


def columns(*values: bytes | None) -> Any:
    return SimpleNamespace(values=lambda: list(values))


def test_json_is_lossless():
    first, second = make_render("json")([RECORD, TOMBSTONE]).splitlines()  # type: ignore[arg-type]
    assert json.loads(first) == {
        "topic": "t",
        "partition": 3,
        "offset": 17,
        "timestamp_ms": 1500,
        "key_base64": "a/8=",
        "value": "v",
        "headers": [{"name": "a", "value": "1"}, {"name": "b", "value": None}],
    }
    assert json.loads(second)["value"] is None


def test_of_several_headers_the_last_counts():
    record = ConsumerRecord("t", 0, 0, headers=[("ä", b"1"), ("ä", b"2"), ("b", b"3")])
    assert make_render("%h{ä}")([record]) == b"2"


def test_a_header_without_an_end():
    with pytest.raises(UsageError, match="without its }"):
        make_render("%h{a")


@pytest.mark.parametrize("form", ["%x", "100%", "%"])
def test_an_unknown_letter(form: str):
    with pytest.raises(UsageError, match="known are"):
        make_render(form)


@pytest.mark.parametrize("form", ["", "JSON", r"\n"])
def test_a_form_that_shows_nothing_of_a_record(form: str):
    with pytest.raises(UsageError, match="value, key, json, hex, or"):
        make_render(form)
