"""Lines of JSON: what consume writes, produce reads, byte for byte."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_fast.cli.records.json_lines import read_records
from kafka_fast.cli.records.rendering import make_render
from kafka_fast.consumer import ConsumerRecord
from kafka_fast.errors import UsageError

DATA = st.none() | st.binary(max_size=12) | st.text(max_size=8).map(str.encode)
HEADERS = st.lists(st.tuples(st.text(max_size=3), DATA), max_size=4)


@given(DATA, DATA, HEADERS, st.integers(-1, 2**63 - 1), st.integers(0, 2**31 - 1))
def test_what_is_written_is_read(
    key: bytes | None,
    value: bytes | None,
    headers: list[tuple[str, bytes | None]],
    timestamp: int,
    partition: int,
) -> None:
    record = ConsumerRecord(
        "t", partition, 7, key, value, timestamp_ms=timestamp, headers=tuple(headers)
    )
    block = make_render("json")([record])
    (line,) = block.removesuffix(b"\n").split(b"\n")
    records = read_records([line], 1)
    assert (records.keys, records.values) == ([key], [value])
    assert records.headers == [headers or None]
    assert records.timestamps_ms == [None if timestamp == -1 else timestamp]
    assert records.partitions == [partition]


def test_what_may_be_left_out() -> None:
    records = read_records([b'{"value": "a"}', b'{"value": null, "headers": null}'], 1)
    assert records.values == [b"a", None]
    assert records.keys == records.headers == records.timestamps_ms == [None, None]


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("", "line 3: Expecting value"),
        ("7", "line 3: this is no JSON object"),
        ("{", "line 3: "),
        ("[" * 100_000, "line 3: its JSON is nested too deep"),
        ('{"value":' + "[" * 100_000, "line 3: its JSON is nested too deep"),
        ('{"key": "a"}', "line 3: it has no value; null is a value, too"),
        ('{"value": 7}', "its value is neither text nor null: what consume shows with --value-as"),
        ('{"value": "a", "key": {}}', "its key is neither text nor null"),
        ('{"value": "a", "value_base64": "YQ=="}', "it has both value and value_base64"),
        ('{"value_base64": "Y"}', "its value_base64 is no base64"),
        ('{"value_base64": "Y!Q=="}', "its value_base64 is no base64"),
        ('{"value_base64": null}', "its value_base64 is no base64"),
        ('{"value_base64": "ä"}', "its value_base64 is no base64"),
        ('{"value": "\\ud800"}', "half of a surrogate pair"),
        ('{"value": "a", "headers": {"a": "b"}}', "its headers are no list"),
        ('{"value": "a", "headers": ["a"]}', "this is no JSON object"),
        ('{"value": "a", "headers": [{"value": "b"}]}', "a header has no name"),
        ('{"value": "a", "headers": [{"name": "b"}]}', "it has no value"),
        ('{"value": "a", "timestamp_ms": -2}', "its timestamp_ms is no number"),
        ('{"value": "a", "timestamp_ms": true}', "its timestamp_ms is no number"),
        ('{"value": "a", "partition": 2147483648}', "its partition is no number"),
    ],
)
def test_a_wrong_line(line: str, why: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_records([json.dumps({"value": "a"}).encode(), line.encode()], 2)
    assert why in str(caught.value)


def test_bytes_that_are_no_text() -> None:
    with pytest.raises(UsageError, match="line 1: 'utf-8' codec"):
        read_records([b'{"value": "\xff"}'], 1)
