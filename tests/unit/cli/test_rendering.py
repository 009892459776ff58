"""Points of a log and forms of records on the command line."""

from __future__ import annotations

import argparse
import json
from datetime import datetime, timezone

import pytest

from kafka_fast.cli.points import BEGINNING, END, Point, parse_point
from kafka_fast.cli.rendering import make_render
from kafka_fast.consumer import ConsumerRecord
from kafka_fast.errors import UsageError

RECORD = ConsumerRecord(
    "t", 3, 17, b"k\xff", b"v", timestamp_ms=1500, headers=[("a", b"1"), ("b", None)]
)
TOMBSTONE = ConsumerRecord("t", 3, 18, b"k", None, timestamp_ms=1501)


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ("hex", b"6bff\t76\n6b\t-\n"),
        (r"%t-%p@%o\t%T %k=%v %h%%\n", b"t-3@17\t1500 k\xff=v a=1,b=%\nt-3@18\t1501 k= %\n"),
        ("%%", b"%%"),
    ],
)
def test_forms(form: str, text: bytes):
    assert make_render(form)([RECORD, TOMBSTONE]) == text  # type: ignore[arg-type]


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


@pytest.mark.parametrize("form", ["%x", "100%", "%"])
def test_an_unknown_letter(form: str):
    with pytest.raises(UsageError, match="known are"):
        make_render(form)


@pytest.mark.parametrize("form", ["", "JSON", r"\n"])
def test_a_form_that_shows_nothing_of_a_record(form: str):
    with pytest.raises(UsageError, match="value, json, hex, or"):
        make_render(form)


@pytest.mark.parametrize(
    ("text", "point"),
    [
        ("beginning", BEGINNING),
        ("end", END),
        ("0", Point("offset", 0)),
        ("@1700000000000", Point("time", 1_700_000_000_000)),
        ("2023-11-14T22:13:20Z", Point("time", 1_700_000_000_000)),
        ("2023-11-14T23:13:20.500+01:00", Point("time", 1_700_000_000_500)),
    ],
)
def test_points(text: str, point: Point):
    assert parse_point(text) == point


def test_a_time_without_a_zone_is_local():
    at = datetime(2024, 2, 3, 4, 5).astimezone(timezone.utc)
    assert parse_point("2024-02-03 04:05").number == at.timestamp() * 1000


@pytest.mark.parametrize("text", ["", "-1", "@", "@x", "soon", "1969-01-01T00:00Z", "²"])
def test_no_points(text: str):
    with pytest.raises(argparse.ArgumentTypeError, match="neither"):
        parse_point(text)
