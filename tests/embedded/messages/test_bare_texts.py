"""What users read who copy, pickle, construct or call compiled objects wrongly: our own words."""

from __future__ import annotations

import asyncio
import copy
import pickle
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kafka_fast import (
    Consumer,
    ConsumerRecord,
    Producer,
    TopicPartition,
    aio,
    read_range,
)
from kafka_fast.errors import UsageError
from kafka_fast.record import Record, RecordBatchBuilder, columns, read_batches
from kafka_fast.testing import EmbeddedKafka

#: What only an author of compiled code understands.
BARE = re.compile(
    r"__c?init__|__reduce__|auto_pickle|for pickling|cannot pickle|an integer is required|"
    r"has incorrect type|Cannot convert|too large to convert|must be real number|"
    r"cannot be interpreted|is not iterable|has no attribute 'items'|not supported between|"
    r"kafka_fast[a-z_.]*\._"
)


def type_name(value: object) -> str:
    return type(value).__name__


COPIES = (pickle.dumps, copy.copy, copy.deepcopy)


def refusal(action: Callable[[], object]) -> str:
    """Return the text of the TypeError or UsageError of an action, which has a plain sentence."""
    with pytest.raises((TypeError, UsageError)) as raised:
        action()
    text = str(raised.value)
    assert not BARE.search(text), text
    return text


@pytest.fixture(scope="module")
def kafka() -> Iterator[EmbeddedKafka]:
    with EmbeddedKafka() as kafka:
        kafka.create_topic("t", partitions=1)
        yield kafka


@pytest.fixture
def producer(kafka: EmbeddedKafka) -> Iterator[Producer]:
    with Producer(bootstrap_servers=kafka.bootstrap, linger_ms=60_000) as producer:
        yield producer


@pytest.fixture
def consumer(kafka: EmbeddedKafka, producer: Producer) -> Iterator[Consumer]:
    """One that has something to read."""
    producer.send("t", b"value").result(10)
    with Consumer(bootstrap_servers=kafka.bootstrap, group_id="g") as consumer:
        consumer.assign([TopicPartition("t", 0)])
        consumer.seek_to_beginning()
        yield consumer


# ---- copies ----


def check_no_copy(made: object, advice: str) -> None:
    """Check that an object is neither pickled nor copied, and that it says what to do instead."""
    for copied in COPIES:
        text = refusal(lambda copied=copied: copied(made))  # type: ignore[misc]
        assert "cannot be pickled or copied" in text
        assert advice in text


def test_handles_are_not_copied(producer: Producer) -> None:
    handle = producer.send("t", b"value")
    check_no_copy(handle, "its result(), a RecordMetadata")
    check_no_copy(iter(handle), "await the DeliveryFuture again")
    batch = producer.send_many("t", [b"value"])
    check_no_copy(batch, "its result(), a BatchResult")
    check_no_copy(batch.__await__(), "await the BatchFuture again")
    check_no_copy(producer, "make one in each process")
    for copied in COPIES:
        copied(handle.result(10))


def test_what_reads_is_not_copied(kafka: EmbeddedKafka, consumer: Consumer) -> None:
    check_no_copy(consumer, "make one in each process")
    check_no_copy(iter(consumer), "make a Consumer where it is needed")
    check_no_copy(consumer.batches(), "make a Consumer where it is needed")
    records = consumer.poll(10)
    check_no_copy(records, "list(records)")
    check_no_copy(iter(records), "iter(records)")
    check_no_copy(records.arrow(), "pyarrow.table(records)")
    assert copy.deepcopy(list(records)) == pickle.loads(pickle.dumps(list(records)))
    with read_range("t", bootstrap_servers=kafka.bootstrap) as reader:
        check_no_copy(reader, "call read_range()")
        check_no_copy(reader.arrow(), "call read_range()")


def test_what_is_awaited_is_not_copied(kafka: EmbeddedKafka) -> None:
    async def main() -> None:
        async with (
            aio.Producer(bootstrap_servers=kafka.bootstrap) as producer,
            aio.Consumer(bootstrap_servers=kafka.bootstrap) as consumer,
        ):
            check_no_copy(producer, "make one in each process")
            check_no_copy(consumer, "make one in each process")
            consumer.assign([TopicPartition("t", 0)])
            check_no_copy(aiter(consumer), "make a Consumer where it is needed")
            call = producer.send("t", b"value")
            check_no_copy(call, "await it, and use what it returns")
            await call

    asyncio.run(main())


def test_what_reads_batches_is_not_copied() -> None:
    builder = RecordBatchBuilder()
    builder.append(b"key", b"value", 5)
    check_no_copy(builder, "build() the batch")
    (batch,) = read_batches(builder.build())
    check_no_copy(batch, "bytes(batch.data)")
    check_no_copy(batch.records(), "list(records)")
    check_no_copy(columns(batch.records()).keys, "to_list()")
    for copied in COPIES:
        copied(batch.records()[0])


# ---- constructors ----


def test_what_only_we_make_is_made_in_no_other_way(
    producer: Producer, consumer: Consumer, kafka: EmbeddedKafka
) -> None:
    """Regression: an object without its fields, whose methods ended the process."""
    records = consumer.poll(10)
    builder = RecordBatchBuilder()
    builder.append(b"key", b"value", 5)
    (batch,) = read_batches(builder.build())
    handle = producer.send("t", b"value")
    for made in (
        handle,
        producer.send_many("t", [b"value"]),
        iter(records),
        records.arrow(),
        batch,
        batch.records(),
        columns(batch.records()).keys,
    ):
        kind: Any = type(made)
        said = refusal(kind)
        assert said == refusal(lambda kind=kind: kind.__new__(kind))  # type: ignore[misc]
        assert said == refusal(lambda kind=kind: kind(1))  # type: ignore[misc]
        assert said == refusal(lambda kind=kind: kind(name=1))  # type: ignore[misc]
    loop: Any = type(iter(consumer))
    for make in (loop, lambda: loop(5), lambda: loop(iter(records)), lambda: loop.__new__(loop)):
        assert refusal(make) == "a loop is begun by iter(consumer)"
    everything: Any = type(records)
    assert "come from poll()" in refusal(lambda: everything.__new__(everything))
    for wrong in (5, None, ["x"], records):
        assert "come from poll()" in refusal(lambda wrong=wrong: everything(wrong))  # type: ignore[misc]
    record = ConsumerRecord
    assert "makes a record" in refusal(lambda: record.__new__(record))
    assert len(RecordBatchBuilder.__new__(RecordBatchBuilder)) == 0


# ---- arguments ----

INTS = ("x", b"1", None, 1.5, object(), 2**80)


@pytest.mark.parametrize("wrong", INTS, ids=type_name)
@pytest.mark.parametrize(
    "name", ["partition", "offset", "timestamp_ms", "leader_epoch", "serialized_key_size"]
)
def test_numbers_of_a_record(name: str, wrong: Any) -> None:
    arguments: dict[str, Any] = {"topic": "t", "partition": 0, "offset": 1, name: wrong}
    if wrong is None and name == "serialized_key_size":
        assert ConsumerRecord(**arguments).serialized_key_size == -1
        return
    assert refusal(lambda: ConsumerRecord(**arguments)).startswith(f"{name} ")


@pytest.mark.parametrize("wrong", INTS, ids=type_name)
def test_numbers_of_a_batch(wrong: Any) -> None:
    for name in ("base_offset", "leader_epoch", "producer_id", "producer_epoch", "base_sequence"):
        kwargs = {name: wrong}
        assert refusal(lambda kwargs=kwargs: RecordBatchBuilder(**kwargs)).startswith(f"{name} ")  # type: ignore[misc]
    builder = RecordBatchBuilder()
    assert refusal(lambda: builder.append(b"", b"", wrong)).startswith("timestamp_ms ")
    assert refusal(lambda: Record(wrong, 0, b"", b"")).startswith("offset ")
    if wrong is not None:
        said = refusal(lambda: builder.append(b"", b"", 0, offset_delta=wrong))
        assert said.startswith("offset_delta ")
    assert len(builder) == 0


def test_other_parts_of_a_record() -> None:
    wrong: Any = b"t"
    assert refusal(lambda: ConsumerRecord(wrong, 0, 0)) == "topic is a str, not bytes: b't'"
    none: Any = None
    assert refusal(lambda: ConsumerRecord("t", 0, 0, headers=none)).startswith("headers are ")
    text: Any = "x"
    assert refusal(lambda: Record(0, 0, text, b"")) == "key is bytes or None, not str: 'x'"
    assert "RecordBatch.records()" in refusal(lambda: columns(text))


def test_numbers_at_their_ends() -> None:
    record = ConsumerRecord("t", 2**31 - 1, 2**63 - 1, timestamp_ms=-(2**63), leader_epoch=-(2**31))
    assert (record.partition, record.offset) == (2**31 - 1, 2**63 - 1)
    assert (record.timestamp_ms, record.leader_epoch) == (-(2**63), -(2**31))
    for partition in (2**31, -(2**31) - 1):
        said = refusal(lambda partition=partition: ConsumerRecord("t", partition, 0))  # type: ignore[misc]
        assert said == f"partition must fit in int32, not {partition}"


def test_indices(consumer: Consumer) -> None:
    records: Any = consumer.poll(10)
    for wrong in ("x", 1.5, TopicPartition("t", 0)):
        assert "by_partition()" in refusal(lambda wrong=wrong: records[wrong])  # type: ignore[misc]


@pytest.mark.parametrize("wrong", ["x", b"1", object(), [1], True], ids=type_name)
def test_timeouts(producer: Producer, wrong: Any) -> None:
    handle, batch = producer.send("t", b"value"), producer.send_many("t", [b"value"])
    for wait in (
        handle.result,
        handle.exception,
        batch.result,
        batch.failed,
        producer.flush,
        producer.close,
        producer.debug_dump,
    ):
        said = refusal(lambda wait=wait: wait(wrong))  # type: ignore[misc]
        assert said == f"a timeout is a number of seconds, not {wrong!r}"
    assert handle.result(10).topic == "t"


@pytest.mark.parametrize("wrong", [b"t", None, 1.5, ["t"], TopicPartition("t", 0)], ids=type_name)
def test_a_topic_that_is_no_name_leaves_the_producer_alive(
    kafka: EmbeddedKafka, producer: Producer, wrong: Any
) -> None:
    """Regression: `partitions_for` ended the control thread, and with it the producer."""
    said = f"topic must be str, not {type(wrong).__name__}"
    assert refusal(lambda: producer.partitions_for(wrong)) == said
    assert producer.send("t", b"value").result(10).topic == "t"

    async def main() -> None:
        async with aio.Producer(bootstrap_servers=kafka.bootstrap) as producer:
            with pytest.raises(TypeError, match=said):
                await producer.partitions_for(wrong)
            await (await producer.send("t", b"value"))

    asyncio.run(main())


@pytest.mark.parametrize("wrong", [None, 5, object()], ids=type_name)
def test_what_a_consumer_takes_several_of(consumer: Consumer, wrong: Any) -> None:
    calls: tuple[Callable[..., object], ...] = (consumer.assign, consumer.end_offsets)
    for call in calls:
        said = refusal(lambda call=call: call(wrong))  # type: ignore[misc]
        assert said.startswith("partitions are a list")
    assert refusal(lambda: consumer.partitions_for(wrong)).startswith("topics are a list")
    assert refusal(lambda: consumer.offsets_for_times(wrong)).startswith(
        "times by partition come in a"
    )


def test_a_callback_is_looked_at_before_the_commit(consumer: Consumer) -> None:
    """Regression: the offsets were committed, and then the call raised."""
    wrong: Any = "callback"
    partition = TopicPartition("t", 0)
    for sync in (True, False):
        said = refusal(
            lambda sync=sync: consumer.commit({partition: 77}, sync=sync, callback=wrong)  # type: ignore[misc]
        )
        assert "cannot be called" in said
    committed = consumer.committed([partition])[partition]
    assert committed is None or committed.offset != 77


@pytest.mark.parametrize("wrong", ["x", b"1", 1.5, object(), [1]], ids=type_name)
def test_how_many_records_are_wanted(kafka: EmbeddedKafka, consumer: Consumer, wrong: Any) -> None:
    said = f"max_records is an int, not {wrong!r}"
    assert refusal(lambda: consumer.poll(1, max_records=wrong)) == said
    assert refusal(lambda: consumer.batches(wrong)) == said
    servers = kafka.bootstrap
    assert refusal(lambda: read_range("t", bootstrap_servers=servers, max_records=wrong)) == said
    assert (
        refusal(lambda: aio.read_range("t", bootstrap_servers=servers, max_records=wrong)) == said
    )

    async def main() -> None:
        async with aio.Consumer(bootstrap_servers=servers) as other:
            assert refusal(lambda: other.batches(wrong)) == said
            other.assign([TopicPartition("t", 0)])
            with pytest.raises(TypeError, match="max_records is an int"):
                await other.poll(1, wrong)

    asyncio.run(main())


def test_columns_and_layouts(kafka: EmbeddedKafka, consumer: Consumer) -> None:
    records: Any = consumer.poll(10)
    with read_range("t", bootstrap_servers=kafka.bootstrap) as steps:
        sources: tuple[Any, ...] = (records, steps)
        for source in sources:
            said = refusal(lambda source=source: source.arrow(columns=5))  # type: ignore[misc]
            assert said == "columns must be several names in a list or the like, not 5"
            said = refusal(lambda source=source: source.arrow(layout=5))  # type: ignore[misc]
            assert said == "layout must be 'kafka' or 'spark', not 5"


CALLBACK = "5 cannot be called; on_delivery is called with error and metadata"


def test_a_delivery_callback_is_looked_at_before_the_record_is_taken(
    kafka: EmbeddedKafka, producer: Producer
) -> None:
    """Regression: the record was sent, and what became of it was told to nobody."""
    producer.send("t", b"so that the topic is known").result(10)
    before = kafka.end_offset("t", 0)
    wrong: Any = 5
    for send in (producer.send, producer.send_nowait):
        for more in ({}, {"partition": 0}, {"timestamp_ms": 1}):
            said = refusal(lambda send=send, more=more: send("t", b"x", on_delivery=wrong, **more))  # type: ignore[misc]
            assert said == CALLBACK
    assert (
        refusal(lambda: Producer(bootstrap_servers=kafka.bootstrap, on_delivery=wrong)) == CALLBACK
    )
    assert producer.flush() == 0
    assert kafka.end_offset("t", 0) == before


def test_a_delivery_callback_of_asyncio_is_looked_at_as_well(kafka: EmbeddedKafka) -> None:
    wrong: Any = 5

    async def main() -> None:
        servers = kafka.bootstrap
        assert (
            refusal(lambda: aio.Producer(bootstrap_servers=servers, on_delivery=wrong)) == CALLBACK
        )
        async with aio.Producer(bootstrap_servers=servers) as producer:
            await producer.send_and_wait("t", b"so that the topic is known")
            before = kafka.end_offset("t", 0)
            assert refusal(lambda: producer.send_nowait("t", b"x", on_delivery=wrong)) == CALLBACK
            with pytest.raises(TypeError, match="on_delivery"):
                await producer.send("t", b"x", on_delivery=wrong)
            await producer.flush()
            assert kafka.end_offset("t", 0) == before

    asyncio.run(main())


def test_a_callback_of_a_handle_is_looked_at(producer: Producer) -> None:
    """Regression: the callback thread logged a traceback of ours when the record was delivered."""
    handle: Any = producer.send("t", b"value")
    batch: Any = producer.send_many("t", [b"value"])
    for future in (handle, batch):
        for state in ("pending", "done"):
            said = refusal(lambda future=future: future.add_done_callback(5))  # type: ignore[misc]
            assert said.startswith("5 cannot be called; a callback of add_done_callback"), state
            future.result(10)
