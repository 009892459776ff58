"""What stands in the log segments that real brokers wrote for the tests: names and records.

A segment's name says how it was written: `<message format>-<codec>[-append]`, such as
`0.10.0-lz4-append`; append: the broker's own timestamps.
"""

from __future__ import annotations

import itertools

from kafka_fast.record import Record, TimestampType, read_batches

#: `message.format.version` of the topic -> magic byte in the log.
MAGIC = {"0.9.0": 0, "0.10.0": 1, "2.8": 2}

BASE_TIMESTAMP = 1_700_000_000_000
COUNT = 60


def segment_names() -> list[str]:
    """Return the names of all segments."""
    names = []
    for version, codec in itertools.product(MAGIC, ("none", "gzip", "snappy", "lz4", "zstd")):
        if codec == "zstd" and MAGIC[version] < 2:
            continue  # refused by the broker
        names.append(f"{version}-{codec}")
        if MAGIC[version] > 0:
            names.append(f"{version}-{codec}-append")
    return names


def sent(number: int) -> tuple[bytes | None, bytes | None, int]:
    """Return key, value and timestamp of the record that was sent as this number."""
    key = b"key-%d" % number if number % 3 else None
    value = b"value-%d;" % number * (number % 7) if number % 11 else None
    return key, value, BASE_TIMESTAMP + number * 10 - (number % 5) * 1000


def check_segment(name: str, data: bytes) -> None:
    """Read a segment and compare it with what was sent."""
    version, codec, *append = name.split("-")
    magic = MAGIC[version]
    batches = read_batches(data)
    records: list[Record] = []
    codecs = set()
    for batch in batches:
        assert batch.magic == magic
        codecs.add(batch.codec.name.lower())
        assert batch.next_offset > len(records)
        if append:
            assert batch.timestamp_type is TimestampType.LOG_APPEND_TIME
        batch_records = batch.records()
        assert batch.next_offset == batch_records[-1].offset + 1
        records += batch_records
    assert codec in codecs <= {codec, "none"}  # librdkafka leaves be what compression enlarges
    assert len(batches.partial) == 0
    assert [record.offset for record in records] == list(range(COUNT))
    for number, record in enumerate(records):
        key, value, timestamp_ms = sent(number)
        assert (record.key, record.value) == (key, value)
        if magic == 0:
            assert record.timestamp_ms == -1
        elif append:
            assert record.timestamp_ms > BASE_TIMESTAMP + 1_000_000
        else:
            assert record.timestamp_ms == timestamp_ms
