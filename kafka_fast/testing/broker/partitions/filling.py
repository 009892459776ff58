"""Puts records into topics for tests, without a client: what a plain producer would have written.

The rules of the log hold (sizes, timestamps, names of topics), faults and leaders do not matter.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from kafka_fast._wire._hash import partition_for_key
from kafka_fast.errors import UnknownTopicOrPartition
from kafka_fast.record import RecordBatchBuilder
from kafka_fast.testing.broker.partitions.append import append_batch, the_one_batch
from kafka_fast.testing.broker.partitions.cluster_topics import Topic
from kafka_fast.testing.broker.state import ClusterState

Part: TypeAlias = bytes | str | None
"""A key or a value; str is written in UTF-8."""

Headers: TypeAlias = Mapping[str, Part] | Iterable[tuple[str, Part]] | None

_VERSION = 13  # of Produce: all codecs
_ACKS = 1
_BATCH_SIZE = 256 * 1024


class Row(NamedTuple):
    """One record to write."""

    key: bytes | None
    value: bytes | None


def make_rows(values: Sequence[Part], keys: Sequence[Part] | None) -> list[Row]:
    """Return the rows of two columns.

    Raises:
        TypeError: a column is a single text, or something in it is neither bytes, str nor None.
        ValueError: the columns are not of one length.
    """
    written = _column(values, "values")
    if keys is None:
        return [Row(None, value) for value in written]
    named = _column(keys, "keys")
    if len(named) != len(written):
        raise ValueError(f"{len(named)} keys for {len(written)} values")
    return [Row(*row) for row in zip(named, written, strict=True)]


def make_headers(headers: Headers) -> list[tuple[str, bytes | None]]:
    """Return headers as a record batch takes them."""
    pairs = headers.items() if isinstance(headers, Mapping) else headers or ()
    return [(name, _bytes(value, f"header {name!r}")) for name, value in pairs]


def write_rows(
    state: ClusterState,
    topic: str,
    rows: Sequence[Row],
    *,
    partition: int | None,
    headers: list[tuple[str, bytes | None]],
    timestamp_ms: int,
    unix_ms: int,
) -> list[tuple[int, int]]:
    """Append rows and return partition and offset of each.

    A key decides about the partition as in Java's client; rows without one take the partitions in
    turn. A topic that does not exist is created where the cluster does that for clients.

    Args:
        state: of the cluster.
        topic: its name.
        rows: keys and values.
        partition: for all rows; None: see above.
        headers: of each record.
        timestamp_ms: of each record.
        unix_ms: the time.

    Raises:
        BrokerError: what a producer would be answered.
    """
    topic_state = _topic(state, topic)
    count = len(topic_state.partitions)
    numbers = [
        _choose(row, index, count) if partition is None else partition
        for index, row in enumerate(rows)
    ]
    places = [(-1, -1)] * len(rows)
    for number in dict.fromkeys(numbers):
        into = state.partition(topic, number)
        mine = [index for index, one in enumerate(numbers) if one == number]
        for chosen in _batches(mine, rows):
            builder = RecordBatchBuilder()
            for index in chosen:
                builder.append(rows[index].key, rows[index].value, timestamp_ms, headers)
            batch = the_one_batch(builder.build(), _VERSION)
            first = append_batch(into, topic_state.config, batch, _ACKS, unix_ms).base_offset
            for delta, index in enumerate(chosen):
                places[index] = (number, first + delta)
    state.changes += 1
    return places


def _topic(state: ClusterState, name: str) -> Topic:
    if name not in state.topics:
        if not state.settings.auto_create:
            raise UnknownTopicOrPartition(f"no topic {name!r}")
        state.add_topic(state.plan_topic(name))
    return state.topics[name]


def _choose(row: Row, index: int, count: int) -> int:
    return index % count if row.key is None else partition_for_key(row.key, count)


def _batches(indexes: Sequence[int], rows: Sequence[Row]) -> Iterable[list[int]]:
    """Cut a partition's rows into batches well below the usual max.message.bytes."""
    batch: list[int] = []
    size = 0
    for index in indexes:
        length = len(rows[index].key or b"") + len(rows[index].value or b"")
        if batch and size + length > _BATCH_SIZE:
            yield batch
            batch, size = [], 0
        batch.append(index)
        size += length
    if batch:
        yield batch


def _column(parts: Sequence[Part], what: str) -> list[bytes | None]:
    if isinstance(parts, (bytes, str, Mapping)) or not isinstance(parts, Iterable):
        raise TypeError(f"{what} must be a list, not {type(parts).__name__}")
    return [_bytes(part, f"{what}[{index}]") for index, part in enumerate(parts)]


def _bytes(part: Part, what: str) -> bytes | None:
    if part is None or isinstance(part, bytes):
        return part
    if isinstance(part, str):
        return part.encode()
    raise TypeError(f"{what} must be bytes, str or None, not {type(part).__name__}")
