"""Groups of the classic protocol through sockets: sharing, listeners, leaving, being left."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Collection, Iterator
from typing import Any

import pytest

from kafka_fast import (
    CommitFailedError,
    Consumer,
    RebalanceListener,
    TopicPartition,
    UsageError,
    WakeupError,
)
from kafka_fast.errors import (
    FencedInstanceId,
    GroupAuthorizationFailed,
    InvalidSessionTimeout,
    KafkaError,
)
from kafka_fast.records._consumer_record import ConsumerRecord
from kafka_fast.testing.broker.serving.server import EmbeddedKafka
from kafka_fast.testing.broker.versions import (
    FIND_COORDINATOR,
    HEARTBEAT,
    JOIN_GROUP,
    LEAVE_GROUP,
    OFFSET_COMMIT,
)
from tests.embedded.consuming import (
    MakeConsumer,
    committed,
    fill,
    partitions_of,
    poll_until,
    read,
    values_by_partition,
)
from tests.embedded.producing import new_topic
from tests.waiting import TIMEOUT, eventually

DRIVERS = True  # every test runs with threads and with asyncio

PARTITIONS = 4


class Diary(RebalanceListener):
    """Writes down what it hears, and in which thread."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, set[TopicPartition]]] = []
        self.threads: set[threading.Thread] = set()
        self.fail: KafkaError | None = None

    def _note(self, what: str, partitions: Collection[TopicPartition]) -> None:
        self.heard.append((what, set(partitions)))
        self.threads.add(threading.current_thread())
        if self.fail is not None:
            raise self.fail

    def on_partitions_assigned(
        self, consumer: Consumer, partitions: Collection[TopicPartition]
    ) -> None:
        self._note("assigned", partitions)

    def on_partitions_revoked(
        self, consumer: Consumer, partitions: Collection[TopicPartition]
    ) -> None:
        self._note("revoked", partitions)

    def on_partitions_lost(
        self, consumer: Consumer, partitions: Collection[TopicPartition]
    ) -> None:
        self._note("lost", partitions)


@pytest.fixture(name="topic")
def shared_topic(kafka: EmbeddedKafka) -> str:
    return new_topic(kafka, "shared", PARTITIONS)


@pytest.fixture
def every(topic: str) -> set[TopicPartition]:
    return set(partitions_of(topic, PARTITIONS))


@pytest.fixture
def member_on(consumer_on: MakeConsumer, topic: str) -> MakeConsumer:
    """Members of the topic's group; quick to notice what happens."""

    def make(listener: RebalanceListener | None = None, **config: Any) -> Consumer:
        config = {
            "group_id": f"group-of-{topic}",
            "heartbeat_interval_ms": 50,
            "session_timeout_ms": 6_000,
            **config,
        }
        one = consumer_on(**config)
        one.subscribe([topic], listener=listener)
        return one

    return make


def shared(members: list[Consumer], every: set[TopicPartition]) -> bool:
    """Whether each partition has one reader, and each member as many as is fair."""
    parts = [member.assignment() for member in members]
    sizes = sorted(map(len, parts))
    return set().union(*parts) == every and sum(sizes) == len(every) and sizes[-1] - sizes[0] <= 1


class TestSharing:
    @pytest.mark.parametrize("strategy", ["range", "roundrobin", "sticky", "cooperative-sticky"])
    def test_members_come_and_go(
        self,
        kafka: EmbeddedKafka,
        member_on: MakeConsumer,
        topic: str,
        every: set[TopicPartition],
        strategy: str,
    ) -> None:
        written = {number: fill(kafka, topic, 50, number) for number in range(PARTITIONS)}
        members = [member_on(partition_assignment_strategy=strategy)]
        records: list[ConsumerRecord] = []
        poll_until(members, lambda: shared(members, every), records)
        members.append(member_on(partition_assignment_strategy=strategy))
        poll_until(members, lambda: shared(members, every), records)
        members.append(member_on(partition_assignment_strategy=strategy))
        poll_until(members, lambda: shared(members, every), records)
        members[0].commit()  # what its last poll returned: a close does not commit that
        members.pop(0).close()
        poll_until(members, lambda: shared(members, every), records)
        for number in range(PARTITIONS):
            written[number] += fill(kafka, topic, 50, number)
        poll_until(members, lambda: len({(r.partition, r.offset) for r in records}) == 400, records)
        assert len(records) == 400, "commits before each revocation leave nothing to read twice"
        by_partition = values_by_partition(records)
        assert {number: sorted(values) for number, values in by_partition.items()} == {
            number: sorted(values) for number, values in written.items()
        }

    def test_more_members_than_partitions(
        self, member_on: MakeConsumer, every: set[TopicPartition]
    ) -> None:
        members = [member_on() for _ in range(PARTITIONS + 2)]
        poll_until(members, lambda: shared(members, every))
        assert sorted(len(member.assignment()) for member in members) == [0, 0, 1, 1, 1, 1]

    def test_a_pattern(
        self,
        kafka: EmbeddedKafka,
        consumer_on: MakeConsumer,
        topic: str,
        every: set[TopicPartition],
    ) -> None:
        consumer = consumer_on(group_id=f"pattern-{topic}", metadata_max_age_ms=200)
        consumer.subscribe(pattern=f"{topic}(-more)?")
        poll_until([consumer], lambda: consumer.assignment() == every)
        kafka.create_topic(f"{topic}-more", 1)
        kafka.create_topic(f"{topic}-less", 1)
        more = every | {TopicPartition(f"{topic}-more", 0)}
        poll_until([consumer], lambda: consumer.assignment() == more)
        assert consumer.subscription() == set()

    def test_partitions_that_are_added(
        self, kafka: EmbeddedKafka, member_on: MakeConsumer, topic: str
    ) -> None:
        member = member_on(metadata_max_age_ms=200)
        poll_until([member], lambda: len(member.assignment()) == PARTITIONS)
        kafka.on_cluster(lambda cluster: cluster.add_partitions(topic, PARTITIONS + 2))
        poll_until([member], lambda: len(member.assignment()) == PARTITIONS + 2)

    def test_another_subscription_replaces_the_first(
        self, kafka: EmbeddedKafka, member_on: MakeConsumer, every: set[TopicPartition]
    ) -> None:
        member = member_on()
        poll_until([member], lambda: member.assignment() == every)
        other = new_topic(kafka, "other", 1)
        member.subscribe([other])
        assert member.subscription() == {other}
        poll_until([member], lambda: member.assignment() == set(partitions_of(other, 1)))

    def test_what_does_not_go_together(self, member_on: MakeConsumer, topic: str) -> None:
        member = member_on()
        with pytest.raises(UsageError, match="unsubscribe"):
            member.assign(partitions_of(topic, 1))
        for wrong in ({}, {"topics": ["t"], "pattern": "t"}, {"pattern": "("}):
            with pytest.raises(UsageError):
                member.subscribe(**wrong)

    def test_a_rebalance_that_was_asked_for(
        self, member_on: MakeConsumer, every: set[TopicPartition]
    ) -> None:
        member = member_on()
        poll_until([member], lambda: member.assignment() == every)
        first = member.group_metadata()
        member.enforce_rebalance("a test")
        poll_until([member], lambda: member.group_metadata().generation > first.generation)
        assert member.group_metadata().member_id == first.member_id


class TestListening:
    def test_an_eager_member_gives_everything_up(
        self, member_on: MakeConsumer, every: set[TopicPartition]
    ) -> None:
        diary = Diary()
        members = [member_on(diary, partition_assignment_strategy="range")]
        poll_until(members, lambda: shared(members, every))
        members.append(member_on(partition_assignment_strategy="range"))
        poll_until(members, lambda: shared(members, every))
        kept = members[0].assignment()
        members[0].close()
        assert diary.heard == [
            ("assigned", every),
            ("revoked", every),
            ("assigned", kept),
            ("revoked", kept),
        ]
        assert diary.threads == {threading.current_thread()}

    def test_a_cooperative_member_gives_up_what_moves(
        self, member_on: MakeConsumer, every: set[TopicPartition]
    ) -> None:
        diary = Diary()
        strategy = "cooperative-sticky"
        members = [member_on(diary, partition_assignment_strategy=strategy)]
        poll_until(members, lambda: shared(members, every))
        members.append(member_on(partition_assignment_strategy=strategy))
        poll_until(members, lambda: shared(members, every))
        moved = every - members[0].assignment()
        assert len(moved) == 2
        told = [(what, partitions) for what, partitions in diary.heard if partitions]
        assert told == [("assigned", every), ("revoked", moved)]
        kinds = [event.kind for event in members[0].metrics()["rebalances"]]
        assert kinds[:3] == ["assigned", "revoked", "assigned"]

    def test_what_a_listener_seeks_is_where_reading_begins(
        self, kafka: EmbeddedKafka, member_on: MakeConsumer, topic: str
    ) -> None:
        class Seeker(RebalanceListener):
            def on_partitions_assigned(
                self, consumer: Consumer, partitions: Collection[TopicPartition]
            ) -> None:
                for partition in partitions:
                    consumer.seek(partition, 40)

        for number in range(PARTITIONS):
            fill(kafka, topic, 50, number)
        records = read(member_on(Seeker()), 10 * PARTITIONS)
        assert {record.offset for record in records} == set(range(40, 50))

    def test_a_commit_in_a_listener_is_in_time(
        self, kafka: EmbeddedKafka, member_on: MakeConsumer, topic: str, every: set[TopicPartition]
    ) -> None:
        class Committer(RebalanceListener):
            def on_partitions_revoked(
                self, consumer: Consumer, partitions: Collection[TopicPartition]
            ) -> None:
                consumer.commit(dict.fromkeys(partitions, 7))

        members = [member_on(Committer(), enable_auto_commit=False)]
        poll_until(members, lambda: shared(members, every))
        members.append(member_on(enable_auto_commit=False))
        poll_until(members, lambda: shared(members, every))
        assert committed(kafka, f"group-of-{topic}") == dict.fromkeys(every, 7)

    def test_what_a_listener_raises_the_poll_raises(
        self, member_on: MakeConsumer, every: set[TopicPartition]
    ) -> None:
        diary = Diary()
        diary.fail = KafkaError("of the listener's own")
        member = member_on(diary)
        with pytest.raises(KafkaError, match="of the listener's own"):
            poll_until([member], lambda: False)
        diary.fail = None
        assert member.assignment() == every
        assert not member.poll(0.1)

    def test_a_listener_that_closes_ends_the_poll(
        self, consumer_on: MakeConsumer, topic: str
    ) -> None:
        class Closes(RebalanceListener):
            def on_partitions_assigned(self, consumer: Consumer, partitions: object) -> None:
                consumer.close()

        member = consumer_on(group_id=f"group-of-{topic}")
        member.subscribe([topic], listener=Closes())
        start = time.monotonic()
        with pytest.raises(UsageError, match="closed"):
            member.poll(TIMEOUT)
        assert time.monotonic() - start < TIMEOUT / 2

    def test_unsubscribe_gives_everything_up_and_a_return_is_possible(
        self, member_on: MakeConsumer, topic: str, every: set[TopicPartition]
    ) -> None:
        diary = Diary()
        member = member_on(diary)
        poll_until([member], lambda: member.assignment() == every)
        for _ in range(2):
            member.unsubscribe()
            assert member.assignment() == member.subscription() == set()
            assert diary.heard[-1] == ("revoked", every)
            assert member.group_metadata().generation == -1
            with pytest.raises(UsageError, match="nothing to read"):
                member.poll(0.2)
            member.subscribe([topic], listener=diary)
            poll_until([member], lambda: member.assignment() == every)
        member.unsubscribe()
        member.assign(every)
        assert not member.poll(0.1)


class TestLeaving:
    @pytest.mark.parametrize("timeout", [None, 0])
    def test_a_member_that_closes_makes_room_at_once(
        self, member_on: MakeConsumer, every: set[TopicPartition], timeout: int | None
    ) -> None:
        members = [member_on(session_timeout_ms=int(10_000 * TIMEOUT)) for _ in range(2)]
        poll_until(members, lambda: shared(members, every))
        members.pop().close(timeout)
        start = time.monotonic()
        poll_until(members, lambda: shared(members, every))
        assert time.monotonic() - start < TIMEOUT / 2, "not after its session has timed out"

    def test_a_static_member_returns_to_what_it_had(
        self, member_on: MakeConsumer, every: set[TopicPartition]
    ) -> None:
        diary = Diary()
        members = [
            member_on(diary, group_instance_id="a"),
            member_on(group_instance_id="b"),
        ]
        poll_until(members, lambda: shared(members, every))
        had = members[1].assignment()
        members[1].close()
        before = len(diary.heard)
        members[1] = member_on(group_instance_id="b")
        poll_until(members, lambda: members[1].assignment() == had)
        poll_until(members, lambda: shared(members, every))
        assert diary.heard[before:] == []

    def test_a_static_member_that_is_replaced_is_told(
        self, member_on: MakeConsumer, every: set[TopicPartition]
    ) -> None:
        diary = Diary()
        first = member_on(diary, group_instance_id="a")
        poll_until([first], lambda: first.assignment() == every)
        second = member_on(group_instance_id="a")
        poll_until([second], lambda: second.assignment() == every)
        with pytest.raises(FencedInstanceId):
            poll_until([first], lambda: False)
        assert diary.heard[-1] == ("lost", every)
        assert first.assignment() == set()

    def test_a_commit_that_a_wakeup_ends_comes_before_the_goodbye(
        self, kafka: EmbeddedKafka, member_on: MakeConsumer, topic: str
    ) -> None:
        """A worker that is told to end while it is at work commits its batch all the same."""
        fill(kafka, topic, 10)
        for slow in (False, True):
            group = f"group-of-{topic}-{slow}"
            member = member_on(group_id=group, enable_auto_commit=False)
            read(member, 10)
            if slow:
                kafka.faults.delay(0.3, api=OFFSET_COMMIT, count=1)
            member.wakeup()
            with pytest.raises(WakeupError):
                member.commit()
            member.close()
            assert committed(kafka, group)[topic, 0] == 10

    def test_a_wakeup_does_not_keep_close_from_committing(
        self, kafka: EmbeddedKafka, member_on: MakeConsumer, topic: str
    ) -> None:
        fill(kafka, topic, 10)
        member = member_on()
        read(member, 10)
        member.poll(0)  # covers them
        kafka.faults.delay(0.2, api=OFFSET_COMMIT, count=1)
        member.wakeup()
        member.close()
        assert committed(kafka, f"group-of-{topic}")[topic, 0] == 10

    def test_a_wakeup_does_not_keep_close_from_finishing_commits(
        self,
        kafka: EmbeddedKafka,
        member_on: MakeConsumer,
        topic: str,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        fill(kafka, topic, 10)
        member = member_on(enable_auto_commit=False)
        read(member, 10)
        kafka.faults.delay(0.2, api=OFFSET_COMMIT, count=1)
        member.commit(sync=False)
        member.wakeup()
        member.close()
        assert committed(kafka, f"group-of-{topic}")[topic, 0] == 10
        assert "read again" not in caplog.text

    def test_a_wakeup_is_not_lost_when_a_member_leaves(
        self, member_on: MakeConsumer, topic: str, every: set[TopicPartition]
    ) -> None:
        member = member_on()
        poll_until([member], lambda: member.assignment() == every)
        member.wakeup()
        member.unsubscribe()
        member.subscribe([topic])
        with pytest.raises(WakeupError):
            member.poll(0)

    def test_close_ends_by_its_deadline_when_nobody_answers(
        self, kafka: EmbeddedKafka, member_on: MakeConsumer, topic: str, every: set[TopicPartition]
    ) -> None:
        member = member_on()
        poll_until([member], lambda: member.assignment() == every)
        fill(kafka, topic, 10)
        read(member, 10)
        for node in (1, 2, 3):
            kafka.pause(node)
        start = time.monotonic()
        member.close(0.5)
        assert time.monotonic() - start < TIMEOUT / 6

    def test_a_member_that_does_not_poll_loses_everything_and_comes_back(
        self,
        kafka: EmbeddedKafka,
        member_on: MakeConsumer,
        topic: str,
        every: set[TopicPartition],
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        diary = Diary()
        member = member_on(diary, max_poll_interval_ms=400, enable_auto_commit=False)
        poll_until([member], lambda: member.assignment() == every)
        fill(kafka, topic, 10)
        read(member, 10)
        caplog.set_level(logging.WARNING, "kafka_fast.group")
        eventually(lambda: "max.poll.interval.ms (400)" in caplog.text, "the warning")
        with pytest.raises(CommitFailedError, match=r"max\.poll\.interval\.ms"):
            member.commit()
        assert committed(kafka, f"group-of-{topic}") == {}
        records: list[ConsumerRecord] = []
        poll_until([member], lambda: len(diary.heard) == 3, records)
        assert [what for what, _ in diary.heard] == ["assigned", "lost", "assigned"]
        records += read(member, 10 - len(records))
        assert {record.offset for record in records} == set(range(10))
        member.commit()


class TestCoordinators:
    def test_one_that_moves(
        self, kafka: EmbeddedKafka, member_on: MakeConsumer, topic: str, every: set[TopicPartition]
    ) -> None:
        group = f"group-of-{topic}"
        diary = Diary()
        member = member_on(diary)
        poll_until([member], lambda: member.assignment() == every)
        node = kafka.on_cluster(lambda cluster: cluster.coordinator(group))
        kafka.on_cluster(lambda cluster: cluster.move_coordinator(group, node % 3 + 1))
        fill(kafka, topic, 10)
        read(member, 10)
        member.commit()
        assert committed(kafka, group)[topic, 0] == 10
        fill(kafka, topic, 10)
        read(member, 10)

    def test_one_that_dies(
        self, kafka: EmbeddedKafka, member_on: MakeConsumer, topic: str, every: set[TopicPartition]
    ) -> None:
        group = f"group-of-{topic}"
        members = [member_on(), member_on()]
        poll_until(members, lambda: shared(members, every))
        node = kafka.on_cluster(lambda cluster: cluster.coordinator(group))
        kafka.kill(node)
        for number in range(PARTITIONS):
            fill(kafka, topic, 10, number)
        records: list[ConsumerRecord] = []
        poll_until(members, lambda: len({(r.partition, r.offset) for r in records}) == 40, records)
        poll_until(members, lambda: shared(members, every))
        for member in members:
            member.commit()
        kafka.restart(node)
        members.pop().close()
        poll_until(members, lambda: shared(members, every))

    def test_answers_that_are_lost(
        self, kafka: EmbeddedKafka, member_on: MakeConsumer, every: set[TopicPartition]
    ) -> None:
        for api in (FIND_COORDINATOR, JOIN_GROUP, HEARTBEAT):
            kafka.faults.drop(api=api, count=1, close=True)
        members = [member_on(), member_on()]
        poll_until(members, lambda: shared(members, every))
        kafka.faults.drop(api=LEAVE_GROUP, count=1, close=True)
        members[1].close()

    def test_a_group_that_is_not_ours(self, kafka: EmbeddedKafka, member_on: MakeConsumer) -> None:
        kafka.faults.error(FIND_COORDINATOR, GroupAuthorizationFailed)
        member = member_on()
        with pytest.raises(GroupAuthorizationFailed):
            poll_until([member], lambda: False)

    def test_a_session_timeout_that_the_brokers_do_not_take(
        self, kafka: EmbeddedKafka, member_on: MakeConsumer
    ) -> None:
        kafka.faults.error(JOIN_GROUP, InvalidSessionTimeout)
        member = member_on(session_timeout_ms=6_000)
        with pytest.raises(InvalidSessionTimeout) as caught:
            poll_until([member], lambda: False)
        for said in ("session.timeout.ms (6000)", "group.min.session", "group.max.session"):
            assert said in str(caught.value)


@pytest.fixture(autouse=True)
def no_thread_fails(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    yield
    assert "control thread has failed" not in caplog.text
