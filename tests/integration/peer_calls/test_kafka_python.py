"""Calls of kafka-python."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # kafka-python warns when it is imported
    from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
    from kafka.admin import ConfigResource, ConfigResourceType, NewPartitions, NewTopic
    from kafka.errors import KafkaError
    from kafka.structs import OffsetAndMetadata

import pytest

from tests.integration.peer_calls.scene import (
    FIRST_TIMESTAMP_MS,
    SETTINGS,
    TIMEOUT,
    Brokers,
    Calls,
    PeerCall,
    Scene,
    compare,
)
from tests.waiting import eventually

CALLS = Calls()

pytestmark = pytest.mark.filterwarnings("ignore")  # they are the peer's own


@contextmanager
def consumer(scene: Scene, **config: Any) -> Iterator[KafkaConsumer]:
    defaults = {
        "group_id": scene.group,
        "auto_offset_reset": "earliest",
        "enable_auto_commit": False,
    }
    made = KafkaConsumer(bootstrap_servers=scene.bootstrap, **{**defaults, **config})
    try:
        yield made
    finally:
        made.close()


@contextmanager
def assigned(scene: Scene) -> Iterator[tuple[KafkaConsumer, TopicPartition]]:
    with consumer(scene) as made:
        mine = TopicPartition(scene.topic, 0)
        made.assign([mine])
        yield made, mine


@contextmanager
def producer(scene: Scene, **config: Any) -> Iterator[KafkaProducer]:
    made = KafkaProducer(bootstrap_servers=scene.bootstrap, **config)
    try:
        yield made
    finally:
        made.close(TIMEOUT)


@contextmanager
def admin(scene: Scene) -> Iterator[KafkaAdminClient]:
    made = KafkaAdminClient(bootstrap_servers=scene.bootstrap)
    try:
        yield made
    finally:
        made.close()


def records(made: KafkaConsumer, count: int) -> list[Any]:
    """Poll until there are so many records."""
    got: list[Any] = []
    while len(got) < count:
        polled = made.poll(timeout_ms=TIMEOUT * 1000, max_records=count - len(got))
        assert polled
        got += [record for batch in polled.values() for record in batch]
    return [
        (
            record.partition,
            record.offset,
            record.key,
            record.value,
            list(record.headers),
            record.timestamp,
        )
        for record in got
    ]


def error_of(call: Callable[[], Any]) -> Any:
    """Return the name of the error that a call raises, or what it returns."""
    try:
        return call()
    except (KafkaError, AssertionError, ValueError) as error:
        return type(error).__name__


def sent(made: KafkaProducer, topic: str, **what: Any) -> Any:
    """Send a record, and return its place or the name of its error."""

    def send() -> Any:
        told = made.send(topic, **what).get(TIMEOUT)
        return told.partition, told.offset

    return error_of(send)


# ---- metadata ----


@CALLS("KafkaConsumer.topics()")
def _(scene: Scene) -> Any:
    with consumer(scene) as made:
        return scene.topic in made.topics()


@CALLS("KafkaConsumer.partitions_for_topic()")
def _(scene: Scene) -> Any:
    with consumer(scene) as made:
        return made.partitions_for_topic(scene.topic), made.partitions_for_topic(scene.new_name())


@CALLS("KafkaProducer.partitions_for()")
def _(scene: Scene) -> Any:
    with producer(scene) as made:
        return made.partitions_for(scene.topic)


# ---- consuming ----


@CALLS("KafkaConsumer.subscribe(names), poll()")
def _(scene: Scene) -> Any:
    with consumer(scene) as made:
        made.subscribe([scene.topic])
        return records(made, 10)


@CALLS("KafkaConsumer.subscribe(pattern)")
def _(scene: Scene) -> Any:
    with consumer(scene) as made:
        made.subscribe(pattern=f"^{scene.topic[:-1]}.$")
        return records(made, 10)


@CALLS("KafkaConsumer as an iterator")
def _(scene: Scene) -> Any:
    with consumer(scene, consumer_timeout_ms=3000) as made:
        made.subscribe([scene.topic])
        return [record.value for record in made]


@CALLS("KafkaConsumer with cooperative-sticky")
def _(scene: Scene) -> Any:
    from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor

    strategy = (CooperativeStickyAssignor,)
    with consumer(scene, partition_assignment_strategy=strategy) as made:
        made.subscribe([scene.topic])
        return records(made, 10), sorted(partition.partition for partition in made.assignment())


@CALLS("KafkaConsumer.assign(), seek(), position()")
def _(scene: Scene) -> Any:
    with assigned(scene) as (made, mine):
        made.seek(mine, 7)
        return records(made, 3), made.position(mine)


@CALLS("KafkaConsumer.seek_to_beginning(), seek_to_end()")
def _(scene: Scene) -> Any:
    with assigned(scene) as (made, mine):
        made.seek_to_end(mine)
        end = made.position(mine)
        made.seek_to_beginning(mine)
        return end, made.position(mine)


@CALLS("KafkaConsumer.pause(), paused(), resume()")
def _(scene: Scene) -> Any:
    with assigned(scene) as (made, mine):
        made.pause(mine)
        nothing = made.poll(timeout_ms=500)
        paused = [partition.partition for partition in made.paused()]
        made.resume(mine)
        return nothing, paused, records(made, 1)


@CALLS("KafkaConsumer.subscription(), unsubscribe()")
def _(scene: Scene) -> Any:
    with consumer(scene) as made:
        made.subscribe([scene.topic])
        records(made, 1)
        before = made.subscription() == {scene.topic}
        made.unsubscribe()
        return before, made.subscription(), made.assignment()


@CALLS("KafkaConsumer.highwater()")
def _(scene: Scene) -> Any:
    with assigned(scene) as (made, mine):
        records(made, 1)
        return made.highwater(mine)


@CALLS("KafkaConsumer at an offset beyond the end, auto_offset_reset=none")
def _(scene: Scene) -> Any:
    with consumer(scene, auto_offset_reset="none") as made:
        mine = TopicPartition(scene.topic, 0)
        made.assign([mine])
        made.seek(mine, 1000)
        return error_of(lambda: [made.poll(timeout_ms=2000) for _ in range(3)])


@CALLS("KafkaConsumer with isolation_level=read_committed")
def _(scene: Scene) -> Any:
    with consumer(scene, isolation_level="read_committed") as made:
        made.subscribe([scene.topic])
        return records(made, 10)


# ---- offsets ----


@CALLS("KafkaConsumer.beginning_offsets(), end_offsets()")
def _(scene: Scene) -> Any:
    with consumer(scene) as made:
        both = [TopicPartition(scene.topic, number) for number in range(2)]
        first, last = made.beginning_offsets(both), made.end_offsets(both)
        return [(first[partition], last[partition]) for partition in both]


@CALLS("KafkaConsumer.offsets_for_times()")
def _(scene: Scene) -> Any:
    with consumer(scene) as made:
        mine = TopicPartition(scene.topic, 0)
        times = (FIRST_TIMESTAMP_MS + 2500, FIRST_TIMESTAMP_MS + 99_000_000)
        answers = [made.offsets_for_times({mine: time})[mine] for time in times]
        return [None if answer is None else (answer.offset, answer.timestamp) for answer in answers]


@CALLS("KafkaConsumer.commit(), committed()")
def _(scene: Scene) -> Any:
    with assigned(scene) as (made, mine):
        before = made.committed(mine)
        made.commit({mine: OffsetAndMetadata(4, "note", -1)})
        return before, made.committed(mine), made.committed(mine, metadata=True).metadata


@CALLS("KafkaConsumer.commit() of a member")
def _(scene: Scene) -> Any:
    with consumer(scene) as made:
        made.subscribe([scene.topic])
        records(made, 5)
        made.commit()
        return made.committed(TopicPartition(scene.topic, 0))


@CALLS("KafkaConsumer.commit_async()")
def _(scene: Scene) -> Any:
    told: list[Any] = []
    with consumer(scene) as made:
        made.subscribe([scene.topic])
        records(made, 5)
        made.commit_async(
            callback=lambda offsets, result: told.append(
                (offsets[TopicPartition(scene.topic, 0)].offset, isinstance(result, Exception))
            )
        )
        while not told:
            made.poll(timeout_ms=100)
    return told


@CALLS("KafkaConsumer.commit() of a stranger")
def _(scene: Scene) -> Any:
    with consumer(scene) as member, assigned(scene) as (other, mine):
        member.subscribe([scene.topic])
        records(member, 1)
        return error_of(lambda: other.commit({mine: OffsetAndMetadata(1, "", -1)}))


# ---- producing ----


@CALLS("KafkaProducer.send()")
def _(scene: Scene) -> Any:
    with producer(scene) as made:
        return sent(made, scene.topic, value=b"v", key=b"k", partition=0)


@CALLS("KafkaProducer.send(headers=, timestamp_ms=)")
def _(scene: Scene) -> Any:
    with producer(scene) as made:
        what = {"headers": [("h", b"1")], "timestamp_ms": 1234567890123, "partition": 1}
        told = sent(made, scene.topic, key=b"k", **what)
    with consumer(scene) as made:
        made.assign([TopicPartition(scene.topic, 1)])
        return told, records(made, 1)


@CALLS("KafkaProducer.send() by key")
def _(scene: Scene) -> Any:
    with producer(scene) as made:
        return [sent(made, scene.topic, value=b"v", key=b"k%d" % n)[0] for n in range(8)]


@CALLS("KafkaProducer.flush() with compression")
def _(scene: Scene) -> Any:
    with producer(scene, compression_type="gzip", linger_ms=50) as made:
        futures = [made.send(scene.topic, b"%d" % n * 50, partition=0) for n in range(100)]
        made.flush(TIMEOUT)
        return [future.get(TIMEOUT).offset for future in futures]


@CALLS("KafkaProducer with acks=0, and with acks=1")
def _(scene: Scene) -> Any:
    with producer(scene, acks=0, enable_idempotence=False) as made:
        made.send(scene.topic, b"v", partition=1).get(TIMEOUT)
    with producer(scene, acks=1, enable_idempotence=False) as made:
        return sent(made, scene.topic, value=b"v", partition=1)


@CALLS("KafkaProducer.send(larger than the broker takes)")
def _(scene: Scene) -> Any:
    with producer(scene, max_request_size=5_000_000) as made:
        return sent(made, scene.topic, value=b"v" * 2_000_000, partition=0)


@CALLS("KafkaProducer.send(no such topic)")
def _(scene: Scene) -> Any:
    with producer(scene, max_block_ms=1500) as made:
        return sent(made, scene.new_name(), value=b"v")


@CALLS("KafkaProducer.commit_transaction()")
def _(scene: Scene) -> Any:
    with producer(scene, transactional_id=scene.group) as made:
        made.init_transactions()
        made.begin_transaction()
        outcome = sent(made, scene.topic, value=b"v", partition=0)
        return outcome, error_of(made.commit_transaction)


# ---- administration ----


@CALLS("KafkaAdminClient.create_topics()")
def _(scene: Scene) -> Any:
    with admin(scene) as made:
        name = scene.new_name()
        made.create_topics([NewTopic(name, 3, 1)])
        # The controller has answered, and the broker learns of it.
        eventually(lambda: name in made.list_topics())
        (described,) = made.describe_topics([name])
        return sorted(partition["partition_index"] for partition in described["partitions"])


@CALLS("KafkaAdminClient.create_topics() of one that is there")
def _(scene: Scene) -> Any:
    with admin(scene) as made:
        return error_of(lambda: made.create_topics([NewTopic(scene.topic, 3, 1)]))


@CALLS("KafkaAdminClient.create_topics() with settings")
def _(scene: Scene) -> Any:
    name = scene.new_name()
    with admin(scene) as made, producer(scene) as sender:
        made.create_topics([NewTopic(name, 1, 1, topic_configs=SETTINGS)])
        eventually(lambda: name in made.list_topics())
        keyless = sent(sender, name, value=b"v")
        return keyless, sent(sender, name, value=b"v", key=b"k")


@CALLS("KafkaAdminClient.create_topics() with bad arguments")
def _(scene: Scene) -> Any:
    with admin(scene) as made:
        bad = [
            NewTopic(scene.new_name(), 0, 1),
            NewTopic(scene.new_name(), 1, 9),
            NewTopic("not a topic!", 1, 1),
            NewTopic(scene.new_name(), 1, 1, topic_configs={"no.such.setting": "1"}),
        ]
        return [error_of(lambda new_topic=topic: made.create_topics([new_topic])) for topic in bad]


@CALLS("KafkaAdminClient.list_topics()")
def _(scene: Scene) -> Any:
    with admin(scene) as made:
        return scene.topic in made.list_topics()


@CALLS("KafkaAdminClient.describe_topics()")
def _(scene: Scene) -> Any:
    with admin(scene) as made:
        (described,) = made.describe_topics([scene.topic])
        return described["error_code"], len(described["partitions"]), described["is_internal"]


@CALLS("KafkaAdminClient.delete_topics()")
def _(scene: Scene) -> Any:
    with admin(scene) as made:
        made.delete_topics([scene.topic])
        return eventually(lambda: scene.topic not in made.list_topics())


@CALLS("KafkaAdminClient.delete_topics() of one that is not there")
def _(scene: Scene) -> Any:
    with admin(scene) as made:
        return error_of(lambda: made.delete_topics([scene.new_name()]))


@CALLS("KafkaAdminClient.delete_records()")
def _(scene: Scene) -> Any:
    with admin(scene) as made:
        made.delete_records({TopicPartition(scene.topic, 0): 3})
    with assigned(scene) as (reader, _mine):
        return records(reader, 1)


@CALLS("KafkaAdminClient.describe_configs(topic)")
def _(scene: Scene) -> Any:
    with admin(scene) as made:
        name = scene.new_name()
        made.create_topics([NewTopic(name, 1, 1, topic_configs={"max.message.bytes": "2000"})])
        eventually(lambda: name in made.list_topics())
        asked = ConfigResource(ConfigResourceType.TOPIC, name)
        return made.describe_configs([asked])["topic"][name]


@CALLS("KafkaAdminClient.list_partition_offsets()")
def _(scene: Scene) -> Any:
    from kafka.admin import OffsetSpec

    with admin(scene) as made:
        mine = TopicPartition(scene.topic, 0)
        specs = (OffsetSpec.EARLIEST, OffsetSpec.LATEST)
        return [made.list_partition_offsets({mine: spec})[mine].offset for spec in specs]


@CALLS("KafkaAdminClient.list_group_offsets()")
def _(scene: Scene) -> Any:
    with assigned(scene) as (made, mine):
        made.commit({mine: OffsetAndMetadata(6, "", -1)})
    with admin(scene) as made:
        return "offset=6" in str(made.list_group_offsets(scene.group))


@CALLS("KafkaAdminClient.describe_groups()")
def _(scene: Scene) -> Any:
    with consumer(scene) as member, admin(scene) as made:
        member.subscribe([scene.topic])
        records(member, 1)
        return "Stable" in str(made.describe_groups([scene.group]))


@CALLS("KafkaAdminClient.describe_cluster()")
def _(scene: Scene) -> Any:
    with admin(scene) as made:
        return len(made.describe_cluster()["brokers"])


@CALLS("KafkaAdminClient.create_partitions()")
def _(scene: Scene) -> Any:
    with admin(scene) as made:
        made.create_partitions({scene.topic: NewPartitions(4)})
        return eventually(lambda: len(made.describe_topics([scene.topic])[0]["partitions"]) == 4)


@CALLS("KafkaAdminClient.list_groups()")
def _(scene: Scene) -> Any:
    with admin(scene) as made:
        return bool(made.list_groups() is not None)


@CALLS("KafkaAdminClient.delete_groups()")
def _(scene: Scene) -> Any:
    with admin(scene) as made:
        return error_of(lambda: bool(made.delete_groups([scene.group])))


@CALLS("KafkaAdminClient.alter_configs()")
def _(scene: Scene) -> Any:
    with admin(scene) as made:
        asked = ConfigResource(
            ConfigResourceType.TOPIC, scene.topic, configs={"retention.bytes": "1000"}
        )
        return made.alter_configs([asked]) is not None


@CALLS.parametrize
def test_the_outcome_is_the_same(call: PeerCall, brokers: Brokers) -> None:
    compare(call, brokers)


def test_there_are_forty() -> None:
    assert len(CALLS.compared) >= 40
