"""Calls of aiokafka."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiokafka import (
    AIOKafkaConsumer,
    AIOKafkaProducer,
    ConsumerRebalanceListener,
    TopicPartition,
)
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic, RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import KafkaError
from aiokafka.structs import OffsetAndMetadata

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

CALLS = Calls()

pytestmark = pytest.mark.filterwarnings("ignore")  # they are the peer's own


def add(
    name: str, needs: str | None = None
) -> Callable[[Callable[[Scene], Awaitable[Any]]], Callable[[Scene], Any]]:
    """Return a decorator that adds a call, run in a loop of its own.

    aiokafka leaves connections open in its garbage. They are collected here, where its warnings
    are ignored: a later test, of another file, would fail by them.
    """

    def wrap(call: Callable[[Scene], Awaitable[Any]]) -> Callable[[Scene], Any]:
        async def limited(scene: Scene) -> Any:
            return await asyncio.wait_for(call(scene), 2 * TIMEOUT)

        def run(scene: Scene) -> Any:
            try:
                return asyncio.run(limited(scene))
            finally:
                gc.collect()

        return CALLS(name, needs)(run)

    return wrap


@asynccontextmanager
async def consumer(scene: Scene, *topics: str, **config: Any) -> AsyncIterator[AIOKafkaConsumer]:
    defaults = {
        "group_id": scene.group,
        "auto_offset_reset": "earliest",
        "enable_auto_commit": False,
    }
    made = AIOKafkaConsumer(*topics, bootstrap_servers=scene.bootstrap, **{**defaults, **config})
    await made.start()
    try:
        yield made
    finally:
        await made.stop()


@asynccontextmanager
async def assigned(scene: Scene) -> AsyncIterator[tuple[AIOKafkaConsumer, TopicPartition]]:
    async with consumer(scene) as made:
        mine = TopicPartition(scene.topic, 0)
        made.assign([mine])
        yield made, mine


@asynccontextmanager
async def producer(scene: Scene, **config: Any) -> AsyncIterator[AIOKafkaProducer]:
    made = AIOKafkaProducer(bootstrap_servers=scene.bootstrap, **config)
    await made.start()
    try:
        yield made
    finally:
        await made.stop()


@asynccontextmanager
async def admin(scene: Scene) -> AsyncIterator[AIOKafkaAdminClient]:
    made = AIOKafkaAdminClient(bootstrap_servers=scene.bootstrap)
    await made.start()
    try:
        yield made
    finally:
        await made.close()


def record(got: Any) -> Any:
    return got.partition, got.offset, got.key, got.value, list(got.headers), got.timestamp


async def records(made: AIOKafkaConsumer, count: int) -> list[Any]:
    return [record(await made.getone()) for _ in range(count)]


async def error_of(call: Awaitable[Any]) -> Any:
    """Return the name of the error that a call raises, or what it returns."""
    try:
        return await call
    except (KafkaError, AssertionError, ValueError) as error:
        return type(error).__name__


async def sent(made: AIOKafkaProducer, topic: str, **what: Any) -> Any:
    """Send a record, and return its place or the name of its error."""
    told = await error_of(made.send_and_wait(topic, **what))
    return told if isinstance(told, str) else (told.partition, told.offset)


# ---- metadata ----


@add("AIOKafkaConsumer.topics()")
async def _(scene: Scene) -> Any:
    async with consumer(scene) as made:
        return scene.topic in await made.topics()


@add("AIOKafkaConsumer.partitions_for_topic()")
async def _(scene: Scene) -> Any:
    async with consumer(scene, scene.topic) as made:
        return made.partitions_for_topic(scene.topic), made.partitions_for_topic(scene.new_name())


@add("AIOKafkaProducer.partitions_for()")
async def _(scene: Scene) -> Any:
    async with producer(scene) as made:
        return sorted(await made.partitions_for(scene.topic))


# ---- consuming ----


@add("AIOKafkaConsumer(topic), getone()")
async def _(scene: Scene) -> Any:
    async with consumer(scene, scene.topic) as made:
        return await records(made, 10)


@add("AIOKafkaConsumer.subscribe(pattern)")
async def _(scene: Scene) -> Any:
    async with consumer(scene, metadata_max_age_ms=500) as made:
        made.subscribe(pattern=f"^{scene.topic[:-1]}.$")
        return await records(made, 10)


@add("AIOKafkaConsumer.subscribe(listener)")
async def _(scene: Scene) -> Any:
    told: list[Any] = []

    class Listener(ConsumerRebalanceListener):
        def on_partitions_revoked(self, revoked: Any) -> None:
            told.append(("revoked", sorted(partition.partition for partition in revoked)))

        def on_partitions_assigned(self, assigned: Any) -> None:
            told.append(("assigned", sorted(partition.partition for partition in assigned)))

    async with consumer(scene) as made:
        made.subscribe([scene.topic], listener=Listener())
        await records(made, 1)
    return told


@add("async for of AIOKafkaConsumer")
async def _(scene: Scene) -> Any:
    got: list[Any] = []
    async with consumer(scene, scene.topic) as made:
        async for message in made:
            got.append(message.value)
            if len(got) == 10:
                break
    return got


@add("AIOKafkaConsumer.getmany()")
async def _(scene: Scene) -> Any:
    async with assigned(scene) as (made, mine):
        got: list[Any] = []
        while len(got) < 10:
            batches = await made.getmany(mine, timeout_ms=TIMEOUT * 1000)
            got += [record(message) for message in batches.get(mine, ())]
        return got


@add("AIOKafkaConsumer.assign(), seek(), position()")
async def _(scene: Scene) -> Any:
    async with assigned(scene) as (made, mine):
        made.seek(mine, 7)
        return await records(made, 3), await made.position(mine)


@add("AIOKafkaConsumer.seek_to_beginning()")
async def _(scene: Scene) -> Any:
    async with assigned(scene) as (made, mine):
        await records(made, 3)
        await made.seek_to_beginning(mine)
        return await made.position(mine), await records(made, 1)


@add("AIOKafkaConsumer.seek_to_end()")
async def _(scene: Scene) -> Any:
    async with assigned(scene) as (made, mine):
        await made.seek_to_end(mine)
        return await made.position(mine)


@add("AIOKafkaConsumer.seek_to_committed()")
async def _(scene: Scene) -> Any:
    async with assigned(scene) as (made, mine):
        await made.commit({mine: 6})
        await made.seek_to_committed(mine)
        return await records(made, 1)


@add("AIOKafkaConsumer.pause(), paused(), resume()")
async def _(scene: Scene) -> Any:
    async with assigned(scene) as (made, mine):
        made.pause(mine)
        nothing = await made.getmany(timeout_ms=500)
        paused = [partition.partition for partition in made.paused()]
        made.resume(mine)
        return nothing, paused, await records(made, 1)


@add("AIOKafkaConsumer.subscription(), assignment(), unsubscribe()")
async def _(scene: Scene) -> Any:
    async with consumer(scene, scene.topic) as made:
        await records(made, 1)
        before = made.subscription() == {scene.topic}, len(made.assignment())
        made.unsubscribe()
        return before, made.subscription(), made.assignment()


@add("AIOKafkaConsumer.highwater(), last_stable_offset()")
async def _(scene: Scene) -> Any:
    async with assigned(scene) as (made, mine):
        await records(made, 1)
        return made.highwater(mine), made.last_stable_offset(mine)


@add("AIOKafkaConsumer at an offset beyond the end, auto_offset_reset=none")
async def _(scene: Scene) -> Any:
    async with consumer(scene, auto_offset_reset="none") as made:
        mine = TopicPartition(scene.topic, 0)
        made.assign([mine])
        made.seek(mine, 1000)
        return await error_of(made.getone())


@add("AIOKafkaConsumer with isolation_level=read_committed")
async def _(scene: Scene) -> Any:
    async with consumer(scene, scene.topic, isolation_level="read_committed") as made:
        return await records(made, 10)


@add("AIOKafkaConsumer with sticky")
async def _(scene: Scene) -> Any:
    from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor

    strategy = (StickyPartitionAssignor,)
    async with consumer(scene, scene.topic, partition_assignment_strategy=strategy) as made:
        return await records(made, 10)


@add("AIOKafkaConsumer without a group")
async def _(scene: Scene) -> Any:
    async with consumer(scene, scene.topic, group_id=None) as made:
        return await records(made, 10)


@add("Two of AIOKafkaConsumer in a group")
async def _(scene: Scene) -> Any:
    async with (
        consumer(scene, scene.topic, heartbeat_interval_ms=200) as one,
        consumer(scene, scene.topic, heartbeat_interval_ms=200) as two,
    ):
        while not (len(one.assignment()) == len(two.assignment()) == 1):  # noqa: ASYNC110  # no news
            await asyncio.sleep(0.05)
        both = one.assignment() | two.assignment()
        return sorted(partition.partition for partition in both)


# ---- offsets ----


@add("AIOKafkaConsumer.beginning_offsets(), end_offsets()")
async def _(scene: Scene) -> Any:
    async with consumer(scene) as made:
        both = [TopicPartition(scene.topic, number) for number in range(2)]
        first, last = await made.beginning_offsets(both), await made.end_offsets(both)
        return [(first[partition], last[partition]) for partition in both]


@add("AIOKafkaConsumer.offsets_for_times()")
async def _(scene: Scene) -> Any:
    async with consumer(scene) as made:
        mine = TopicPartition(scene.topic, 0)
        times = (FIRST_TIMESTAMP_MS + 2500, FIRST_TIMESTAMP_MS + 99_000_000)
        answers = [(await made.offsets_for_times({mine: time}))[mine] for time in times]
        return [None if answer is None else (answer.offset, answer.timestamp) for answer in answers]


@add("AIOKafkaConsumer.commit(offsets), committed()")
async def _(scene: Scene) -> Any:
    async with assigned(scene) as (made, mine):
        before = await made.committed(mine)
        await made.commit({mine: OffsetAndMetadata(4, "note")})
        return before, await made.committed(mine)


@add("AIOKafkaConsumer.commit() of a member")
async def _(scene: Scene) -> Any:
    async with consumer(scene, scene.topic) as made:
        await records(made, 5)
        await made.commit()
        return await made.committed(TopicPartition(scene.topic, 0))


@add("AIOKafkaConsumer.commit() of a stranger")
async def _(scene: Scene) -> Any:
    async with consumer(scene, scene.topic) as member, assigned(scene) as (other, mine):
        await records(member, 1)
        return await error_of(other.commit({mine: 1}))


# ---- producing ----


@add("AIOKafkaProducer.send_and_wait()")
async def _(scene: Scene) -> Any:
    async with producer(scene) as made:
        return await sent(made, scene.topic, value=b"v", key=b"k", partition=0)


@add("AIOKafkaProducer.send(headers=, timestamp_ms=)")
async def _(scene: Scene) -> Any:
    async with producer(scene) as made:
        what = {"headers": [("h", b"1")], "timestamp_ms": 1234567890123, "partition": 1}
        told = await sent(made, scene.topic, key=b"k", **what)
    async with consumer(scene) as reader:
        reader.assign([TopicPartition(scene.topic, 1)])
        return told, await records(reader, 1)


@add("AIOKafkaProducer.send() by key")
async def _(scene: Scene) -> Any:
    async with producer(scene) as made:
        return [(await sent(made, scene.topic, value=b"v", key=b"k%d" % n))[0] for n in range(8)]


@add("AIOKafkaProducer with idempotence and compression, flush()")
async def _(scene: Scene) -> Any:
    async with producer(scene, enable_idempotence=True, compression_type="gzip") as made:
        futures = [await made.send(scene.topic, b"%d" % n * 50, partition=0) for n in range(100)]
        await made.flush()
        return [future.result().offset for future in futures]


@add("AIOKafkaProducer.create_batch(), send_batch()")
async def _(scene: Scene) -> Any:
    async with producer(scene) as made:
        batch = made.create_batch()
        for number in range(3):
            batch.append(key=None, value=b"%d" % number, timestamp=None)
        batch.close()
        told = await (await made.send_batch(batch, scene.topic, partition=1))
        return told.partition, told.offset


@add("AIOKafkaProducer with acks=0, and with acks=1")
async def _(scene: Scene) -> Any:
    async with producer(scene, acks=0) as made:
        await made.send_and_wait(scene.topic, b"v", partition=1)
    async with producer(scene, acks=1) as made:
        return await sent(made, scene.topic, value=b"v", partition=1)


@add("AIOKafkaProducer.send(larger than the broker takes)")
async def _(scene: Scene) -> Any:
    async with producer(scene, max_request_size=5_000_000) as made:
        return await sent(made, scene.topic, value=b"v" * 2_000_000, partition=0)


@add("AIOKafkaProducer.send(no such topic)")
async def _(scene: Scene) -> Any:
    async with producer(scene, request_timeout_ms=1500) as made:
        return await sent(made, scene.new_name(), value=b"v")


@add("AIOKafkaProducer with a transactional_id")
async def _(scene: Scene) -> Any:
    async def begin() -> Any:
        async with producer(scene, transactional_id=scene.group) as made, made.transaction():
            return await sent(made, scene.topic, value=b"v", partition=0)

    return await error_of(begin())


# ---- administration ----


@add("AIOKafkaAdminClient.create_topics()")
async def _(scene: Scene) -> Any:
    async with admin(scene) as made:
        name = scene.new_name()
        answer = await made.create_topics([NewTopic(name, 3, 1)])
        while name not in await made.list_topics():
            pass  # the controller has answered, and the broker learns of it
        (described,) = await made.describe_topics([name])
        return answer.topic_errors[0][1], described["error_code"], len(described["partitions"])


@add("AIOKafkaAdminClient.create_topics() with settings")
async def _(scene: Scene) -> Any:
    name = scene.new_name()
    async with admin(scene) as made, producer(scene) as sender:
        answer = await made.create_topics([NewTopic(name, 1, 1, topic_configs=SETTINGS)])
        while name not in await made.list_topics():
            pass
        keyless = await sent(sender, name, value=b"v")
        return answer.topic_errors[0][1], keyless, await sent(sender, name, value=b"v", key=b"k")


@add("AIOKafkaAdminClient.create_topics() of one that is there, and with bad arguments")
async def _(scene: Scene) -> Any:
    asked = [
        NewTopic(scene.topic, 1, 1),
        NewTopic(scene.new_name(), 0, 1),
        NewTopic(scene.new_name(), 1, 9),
        NewTopic("not a topic!", 1, 1),
        NewTopic(scene.new_name(), 1, 1, topic_configs={"no.such.setting": "1"}),
    ]
    async with admin(scene) as made:
        answers = [await made.create_topics([new_topic]) for new_topic in asked]
        return [answer.topic_errors[0][1] for answer in answers]


@add("AIOKafkaAdminClient.list_topics()")
async def _(scene: Scene) -> Any:
    async with admin(scene) as made:
        return scene.topic in await made.list_topics()


@add("AIOKafkaAdminClient.describe_topics()")
async def _(scene: Scene) -> Any:
    async with admin(scene) as made:
        (described,) = await made.describe_topics([scene.topic])
        return described["error_code"], len(described["partitions"]), described["is_internal"]


@add("AIOKafkaAdminClient.delete_topics()")
async def _(scene: Scene) -> Any:
    async with admin(scene) as made:
        answers = [await made.delete_topics([name]) for name in (scene.topic, scene.new_name())]
        return [answer.topic_error_codes[0][1] for answer in answers]


@add("AIOKafkaAdminClient.delete_records()")
async def _(scene: Scene) -> Any:
    async with admin(scene) as made:
        mine = TopicPartition(scene.topic, 0)
        return list((await made.delete_records({mine: RecordsToDelete(3)})).values())


@add("AIOKafkaAdminClient.describe_configs(topic)")
async def _(scene: Scene) -> Any:
    async with admin(scene) as made:
        asked = ConfigResource(ConfigResourceType.TOPIC, scene.topic)
        (answer,) = await made.describe_configs([asked])
        values = {entry[0]: entry[1] for entry in answer.resources[0][4]}
        return values["max.message.bytes"]


@add("AIOKafkaAdminClient.find_coordinator()")
async def _(scene: Scene) -> Any:
    async with admin(scene) as made:
        return await made.find_coordinator(scene.group) >= 0


@add("AIOKafkaAdminClient.list_consumer_group_offsets()")
async def _(scene: Scene) -> Any:
    async with assigned(scene) as (made, mine):
        await made.commit({mine: 6})
    async with admin(scene) as asking:
        offsets = await asking.list_consumer_group_offsets(scene.group)
        return [committed.offset for committed in offsets.values()]


@add("AIOKafkaAdminClient.describe_consumer_groups()")
async def _(scene: Scene) -> Any:
    async with consumer(scene, scene.topic) as member, admin(scene) as made:
        await records(member, 1)
        (answer,) = await made.describe_consumer_groups([scene.group])
        return [(group[0], group[2], group[3], group[4]) for group in answer.groups]


@add("AIOKafkaAdminClient.describe_cluster()")
async def _(scene: Scene) -> Any:
    async with admin(scene) as made:
        return len((await made.describe_cluster())["brokers"])


@add("AIOKafkaAdminClient.create_partitions()")
async def _(scene: Scene) -> Any:
    async with admin(scene) as made:
        answer = await made.create_partitions({scene.topic: NewPartitions(4)})
        return answer.topic_errors[0][1]


@add("AIOKafkaAdminClient.list_consumer_groups()")
async def _(scene: Scene) -> Any:
    async with admin(scene) as made:
        return isinstance(await made.list_consumer_groups(), list)


@add("AIOKafkaAdminClient.alter_configs()", needs="AlterConfigs")
async def _(scene: Scene) -> Any:
    async with admin(scene) as made:
        asked = ConfigResource(
            ConfigResourceType.TOPIC, scene.topic, configs={"retention.bytes": "1000"}
        )
        return [answer.resources[0][0] for answer in await made.alter_configs([asked])]


@CALLS.parametrize
def test_the_outcome_is_the_same(call: PeerCall, brokers: Brokers) -> None:
    compare(call, brokers)


def test_there_are_forty() -> None:
    assert len(CALLS.compared) >= 40
