"""The consumer as a user's type checker sees it; read by mypy --strict, never run."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any, NamedTuple

import polars as pl
import pyarrow as pa
from typing_extensions import Unpack, assert_type

from kafka_fast import (
    Consumer,
    ConsumerConfig,
    KafkaError,
    OffsetAndMetadata,
    PartitionInfo,
    RebalanceListener,
    TopicPartition,
    read_range,
)
from kafka_fast.config.properties import ConsumerProperties
from kafka_fast.consumer import ConsumerRecord, ConsumerRecords
from kafka_fast.types import OffsetAndTimestamp


class Listener(RebalanceListener):
    """Commits what was done before it is given up."""

    def on_partitions_revoked(
        self, consumer: Consumer, partitions: Collection[TopicPartition]
    ) -> None:
        consumer.commit()


def reading() -> None:
    with Consumer({ConsumerConfig.BOOTSTRAP_SERVERS_CONFIG: "localhost:9092"}) as consumer:
        assert_type(consumer, Consumer)
        consumer.subscribe(["topic"], listener=Listener())
        assert_type(consumer.poll(1.0, max_records=10), ConsumerRecords)
        for record in consumer:
            assert_type(record, ConsumerRecord)
            assert_type(record.offset, int)
        for records in consumer.batches():
            assert_type(records, ConsumerRecords)
            consumer.commit(records)
        consumer.poll("1")  # type: ignore[arg-type] # a number is wanted


class ListListener(RebalanceListener):
    """As users write it who come from other clients."""

    def on_partitions_assigned(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        partitions.sort()


class Order(NamedTuple):
    """What a value is made into."""

    number: int


def parse_order(value: bytes) -> Order:
    return Order(int(value))


def reading_orders() -> None:
    typed: Consumer[str, Order] = Consumer(
        group_id="g", key_deserializer=bytes.decode, value_deserializer=parse_order
    )
    with typed as consumer:
        assert_type(consumer, Consumer[str, Order])
        records = consumer.poll()
        assert_type(records, ConsumerRecords[str, Order])
        assert_type(records.values(), list[Order])
        assert_type(records.keys(), list[str])
        assert_type(records[0], ConsumerRecord[str, Order])
        assert_type(records[:3].by_partition(), dict[TopicPartition, ConsumerRecords[str, Order]])
        for record in consumer:
            assert_type(record, ConsumerRecord[str, Order])
            assert_type(record.value.number, int)
            consumer.commit(record)
        for batch in consumer.batches():
            for record in batch:
                assert_type(record.key, str)
            consumer.commit(batch)
    handle(consumer)
    by_call = Consumer[str, Order](value_deserializer=parse_order)
    assert_type(by_call.poll(), ConsumerRecords[str, Order])
    assert_type(ConsumerRecord("t", 0, 1, b"k", Order(1)), ConsumerRecord[bytes, Order])


def handle(consumer: Consumer) -> None:
    """Without parameters keys and values are Any."""
    assert_type(consumer.poll(), ConsumerRecords[Any, Any])
    assert_type(consumer.poll().values(), list[Any])


def framing(records: ConsumerRecords) -> None:
    assert_type(records.to_polars(text=True), pl.DataFrame)
    assert_type(read_range("topic").to_polars(columns=["value"]), pl.DataFrame)
    assert_type(records.to_arrow(layout="spark"), pa.Table)
    assert_type(read_range("topic").to_arrow(columns=["value"]), pa.Table)
    records.to_pandas(columns=["value"], headers=None)
    records.to_arrow(text="yes")  # type: ignore[arg-type] # a bool


def asking(consumer: Consumer, partition: TopicPartition) -> None:
    assert_type(consumer.position(partition), int)
    infos = consumer.partitions_for(["a", "b"], timeout=1.0, refresh=True)
    assert_type(infos, list[PartitionInfo])
    assert_type(infos[0].topic_id, str | None)
    assert_type(consumer.current_lag(partition), int | None)
    assert_type(consumer.committed([partition])[partition], OffsetAndMetadata | None)
    assert_type(consumer.end_offsets([partition]), dict[TopicPartition, int])
    consumer.offsets_for_times({partition: 1_700_000_000_000})
    consumer.seek_to_timestamp("now")  # type: ignore[arg-type] # Unix ms, or a datetime
    consumer.commit([partition])  # type: ignore[arg-type] # records, or a mapping


def committing(consumer: Consumer, partition: TopicPartition) -> None:
    def done(offsets: Mapping[TopicPartition, OffsetAndMetadata], error: KafkaError | None) -> None:
        assert_type(offsets[partition].offset, int)
        assert_type(error, KafkaError | None)

    consumer.commit({partition: 3}, sync=False, callback=done)


def ranging(partition: TopicPartition, noon: datetime) -> None:
    with read_range("topic", 0, {partition: 10}, bootstrap_servers="localhost:9092") as steps:
        for records in steps:
            assert_type(records, ConsumerRecords)
    read_range("topic", {0: 10}, {0: 20})
    read_range("topic", noon, {partition: noon}, by="timestamp").to_arrow(layout="spark")
    read_range("topic", "noon")  # type: ignore[arg-type] # an offset, a time, or a mapping


def asking_for_times(consumer: Consumer, partition: TopicPartition, noon: datetime) -> None:
    consumer.seek_to_timestamp(noon, partition)
    answer = consumer.offsets_for_times({partition: noon})[partition]
    assert_type(answer, OffsetAndTimestamp | None)


def properties() -> None:
    Consumer(group_id="g", group_protocol="consumer", max_poll_records=500)
    Consumer({"max.poll.records": "500"}, group_id="g")
    Consumer(grop_id="g")  # type: ignore[call-arg] # no such property
    Consumer(max_poll_records="500")  # type: ignore[arg-type] # an int
    Consumer(isolation_level="serializable")  # type: ignore[arg-type] # no such level
    read_range("topic", isolation_level="read_committed", check_crcs=False)
    read_range("topic", linger_ms=5)  # type: ignore[call-arg] # the producer's


def mine(**properties: Unpack[ConsumerProperties]) -> Consumer:
    """Whoever wraps the constructor can say the same."""
    return Consumer(**properties)
