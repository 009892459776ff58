"""How far groups are, and where they go on, by the admin client on real Kafka."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import confluent_kafka
import pytest

from kafka_fast import Admin, Producer, TopicPartition, aio
from kafka_fast.admin import GroupLag, GroupState, GroupType, NewTopic, ResetPlan, ResetTo
from kafka_fast.control.in_flight_requests import InFlightRequests
from kafka_fast.errors import (
    GroupIdNotFound,
    NonEmptyGroup,
    UnknownTopicOrPartition,
    UsageError,
)
from kafka_fast.testing._kafka.real_kafka import RealKafka
from tests.integration.admin.admin_clients import admin
from tests.integration.admin.groups.group_members import joined, needs_kafka
from tests.waiting import eventually

__all__ = ["admin"]

pytestmark = pytest.mark.broker

RECORDS = 10


@pytest.fixture(scope="module")
def topic(admin: Admin, real_kafka: RealKafka) -> Iterator[str]:
    """A topic of three partitions: 0 and 1 have records of the last minutes, 0 from offset 2 on."""
    name = f"admin-lag-{uuid.uuid4().hex}"
    admin.create_topics([NewTopic(name, 3, 1)]).raise_first()
    now_ms = int(time.time() * 1000)
    with Producer(bootstrap_servers=real_kafka.bootstrap) as producer:
        for number in range(RECORDS):
            for partition in (0, 1):
                at = now_ms - 60_000 * (RECORDS - number)
                producer.send(name, b"", partition=partition, timestamp_ms=at)
    admin.delete_records({TopicPartition(name, 0): 2}).raise_first()
    yield name
    admin.delete_topics([name])


@pytest.fixture
def group() -> str:
    return f"admin-lag-{uuid.uuid4().hex}"


# ---- lag ----


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_with_members_has_readers(
    admin: Admin, topic: str, group: str, real_kafka: RealKafka, protocol: str
) -> None:
    if protocol == "consumer":
        needs_kafka(real_kafka, "4.0")
    first, second, empty = (TopicPartition(topic, number) for number in range(3))
    admin.alter_consumer_group_offsets(group, {first: 4, second: 9}).raise_first()
    with joined(real_kafka.bootstrap, group, topic, group_protocol=protocol, client_id="reader"):
        lag = admin.consumer_group_lag([group])[group]
    assert lag.type is (GroupType.CLASSIC if protocol == "classic" else GroupType.CONSUMER)
    assert [one.partition for one in lag.partitions] == [first, second, empty]
    told = lag.partitions[0]
    assert (told.log_start, told.end, told.last_stable) == (2, RECORDS, RECORDS)
    assert [one.lag for one in lag.partitions] == [6, 1, None]
    assert [one.stable_lag for one in lag.partitions] == [6, 1, None]
    assert {one.member and one.member.client_id for one in lag.partitions} == {"reader"}
    assert (lag.total_lag, lag.lag_by_topic, lag.uncommitted) == (7, {topic: 7}, (empty,))
    assert (lag.errors, lag.topic_errors, lag.members_error) == ({}, {}, None)


def test_many_groups_are_asked_together(
    admin: Admin, topic: str, group: str, real_kafka: RealKafka
) -> None:
    first, second = TopicPartition(topic, 0), TopicPartition(topic, 1)
    groups = [f"{group}-{number}" for number in range(30)]
    for number, one in enumerate(groups):
        admin.alter_consumer_group_offsets(one, {first: number, second: 0}).raise_first()
    of_all = admin.consumer_group_lag()
    assert [of_all[one].partitions[0].lag for one in groups] == [
        max(0, RECORDS - number) for number in range(30)
    ]
    assert of_all[groups[0]].state is GroupState.EMPTY
    some = admin.consumer_group_lag([groups[3], "absent"], topics=[topic, "no-such-topic"])
    assert isinstance(some["absent"].members_error, GroupIdNotFound)
    assert len(some["absent"].uncommitted) == 3
    assert isinstance(admin.consumer_group_lag(["absent"]).errors["absent"], GroupIdNotFound)
    lag = some[groups[3]]
    assert len(lag.partitions) == 3
    assert isinstance(lag.topic_errors["no-such-topic"], UnknownTopicOrPartition)

    async def same() -> int:
        async with aio.Admin(bootstrap_servers=real_kafka.bootstrap) as other:
            return (await other.consumer_group_lag([groups[0]]))[groups[0]].total_lag

    assert asyncio.run(same()) == 2 * RECORDS
    admin.delete_groups(groups).raise_first()


def test_an_open_transaction_holds_the_last_stable_offset(
    admin: Admin, topic: str, group: str, real_kafka: RealKafka
) -> None:
    last = TopicPartition(topic, 2)
    admin.alter_consumer_group_offsets(group, {last: 0}).raise_first()
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": real_kafka.bootstrap, "transactional.id": group}
    )
    producer.init_transactions()
    producer.begin_transaction()
    producer.produce(topic, b"undecided", partition=2)
    producer.flush()
    (told,) = (one for one in _lag_of(admin, group).partitions if one.partition == last)
    assert (told.end, told.last_stable, told.lag, told.stable_lag) == (1, 0, 1, 0)
    producer.abort_transaction()
    eventually(lambda: _lag_of(admin, group).partitions[2].last_stable == 2)
    admin.delete_records({last: -1}).raise_first()
    told = _lag_of(admin, group).partitions[2]
    assert (told.log_start, told.end, told.lag) == (2, 2, 2)


def _lag_of(admin: Admin, group: str) -> GroupLag:
    return admin.consumer_group_lag([group])[group]


def test_many_groups_take_few_round_trips(
    topic: str, group: str, real_kafka: RealKafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs_kafka(real_kafka, "3.0")  # older brokers are asked for one coordinator at a time
    trips = RoundTrips()
    monkeypatch.setattr(InFlightRequests, "send_request", trips.send_request)
    offsets = {TopicPartition(topic, number): 0 for number in range(3)}
    groups = [f"{group}-{number}" for number in range(30)]
    with Admin(bootstrap_servers=real_kafka.bootstrap) as admin:
        for one in groups:
            admin.alter_consumer_group_offsets(one, offsets).raise_first()
    with Admin(bootstrap_servers=real_kafka.bootstrap) as admin:
        trips.count = 0
        assert len(admin.consumer_group_lag(groups).succeeded) == 30
        assert trips.count <= 8  # and each new connection has one of its own
        trips.count = 0
        admin.consumer_group_lag(groups).raise_first()
        assert trips.count <= 6
        admin.delete_groups(groups).raise_first()


class RoundTrips:
    """Counts the requests that were sent one after the other: each behind an answer."""

    def __init__(self) -> None:
        self.count = 0
        """The longest chain of requests with their answers."""
        self._send = InFlightRequests.send_request

    @property
    def send_request(self) -> Callable[..., int]:
        """What stands in for the method of that name."""

        def send(requests: InFlightRequests, *args: Any, **options: Any) -> int:
            link, body, response_class, handle, *rest = args
            depth = self.count + 1

            def handle_later(answer: Any, now: float) -> None:
                self.count = max(self.count, depth)
                handle(answer, now)

            return self._send(requests, link, body, response_class, handle_later, *rest, **options)

        return send


def test_a_topic_that_is_gone_keeps_nobody_waiting(admin: Admin, topic: str, group: str) -> None:
    gone = f"{topic}-gone"
    here, there = TopicPartition(topic, 0), TopicPartition(gone, 0)
    absent = admin.consumer_group_lag([group], topics=[gone])[group]
    assert isinstance(absent.topic_errors[gone], UnknownTopicOrPartition)
    admin.create_topics([NewTopic(gone, 1, 1)]).raise_first()
    admin.alter_consumer_group_offsets(group, {here: 3, there: 0}).raise_first()
    lag = admin.consumer_group_lag([group])[group]
    assert lag.errors == {}
    lag = admin.consumer_group_lag([group], topics=[topic, f"{gone}-too"])[group]
    assert isinstance(lag.topic_errors[f"{gone}-too"], UnknownTopicOrPartition)
    assert [one.committed is None for one in lag.partitions] == [False, True, True]
    admin.delete_topics([gone])


# ---- resets ----


@pytest.fixture
def places(admin: Admin, topic: str, group: str) -> dict[TopicPartition, int]:
    """Where the group is."""
    offsets = {TopicPartition(topic, 0): 4, TopicPartition(topic, 1): 9}
    admin.alter_consumer_group_offsets(group, offsets).raise_first()
    return offsets


@pytest.mark.parametrize(
    ("to", "first", "second", "clamped"),
    [
        (ResetTo.earliest(), 2, 0, [False, False]),
        (ResetTo.latest(), 10, 10, [False, False]),
        (ResetTo.current(), 4, 9, [False, False]),
        (ResetTo.to_offset(1), 2, 1, [True, False]),
        (ResetTo.shift_by(3), 7, 10, [False, True]),
        (ResetTo.shift_by(-3), 2, 6, [True, False]),
        (ResetTo.by_duration(timedelta(minutes=4, seconds=30)), 6, 6, [False, False]),
        (ResetTo.by_duration(timedelta(0)), 10, 10, [False, False]),
    ],
)
def test_a_group_goes_on_elsewhere(
    admin: Admin,
    group: str,
    places: dict[TopicPartition, int],
    to: ResetTo,
    first: int,
    second: int,
    clamped: list[bool],
) -> None:
    here, there = places
    plan = admin.reset_consumer_group_offsets(group, to, dry_run=True)
    assert plan.targets == {here: first, there: second}
    assert [one.clamped for one in plan.resets] == clamped
    assert [one.current for one in plan.resets] == [4, 9]
    assert not plan.is_applied
    told = admin.list_consumer_group_offsets({group: None})[group]
    assert {one: at and at.offset for one, at in told.items()} == places
    done = admin.reset_consumer_group_offsets(group, ResetPlan.from_json(plan.to_json()))
    assert (done.targets, done.is_applied, done.errors) == (plan.targets, True, {})
    told = admin.list_consumer_group_offsets({group: None})[group]
    assert {one: at and at.offset for one, at in told.items()} == plan.targets


def test_a_new_group_begins_where_it_is_told(admin: Admin, topic: str, group: str) -> None:
    done = admin.reset_consumer_group_offsets(group, ResetTo.current(), topics=[topic])
    assert [one.target for one in done.resets[:2]] == [10, 10]
    last = TopicPartition(topic, 2)
    done = admin.reset_consumer_group_offsets(group, ResetTo.earliest(), partitions=[last])
    assert list(done.targets) == [last]
    when = int(time.time() * 1000) - 270_000
    done = admin.reset_consumer_group_offsets(group, ResetTo.to_time(when))
    assert [one.target for one in done.resets[:2]] == [6, 6]


def test_nothing_is_committed_unless_all_is_planned(
    admin: Admin, topic: str, group: str, places: dict[TopicPartition, int]
) -> None:
    beyond = TopicPartition(topic, 7)
    plan = admin.reset_consumer_group_offsets(
        group, ResetTo.earliest(), partitions=[*places, beyond], dry_run=True
    )
    assert list(plan.targets) == list(places)
    assert isinstance(plan.errors[beyond], UnknownTopicOrPartition)
    with pytest.raises(UnknownTopicOrPartition, match="there is no partition"):
        admin.reset_consumer_group_offsets(group, plan)
    with pytest.raises(UnknownTopicOrPartition):
        admin.reset_consumer_group_offsets(group, ResetTo.latest(), topics=["no-such-topic"])
    with pytest.raises(UsageError, match="nothing to shift"):
        admin.reset_consumer_group_offsets(group, ResetTo.shift_by(1), topics=[topic])
    with pytest.raises(TypeError, match="a ResetTo or a ResetPlan, not 'earliest'"):
        admin.reset_consumer_group_offsets(group, "earliest")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="the names of topics are a list or a set"):
        admin.reset_consumer_group_offsets(group, ResetTo.earliest(), topics=topic)
    with pytest.raises(UsageError, match="the plan is for group"):
        admin.reset_consumer_group_offsets("another", plan)
    told = admin.list_consumer_group_offsets({group: None})[group]
    assert {one: at and at.offset for one, at in told.items()} == places


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_members_are_not_reset_behind_their_backs(
    admin: Admin,
    topic: str,
    group: str,
    places: dict[TopicPartition, int],
    real_kafka: RealKafka,
    protocol: str,
) -> None:
    if protocol == "consumer":
        needs_kafka(real_kafka, "4.0")
    with joined(real_kafka.bootstrap, group, topic, group_protocol=protocol, client_id="reader"):
        with pytest.raises(NonEmptyGroup, match=r"reader \(.+\) at 127.0.0.1; stop them first"):
            admin.reset_consumer_group_offsets(group, ResetTo.earliest())
        plan = admin.reset_consumer_group_offsets(group, ResetTo.earliest(), dry_run=True)
    assert admin.reset_consumer_group_offsets(group, plan).is_applied
    told = admin.list_consumer_group_offsets({group: None})[group]
    assert [at and at.offset for at in told.values()] == [2, 0]
