"""The admin client while nodes of a real cluster die and hang."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from kafka_fast import Admin, TopicPartition
from kafka_fast.admin import (
    AlterConfigOp,
    ConfigResource,
    ConfigResourceType,
    NewTopic,
    OffsetSpec,
)
from kafka_fast.errors import (
    KafkaTimeoutError,
    TopicAlreadyExists,
    UnknownTopicOrPartition,
)
from kafka_fast.testing._kafka.real_kafka import RealKafka
from tests.integration.admin.calls.stage import Stage
from tests.waiting import eventually

pytestmark = [pytest.mark.long, pytest.mark.broker, pytest.mark.timeout(300)]

STATES = "__transaction_state"
"""The topic of the coordinators of transactions."""
BEFORE, AFTER = 15, 15
"""How many changes of each kind come before the controller dies, and after."""
AN_EARLIER_TRY = "an earlier try, of which no answer came, may have"


@pytest.fixture
def active(admin: Admin) -> int:
    """The id of the node that is the active controller."""
    return admin.describe_metadata_quorum().leader_id


@pytest.fixture
def follower(active: int) -> int:
    """A node that is not."""
    return next(node for node in (1, 2, 3) if node != active)


# ---- the controller ----


class Changes:
    """Changes of one kind, one after the other; what became of each is kept."""

    def __init__(self, count: int, change: Callable[[int], Any]) -> None:
        self._count = count
        self._change = change
        self.done: list[int] = []
        self.refused: dict[int, Exception] = {}
        self.is_under_way = threading.Event()

    def make_all(self) -> None:
        """Make them; in the middle somebody kills the controller."""
        for number in range(self._count):
            if number == BEFORE:
                self.is_under_way.set()
            result = self._change(number)
            for error in result.errors.values():
                self.refused[number] = error
            if not result.errors:
                self.done.append(number)


def test_the_controller_dies_amid_changes(
    stage: Stage, admin: Admin, operated: RealKafka, active: int
) -> None:
    """Each change is made, or its error says that an earlier try may have made it."""
    count = BEFORE + AFTER
    new = [stage.new_name("new") for _ in range(count)]
    old = [stage.new_name("old") for _ in range(count)]
    altered = [stage.new_name("altered") for _ in range(count)]
    admin.create_topics([NewTopic(name, 1, 3) for name in old + altered]).raise_first()
    admin.wait_until_topics_visible(old + altered)

    def settings(number: int) -> ConfigResource:
        return ConfigResource(ConfigResourceType.TOPIC, altered[number])

    creations = Changes(count, lambda n: admin.create_topics([NewTopic(new[n], 1, 3)]))
    deletions = Changes(count, lambda n: admin.delete_topics([old[n]]))
    ops = [AlterConfigOp("retention.ms", "1234")]
    alterations = Changes(count, lambda n: admin.incremental_alter_configs({settings(n): ops}))
    kinds = (creations, deletions, alterations)
    with ThreadPoolExecutor(len(kinds)) as threads:
        running = [threads.submit(one.make_all) for one in kinds]
        for one in kinds:
            assert one.is_under_way.wait(60.0)
        operated.node(active).kill()
        for one in running:
            one.result()
    assert admin.describe_metadata_quorum().leader_id != active
    for error in creations.refused.values():
        assert isinstance(error, TopicAlreadyExists), error
        assert AN_EARLIER_TRY in str(error)
    for error in deletions.refused.values():
        assert isinstance(error, UnknownTopicOrPartition), error
        assert AN_EARLIER_TRY in str(error)
    assert alterations.refused == {}
    admin.wait_until_topics_visible(new)
    eventually(lambda: not {*old} & set(admin.list_topics()), "the deleted topics to be gone")
    resources = [settings(number) for number in range(count)]

    def values() -> set[str | None]:
        told = admin.describe_configs(resources).raise_first()
        return {one["retention.ms"].value for one in told.values()}

    eventually(lambda: values() == {"1234"}, "all settings")


# ---- nodes that do not answer ----


def test_a_node_that_hangs_has_its_error_and_the_others_their_answers(
    stage: Stage, admin: Admin, operated: RealKafka, follower: int
) -> None:
    group = stage.new_group(stage.new_topic(), 0)
    others = {1, 2, 3} - {follower}
    admin.list_groups().raise_first()
    admin.describe_log_dirs([1, 2, 3]).raise_first()  # every node has a connection
    operated.node(follower).pause()
    dirs = admin.describe_log_dirs([1, 2, 3], timeout=3.0)
    assert set(dirs.succeeded) == others
    (error,) = dirs.errors.values()
    assert isinstance(error, KafkaTimeoutError)
    assert f"DescribeLogDirs of broker {follower}" in str(error)
    listed = admin.list_groups(timeout=1.0)
    assert set(listed.errors) <= {follower}  # none: the cluster has noticed meanwhile
    operated.heal()
    assert group in admin.list_groups().raise_first()


def test_a_node_that_is_dead_has_its_error(
    stage: Stage, admin: Admin, operated: RealKafka, follower: int
) -> None:
    operated.node(follower).kill()
    dirs = admin.describe_log_dirs([1, 2, 3], timeout=2.0)
    assert set(dirs.errors) == {follower}
    assert f"of broker {follower}" in str(dirs.errors[follower])
    producers = admin.describe_producers(
        [TopicPartition("__consumer_offsets", 0)], broker_id=follower, timeout=2.0
    )
    (error,) = producers.errors.values()
    assert f"node {follower}" in str(error)


def test_offsets_of_a_dead_leader_come_from_the_next_one(
    stage: Stage, admin: Admin, operated: RealKafka, follower: int
) -> None:
    name = stage.new_name("led")
    order = [follower, *({1, 2, 3} - {follower})]
    admin.create_topics([NewTopic(name, assignments={0: order})]).raise_first()
    admin.wait_until_topics_visible([name])
    here = TopicPartition(name, 0)
    assert admin.list_offsets({here: OffsetSpec.LATEST})[here].offset == 0
    operated.node(follower).kill()
    assert admin.list_offsets({here: OffsetSpec.LATEST})[here].offset == 0


# ---- coordinators ----


def test_the_coordinator_of_a_group_dies(stage: Stage, admin: Admin, operated: RealKafka) -> None:
    """The next one loads what was committed, and is asked again until it has."""
    topic = stage.new_topic()
    here, group = TopicPartition(topic, 0), stage.new_group(topic, 4)
    coordinator = admin.describe_consumer_groups([group])[group].coordinator
    assert coordinator is not None
    operated.node(coordinator).kill()
    committed = admin.list_consumer_group_offsets({group: [here]})[group][here]
    assert committed is not None
    assert committed.offset == 4
    assert admin.describe_consumer_groups([group])[group].coordinator != coordinator
    admin.alter_consumer_group_offsets(group, {here: 5}).raise_first()


def test_the_coordinator_of_a_transaction_dies(
    stage: Stage, admin: Admin, operated: RealKafka
) -> None:
    name = stage.new_name("txn")
    first = admin.fence_producers([name])[name]
    operated.node(leader_of_states(admin, name)).kill()
    assert admin.describe_transactions([name])[name].producer_id == first.producer_id
    assert admin.fence_producers([name])[name].epoch > first.epoch


def leader_of_states(admin: Admin, name: str) -> int:
    """Return who coordinates a transactional id: the leader of the partition by its hash."""
    code = 0
    for letter in name:  # as Java's String.hashCode
        code = (31 * code + ord(letter)) & 0xFFFFFFFF
    partitions = admin.describe_topics([STATES])[STATES].partitions
    leader = partitions[(code & 0x7FFFFFFF) % len(partitions)].leader
    assert leader is not None
    return leader
