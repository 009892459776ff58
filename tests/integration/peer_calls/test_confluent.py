"""Calls of confluent-kafka."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import confluent_kafka
import pytest
from confluent_kafka import OFFSET_BEGINNING, ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

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
def consumer(scene: Scene, **config: Any) -> Iterator[confluent_kafka.Consumer]:
    made = confluent_kafka.Consumer(
        {
            "bootstrap.servers": scene.bootstrap,
            "group.id": scene.group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            **{key.replace("_", "."): value for key, value in config.items()},
        }
    )
    try:
        yield made
    finally:
        made.close()


@contextmanager
def assigned(scene: Scene, offset: int = OFFSET_BEGINNING) -> Iterator[confluent_kafka.Consumer]:
    with consumer(scene) as made:
        made.assign([TopicPartition(scene.topic, 0, offset)])
        yield made


def producer(scene: Scene, **config: Any) -> confluent_kafka.Producer:
    properties = {key.replace("_", "."): value for key, value in config.items()}
    return confluent_kafka.Producer({"bootstrap.servers": scene.bootstrap, **properties})


def admin(scene: Scene) -> AdminClient:
    """Return an admin client. It must outlive its futures, so the scene keeps it."""
    made = AdminClient({"bootstrap.servers": scene.bootstrap})
    scene.kept.append(made)
    return made


def message(got: Any) -> Any:
    """Return what a message says, or its error."""
    if got is None:
        return None
    if got.error() is not None:
        return got.error().name()
    return (got.partition(), got.offset(), got.key(), got.value(), got.headers(), got.timestamp())


def polled(made: confluent_kafka.Consumer, count: int) -> list[Any]:
    """Poll so many messages; the first that does not come is a failure."""
    messages: list[Any] = []
    while len(messages) < count:
        messages.append(message(made.poll(TIMEOUT)))
        assert messages[-1] is not None
    return messages


def error_of(call: Callable[[], Any]) -> Any:
    """Return the name of the error that a call raises, or what it returns."""
    try:
        return call()
    except confluent_kafka.KafkaException as error:
        return error.args[0].name()


def results_of(futures: Any) -> list[Any]:
    """Return what each of an admin client's futures gives."""
    return [error_of(lambda f=future: f.result(TIMEOUT)) for future in futures.values()]


def of_topic(metadata: Any) -> Any:
    return {
        number: (
            len(partition.replicas),
            len(partition.isrs),
            partition.leader in partition.replicas,
            partition.error,
        )
        for number, partition in metadata.partitions.items()
    }


def delivered(made: confluent_kafka.Producer, topic: str, **what: Any) -> list[Any]:
    """Produce a message, and return what its callback is told."""
    told: list[Any] = []

    def note(error: Any, got: Any) -> None:
        told.append(error.name() if error is not None else (got.partition(), got.offset()))

    made.produce(topic, on_delivery=note, **what)
    assert made.flush(TIMEOUT) == 0
    return told


# ---- metadata ----


@CALLS("Consumer.list_topics()")
def _(scene: Scene) -> Any:
    with consumer(scene) as made:
        return of_topic(made.list_topics(timeout=TIMEOUT).topics[scene.topic])


@CALLS("Consumer.list_topics(topic)")
def _(scene: Scene) -> Any:
    with consumer(scene) as made:
        topics = made.list_topics(scene.topic, timeout=TIMEOUT).topics
        return list(topics) == [scene.topic], of_topic(topics[scene.topic])


@CALLS("Consumer.list_topics(unknown topic)")
def _(scene: Scene) -> Any:
    with consumer(scene) as made:
        (metadata,) = made.list_topics(scene.new_name(), timeout=TIMEOUT).topics.values()
        return of_topic(metadata), metadata.error.name()


@CALLS("Producer.list_topics()")
def _(scene: Scene) -> Any:
    return of_topic(producer(scene).list_topics(timeout=TIMEOUT).topics[scene.topic])


@CALLS("AdminClient.list_topics()")
def _(scene: Scene) -> Any:
    return of_topic(admin(scene).list_topics(timeout=TIMEOUT).topics[scene.topic])


@CALLS("Consumer.cluster_id()")
def _(scene: Scene) -> Any:
    with consumer(scene) as made:
        made.list_topics(timeout=TIMEOUT)
        return bool(made.cluster_id())


# ---- consuming ----


@CALLS("Consumer.subscribe(names), poll()")
def _(scene: Scene) -> Any:
    with consumer(scene) as made:
        made.subscribe([scene.topic])
        return polled(made, 10)


@CALLS("Consumer.subscribe(regular expression)")
def _(scene: Scene) -> Any:
    with consumer(scene) as made:
        made.subscribe([f"^{scene.topic[:-1]}.$"])
        return polled(made, 10)


@CALLS("Consumer.subscribe() with group.protocol=consumer")
def _(scene: Scene) -> Any:
    with consumer(scene, group_protocol="consumer") as made:
        made.subscribe([scene.topic])
        return polled(made, 10)


@CALLS("Consumer.subscribe(on_assign=, on_revoke=), unsubscribe()")
def _(scene: Scene) -> Any:
    told: list[Any] = []
    with consumer(scene) as made:
        made.subscribe(
            [scene.topic],
            on_assign=lambda _, partitions: told.append(
                sorted(partition.partition for partition in partitions)
            ),
            on_revoke=lambda _, partitions: told.append(
                sorted(partition.partition for partition in partitions)
            ),
        )
        made.poll(TIMEOUT)
        made.unsubscribe()
        made.poll(0.5)
    return told


@CALLS("Consumer.consume(many)")
def _(scene: Scene) -> Any:
    with assigned(scene) as made:
        return [message(received) for received in made.consume(10, TIMEOUT)]


@CALLS("Consumer.assign(offset)")
def _(scene: Scene) -> Any:
    with assigned(scene, 7) as made:
        return polled(made, 3)


@CALLS("Consumer.incremental_assign(), incremental_unassign(), assignment()")
def _(scene: Scene) -> Any:
    with assigned(scene) as made:
        made.incremental_assign([TopicPartition(scene.topic, 1, OFFSET_BEGINNING)])
        both = sorted(partition.partition for partition in made.assignment())
        made.incremental_unassign([TopicPartition(scene.topic, 1)])
        return both, [partition.partition for partition in made.assignment()]


@CALLS("Consumer.seek(), position()")
def _(scene: Scene) -> Any:
    with assigned(scene) as made:
        made.poll(TIMEOUT)
        made.seek(TopicPartition(scene.topic, 0, 5))
        got = message(made.poll(TIMEOUT))
        return got, [
            partition.offset for partition in made.position([TopicPartition(scene.topic, 0)])
        ]


@CALLS("Consumer.pause(), resume()")
def _(scene: Scene) -> Any:
    with assigned(scene) as made:
        made.poll(TIMEOUT)
        made.pause([TopicPartition(scene.topic, 0)])
        nothing = made.poll(0.5)
        made.resume([TopicPartition(scene.topic, 0)])
        return nothing, message(made.poll(TIMEOUT))


@CALLS("Consumer at an offset beyond the end, auto.offset.reset=error")
def _(scene: Scene) -> Any:
    with consumer(scene, auto_offset_reset="error") as made:
        made.assign([TopicPartition(scene.topic, 0, 1000)])
        return message(made.poll(TIMEOUT))


# ---- offsets ----


@CALLS("Consumer.get_watermark_offsets()")
def _(scene: Scene) -> Any:
    with consumer(scene) as made:
        return made.get_watermark_offsets(TopicPartition(scene.topic, 0), timeout=TIMEOUT)


@CALLS("Consumer.offsets_for_times()")
def _(scene: Scene) -> Any:
    with consumer(scene) as made:
        times = (FIRST_TIMESTAMP_MS + 2500, FIRST_TIMESTAMP_MS + 99_000_000)
        asked = [[TopicPartition(scene.topic, 0, time)] for time in times]
        return [made.offsets_for_times(question, timeout=TIMEOUT)[0].offset for question in asked]


@CALLS("Consumer.commit(offsets=), committed()")
def _(scene: Scene) -> Any:
    with consumer(scene) as made:
        mine = TopicPartition(scene.topic, 0, 4)
        before = made.committed([TopicPartition(scene.topic, 0)], timeout=TIMEOUT)[0].offset
        done = made.commit(offsets=[mine], asynchronous=False)
        after = made.committed([TopicPartition(scene.topic, 0)], timeout=TIMEOUT)[0].offset
        return before, [partition.offset for partition in done or ()], after


@CALLS("Consumer.commit(message=)")
def _(scene: Scene) -> Any:
    with consumer(scene) as made:
        made.subscribe([scene.topic])
        done = made.commit(message=made.poll(TIMEOUT), asynchronous=False)
        return [(partition.partition, partition.offset) for partition in done or ()]


@CALLS("Consumer.store_offsets(), commit()")
def _(scene: Scene) -> Any:
    with consumer(scene, enable_auto_offset_store=False) as made:
        made.subscribe([scene.topic])
        made.store_offsets(message=made.poll(TIMEOUT))
        return [
            (partition.partition, partition.offset)
            for partition in made.commit(asynchronous=False) or ()
        ]


@CALLS("Consumer.commit() of a stale member")
def _(scene: Scene) -> Any:
    with consumer(scene) as member, consumer(scene) as other:
        member.subscribe([scene.topic])
        member.poll(TIMEOUT)
        mine = [TopicPartition(scene.topic, 0, 1)]
        return error_of(lambda: other.commit(offsets=mine, asynchronous=False))


@CALLS("Consumer.memberid(), consumer_group_metadata()")
def _(scene: Scene) -> Any:
    with consumer(scene) as made:
        made.subscribe([scene.topic])
        made.poll(TIMEOUT)
        return bool(made.memberid()), made.consumer_group_metadata() is not None


# ---- producing ----


@CALLS("Producer.produce(callback)")
def _(scene: Scene) -> Any:
    return delivered(producer(scene), scene.topic, value=b"v", key=b"k", partition=0)


@CALLS("Producer.produce(headers=, timestamp=)")
def _(scene: Scene) -> Any:
    what = {"headers": [("h", b"1"), ("h", None)], "timestamp": 1234567890123, "partition": 1}
    told = delivered(producer(scene), scene.topic, value=None, **what)
    with consumer(scene) as made:
        made.assign([TopicPartition(scene.topic, 1, OFFSET_BEGINNING)])
        return told, message(made.poll(TIMEOUT))


@CALLS("Producer.produce() with compression and idempotence")
def _(scene: Scene) -> Any:
    made = producer(scene, compression_type="zstd", enable_idempotence=True, linger_ms=50)
    for number in range(100):
        made.produce(scene.topic, b"%d" % number * 50, partition=0)
    return made.flush(TIMEOUT), delivered(made, scene.topic, value=b"last", partition=0)


@CALLS("Producer.produce_batch()")
def _(scene: Scene) -> Any:
    made = producer(scene)
    count = made.produce_batch(scene.topic, [{"value": b"1"}, {"value": b"2"}], partition=0)
    return count, made.flush(TIMEOUT), delivered(made, scene.topic, value=b"last", partition=0)


@CALLS("Producer.produce(no such partition)")
def _(scene: Scene) -> Any:
    return error_of(lambda: delivered(producer(scene), scene.topic, value=b"v", partition=9))


@CALLS("Producer.produce(no such topic)")
def _(scene: Scene) -> Any:
    made = producer(scene, message_timeout_ms=5000, topic_metadata_propagation_max_ms=500)
    return delivered(made, scene.new_name(), value=b"v")


@CALLS("Producer.produce(bad topic name)")
def _(scene: Scene) -> Any:
    made = producer(scene, message_timeout_ms=5000, topic_metadata_propagation_max_ms=500)
    return delivered(made, "not a topic!", value=b"v")


@CALLS("Producer.produce(larger than the broker takes)")
def _(scene: Scene) -> Any:
    made = producer(scene, message_max_bytes=5_000_000)
    return delivered(made, scene.topic, value=b"v" * 2_000_000, partition=0)


@CALLS("Producer.commit_transaction()")
def _(scene: Scene) -> Any:
    made = producer(scene, transactional_id=scene.group)
    made.init_transactions(TIMEOUT)
    made.begin_transaction()
    outcome = delivered(made, scene.topic, value=b"v", partition=0)
    return outcome, error_of(lambda: made.commit_transaction(TIMEOUT))


# ---- administration ----


@CALLS("AdminClient.create_topics()")
def _(scene: Scene) -> Any:
    made = admin(scene)
    name = scene.new_name()
    created = results_of(made.create_topics([NewTopic(name, 3, 1)]))
    # The controller has answered, and the broker learns of it.
    topic = eventually(lambda: made.list_topics(timeout=TIMEOUT).topics.get(name))
    return created, topic.error, list(topic.partitions)


@CALLS("AdminClient.create_topics() of one that is there")
def _(scene: Scene) -> Any:
    return results_of(admin(scene).create_topics([NewTopic(scene.topic, 3, 1)]))


@CALLS("AdminClient.create_topics() with settings")
def _(scene: Scene) -> Any:
    made = admin(scene)
    name = scene.new_name()
    created = results_of(made.create_topics([NewTopic(name, 1, 1, config=SETTINGS)]))
    eventually(lambda: name in made.list_topics(timeout=TIMEOUT).topics)
    (settings,) = results_of(made.describe_configs([ConfigResource(ResourceType.TOPIC, name)]))
    keyless = delivered(producer(scene), name, value=b"v")
    return created, {setting: settings[setting].value for setting in SETTINGS}, keyless


@CALLS("AdminClient.create_topics() with bad arguments")
def _(scene: Scene) -> Any:
    bad = [
        NewTopic(scene.new_name(), 0, 1),
        NewTopic(scene.new_name(), 1, 9),
        NewTopic("not a topic!", 1, 1),
        NewTopic(scene.new_name(), 1, 1, config={"no.such.setting": "1"}),
    ]
    return [results_of(admin(scene).create_topics([new_topic])) for new_topic in bad]


@CALLS("AdminClient.create_topics(validate_only=True)")
def _(scene: Scene) -> Any:
    made = admin(scene)
    name = scene.new_name()
    done = results_of(made.create_topics([NewTopic(name, 3, 1)], validate_only=True))
    return done, name in made.list_topics(timeout=TIMEOUT).topics


@CALLS("AdminClient.delete_topics()")
def _(scene: Scene) -> Any:
    return results_of(admin(scene).delete_topics([scene.topic]))


@CALLS("AdminClient.delete_topics() of one that is not there")
def _(scene: Scene) -> Any:
    return results_of(admin(scene).delete_topics([scene.new_name()]))


@CALLS("AdminClient.delete_records()")
def _(scene: Scene) -> Any:
    before = [TopicPartition(scene.topic, 0, 3)]
    (done,) = results_of(admin(scene).delete_records(before))
    with assigned(scene) as made:
        return done.low_watermark, message(made.poll(TIMEOUT))


@CALLS("AdminClient.list_offsets()")
def _(scene: Scene) -> Any:
    mine = TopicPartition(scene.topic, 0)
    specs = (OffsetSpec.earliest(), OffsetSpec.latest(), OffsetSpec.max_timestamp())
    results = [results_of(admin(scene).list_offsets({mine: spec}))[0] for spec in specs]
    return [result.offset for result in results]


@CALLS("AdminClient.list_consumer_group_offsets(), alter_consumer_group_offsets()")
def _(scene: Scene) -> Any:
    mine = TopicPartition(scene.topic, 0, 6)
    made = admin(scene)
    changed = results_of(
        made.alter_consumer_group_offsets([ConsumerGroupTopicPartitions(scene.group, [mine])])
    )
    asked = ConsumerGroupTopicPartitions(scene.group, [TopicPartition(scene.topic, 0)])
    listed = results_of(made.list_consumer_group_offsets([asked]))
    return [
        [partition.offset for partition in result.topic_partitions] for result in changed + listed
    ]


@CALLS("AdminClient.describe_consumer_groups()")
def _(scene: Scene) -> Any:
    with consumer(scene) as member:
        member.subscribe([scene.topic])
        member.poll(TIMEOUT)
        (group,) = results_of(admin(scene).describe_consumer_groups([scene.group]))
        members = [
            sorted(tp.partition for tp in described.assignment.topic_partitions)
            for described in group.members
        ]
        return group.state.name, group.partition_assignor, group.is_simple_consumer_group, members


@CALLS("AdminClient.describe_topics()")
def _(scene: Scene) -> Any:
    from confluent_kafka import TopicCollection

    (topic,) = results_of(admin(scene).describe_topics(TopicCollection([scene.topic])))
    return [len(partition.replicas) for partition in topic.partitions], topic.is_internal


@CALLS("AdminClient.describe_cluster()")
def _(scene: Scene) -> Any:
    cluster = admin(scene).describe_cluster().result(TIMEOUT)
    return len(cluster.nodes), cluster.controller is not None


@CALLS("AdminClient.describe_configs(topic)")
def _(scene: Scene) -> Any:
    asked = ConfigResource(ResourceType.TOPIC, scene.topic)
    (settings,) = results_of(admin(scene).describe_configs([asked]))
    return settings["max.message.bytes"].value


@CALLS("AdminClient.incremental_alter_configs()")
def _(scene: Scene) -> Any:
    entry = ConfigEntry("retention.bytes", "1000", incremental_operation=AlterConfigOpType.SET)
    asked = ConfigResource(ResourceType.TOPIC, scene.topic, incremental_configs=[entry])
    return results_of(admin(scene).incremental_alter_configs([asked]))


@CALLS("AdminClient.create_partitions()")
def _(scene: Scene) -> Any:
    return results_of(admin(scene).create_partitions([NewPartitions(scene.topic, 4)]))


@CALLS("AdminClient.list_consumer_groups()")
def _(scene: Scene) -> Any:
    groups = admin(scene).list_consumer_groups().result(TIMEOUT)
    return [error.args[0].name() for error in groups.errors]


@CALLS("AdminClient.describe_acls()")
def _(scene: Scene) -> Any:
    from confluent_kafka.admin import (
        AclBindingFilter,
        AclOperation,
        AclPermissionType,
        ResourcePatternType,
    )

    anything = AclBindingFilter(
        ResourceType.ANY,
        None,
        ResourcePatternType.ANY,
        None,
        None,
        AclOperation.ANY,
        AclPermissionType.ANY,
    )
    return error_of(lambda: admin(scene).describe_acls(anything).result(TIMEOUT))


@CALLS.parametrize
def test_the_outcome_is_the_same(call: PeerCall, brokers: Brokers) -> None:
    compare(call, brokers)


def test_there_are_forty() -> None:
    assert len(CALLS.compared) >= 40
