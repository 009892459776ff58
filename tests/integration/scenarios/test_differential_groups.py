"""Random requests of consumers, the same to real Kafka and to the embedded broker.

The assignor is `range`, which depends on nothing but the members and the topics, and both brokers
assign without an interval: so every answer must agree, whatever the members do.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from kafka_fast.protocol.apis.groups.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatRequestTopicPartitions,
)
from kafka_fast.protocol.apis.records.fetch import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ForgottenTopic,
)
from kafka_fast.testing._kafka.real_kafka import RealKafka
from kafka_fast.testing.broker.groups.settings import GroupSettings
from kafka_fast.testing.broker.serving.server import EmbeddedKafka
from tests.conftest import started
from tests.integration.scenarios.groups import commit, fetch_offsets, ready
from tests.integration.scenarios.steps import new_topic, tell_coordinator, unique_name
from tests.integration.scenarios.wire import WireClient, batch

SEEDS = range(6)
STEPS = 150
PARTITIONS = 3
PREFIXES = ("a", "b", "c")  # topics of a side go by these letters

Owned = frozenset[tuple[str, int]]  # letter and partition


@pytest.fixture(scope="module")
def eager_kafka() -> Iterator[RealKafka]:
    """A real broker that makes a new assignment whenever it can."""
    with started(1, None, {"group.consumer.assignment.interval.ms": 0}) as kafka:
        yield kafka


@pytest.fixture(scope="module")
def addresses(eager_kafka: RealKafka) -> Iterator[list[str]]:
    """Real Kafka and ours."""
    groups = GroupSettings(consumer_assignment_interval_ms=0)
    with EmbeddedKafka(auto_create=False, groups=groups) as kafka:
        yield [eager_kafka.bootstrap, kafka.bootstrap]


class Side:
    """One broker and what the test has there."""

    def __init__(self, address: str, group: str) -> None:
        self.client = WireClient(address)
        self.group = group
        ready(self.client, group)
        names = sorted(new_topic(self.client) for _ in PREFIXES)
        tell_coordinator(self.client)
        self.names = dict(zip(PREFIXES, names, strict=True))
        described = {letter: self.client.metadata(name) for letter, name in self.names.items()}
        self.ids = {letter: one.topics[0].topic_id for letter, one in described.items()}
        self.session_id = 0

    # ---- groups ----

    def beat(self, member: Member, **changes: object) -> tuple[int, int, Owned | None]:
        """Send a heartbeat; return error code, member epoch and assignment."""
        values: dict[str, object] = {
            "group_id": self.group,
            "member_id": member.member_id,
            "instance_id": member.instance_id,
            "member_epoch": member.epoch,
            **changes,
        }
        owned = values.get("topic_partitions")
        if isinstance(owned, frozenset):
            values["topic_partitions"] = [
                ConsumerGroupHeartbeatRequestTopicPartitions(
                    topic_id=self.ids[letter], partitions=[index]
                )
                for letter, index in sorted(owned)
            ]
        letters = values.get("subscribed_topic_names")
        if isinstance(letters, list):
            values["subscribed_topic_names"] = [self.names[letter] for letter in letters]
        answer = self.client.ask(ConsumerGroupHeartbeatRequest(**values), 1)
        assigned = None
        if answer.assignment is not None:
            letter_of = {topic_id: letter for letter, topic_id in self.ids.items()}
            assigned = frozenset(
                (letter_of[topic.topic_id], index)
                for topic in answer.assignment.topic_partitions
                for index in topic.partitions
            )
        return answer.error_code, answer.member_epoch, assigned

    def commit(self, member: Member, letter: str, partition: int, epoch: int, offset: int) -> int:
        return commit(
            self.client,
            self.group,
            self.names[letter],
            offset,
            partition=partition,
            member_id=member.member_id,
            generation=epoch,
        )

    def offsets(self, member: Member, epoch: int) -> tuple[int, dict[tuple[str, int], int]]:
        code, offsets = fetch_offsets(
            self.client, self.group, None, member_id=member.member_id, member_epoch=epoch
        )
        letter_of = {name: letter for letter, name in self.names.items()}
        return code, {(letter_of[name], index): one[0] for (name, index), one in offsets.items()}

    # ---- fetch sessions ----

    def fetch(
        self, epoch: int, asked: dict[int, int], forgotten: list[int], version: int
    ) -> tuple[object, ...]:
        """Fetch from the first topic; return what must agree."""
        name, topic_id = self.names["a"], self.ids["a"]
        partitions = [
            FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=1 << 20)
            for index, offset in asked.items()
        ]
        request = FetchRequest(
            max_bytes=1 << 20,
            min_bytes=1,
            session_id=self.session_id,
            session_epoch=epoch,
            topics=[FetchTopic(topic=name, topic_id=topic_id, partitions=partitions)]
            if partitions
            else [],
            forgotten_topics_data=[
                ForgottenTopic(topic=name, topic_id=topic_id, partitions=forgotten)
            ]
            if forgotten
            else [],
        )
        answer = self.client.ask(request, version)
        if epoch == 0:
            self.session_id = answer.session_id
        told = [
            (one.partition_index, one.error_code, one.high_watermark, len(one.records or b""))
            for topic in answer.responses
            for one in topic.partitions
        ]
        return answer.error_code, answer.session_id != 0, told


@dataclass
class Member:
    """A member as the test drives it; both brokers must agree on what it is told."""

    member_id: str
    instance_id: str | None = None
    epoch: int = 0
    owned: Owned = frozenset()
    shall: Owned = frozenset()  # the last assignment, which it need not follow at once


@pytest.fixture
def sides(addresses: list[str]) -> Iterator[list[Side]]:
    """A group and three topics on each broker; topic ids are in the order of the letters."""
    group = unique_name()
    made = [Side(address, group) for address in addresses]
    yield made
    for side in made:
        side.client.close()


KINDS = {
    "beat": 30,  # as it should be
    "slow": 8,  # without having done what it was told
    "join": 8,
    "subscribe": 4,
    "epoch": 4,  # another one than its own
    "leave": 3,
    "away": 3,  # for a while, if it is static
    "commit": 6,
    "read": 4,
}


def random_beat(source: random.Random, member: Member, kind: str) -> dict[str, object]:
    """Return what a heartbeat says besides who sends it."""
    topics = source.sample(PREFIXES, source.randint(1, 3))
    if kind == "beat":
        member.owned = member.shall
    if kind == "slow":
        return {"topic_partitions": source.choice([member.owned, None])}
    if kind == "join":
        if member.instance_id is not None and source.random() < 0.3:
            member.member_id = f"{member.instance_id}-{source.randrange(4)}"
        return {
            "member_epoch": 0,
            "rebalance_timeout_ms": 60_000,
            "subscribed_topic_names": topics,
            "server_assignor": "range",
            "topic_partitions": frozenset(),
        }
    if kind == "subscribe":
        return {"subscribed_topic_names": topics, "topic_partitions": member.owned}
    if kind == "epoch":
        wrong = member.epoch + source.choice([-1, 1, 2])
        return {"member_epoch": max(wrong, 1), "topic_partitions": member.owned}
    if kind in ("leave", "away"):
        away = kind == "away" and member.instance_id is not None
        return {"member_epoch": -2 if away else -1}
    return {"topic_partitions": member.owned}


def follow(member: Member, kind: str, told: tuple[int, int, Owned | None]) -> None:
    """Let a member do as it is told."""
    code, epoch, assigned = told
    if code and kind in ("epoch", "join"):
        return
    if code or kind in ("leave", "away"):
        member.epoch, member.owned, member.shall = 0, frozenset(), frozenset()
        return
    member.epoch = epoch
    if kind == "join":
        member.owned = frozenset()
    if assigned is not None:
        member.shall = assigned


@pytest.mark.parametrize("seed", SEEDS)
def test_members_that_come_and_go_and_err(sides: list[Side], seed: int) -> None:
    source = random.Random(seed)
    members = [Member(f"m{number}") for number in range(3)]
    members += [Member("one-0", "one"), Member("two-0", "two")]
    codes: set[int] = set()
    history: list[object] = []
    for step in range(STEPS):
        member = source.choice(members)
        kind = source.choices(list(KINDS), list(KINDS.values()))[0]
        if kind in ("commit", "read"):
            epoch = max(0, member.epoch + source.choice([0, 0, -1, 1]))
            letter, partition = source.choice(PREFIXES), source.randrange(PARTITIONS)
            answers: list[object] = [
                side.commit(member, letter, partition, epoch, step)
                if kind == "commit"
                else side.offsets(member, epoch)
                for side in sides
            ]
            assert answers[0] == answers[1], (kind, member, epoch, letter, partition, history[-12:])
            continue
        if member.epoch == 0 and kind != "epoch":
            kind = "join"
        changes = random_beat(source, member, kind)
        theirs, ours = (side.beat(member, **changes) for side in sides)
        history.append((step, kind, member.member_id, member.epoch, changes, theirs))
        assert theirs == ours, "\n".join(map(str, history[-20:]))
        codes.add(theirs[0])
        follow(member, kind, theirs)
    assert len(codes) >= 3


@pytest.mark.parametrize("version", [12, 16])
@pytest.mark.parametrize("seed", SEEDS)
def test_fetch_sessions(sides: list[Side], seed: int, version: int) -> None:
    source = random.Random(seed)
    epoch = 0
    seen: set[object] = set()
    for step in range(STEPS):
        if source.random() < 0.3:
            partition = source.randrange(PARTITIONS)
            ends = {
                side.client.produce(side.names["a"], batch(2), partition=partition).base_offset
                for side in sides
            }
            assert len(ends) == 1
        indexes = source.sample(range(4), source.randint(0, 4))
        asked = {index: source.choice([0, 2, 10, 99]) for index in indexes}
        forgotten = source.sample(range(4), source.choice([0, 0, 0, 1, 3]))
        used = source.choices([epoch, 0, -1, epoch + 1], [20, 2, 1, 1])[0]
        theirs, ours = (side.fetch(used, asked, forgotten, version) for side in sides)
        assert theirs == ours, (step, used, asked, forgotten)
        seen.add(theirs[0])
        if used == 0:
            epoch = 1
        elif used == epoch and theirs[0] == 0:
            epoch += 1
        if not theirs[1] and theirs[0] == 0:  # the session has ended
            epoch = 0
    assert len(seen) >= 2
