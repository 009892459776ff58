"""KIP-848 groups: epochs, assignments, reconciliation, and who is fenced."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator

import pytest

from kafka_fast import errors
from kafka_fast.protocol.apis.groups.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatRequestTopicPartitions,
    ConsumerGroupHeartbeatResponse,
)
from kafka_fast.protocol.apis.topics.create_topics import CreatableTopic
from tests.integration.scenarios.groups import Member, commit, fetch_offsets, ready, stable, until
from tests.integration.scenarios.steps import create, new_topic, tell_coordinator, unique_name
from tests.integration.scenarios.wire import WireClient, connected
from tests.waiting import eventually

VERSION = 1
FIRST = 2  # epoch of a group's first member
UNKNOWN = errors.UnknownMemberId.code
FENCED_EPOCH = errors.FencedMemberEpoch.code
FENCED_INSTANCE = errors.FencedInstanceId.code
UNRELEASED = errors.UnreleasedInstanceId.code
INVALID = errors.InvalidRequest.code
NOT_FOUND = errors.GroupIdNotFound.code
STALE = errors.StaleMemberEpoch.code

Owned = set[tuple[bytes, int]]
NewConsumer = Callable[..., "Consumer"]


class Consumer:
    """One member, as a client keeps it."""

    def __init__(
        self,
        client: WireClient,
        group: str,
        topics: list[str] | None = None,
        *,
        regex: str | None = None,
        instance_id: str | None = None,
        assignor: str | None = None,
        rebalance_timeout_ms: int = 30_000,
    ) -> None:
        self.client = client
        self.group = group
        self.topics = topics
        self.regex = regex
        self.instance_id = instance_id
        self.assignor = assignor
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.member_id = str(uuid.uuid4())
        self.epoch = 0
        self.owned: Owned = set()

    def request(self, **changes: object) -> ConsumerGroupHeartbeatRequest:
        """Return a heartbeat; the first one says everything, later ones what is owned."""
        values: dict[str, object] = {
            "group_id": self.group,
            "member_id": self.member_id,
            "member_epoch": self.epoch,
            "instance_id": self.instance_id,
            "topic_partitions": _topic_partitions(self.owned),
        }
        if self.epoch == 0:
            values.update(
                rebalance_timeout_ms=self.rebalance_timeout_ms,
                subscribed_topic_names=self.topics,
                subscribed_topic_regex=self.regex,
                server_assignor=self.assignor,
            )
        values.update(changes)
        return ConsumerGroupHeartbeatRequest(**values)

    def ask(self, **changes: object) -> ConsumerGroupHeartbeatResponse:
        """Send a heartbeat and change nothing here."""
        answer: ConsumerGroupHeartbeatResponse = self.client.ask(self.request(**changes), VERSION)
        return answer

    def code(self, **changes: object) -> int:
        return self.ask(**changes).error_code

    def beat(self, **changes: object) -> ConsumerGroupHeartbeatResponse:
        """Send a heartbeat that must be taken, and do as the answer says."""
        answer = self.ask(**changes)
        assert answer.error_code == 0, answer
        self.member_id = answer.member_id or ""
        self.epoch = answer.member_epoch
        if answer.assignment is not None:
            self.owned = partitions_of(answer)
        return answer

    def leave(self, epoch: int = -1) -> int:
        return self.code(member_epoch=epoch)

    def commit(self, topic: str, offset: int, *, epoch: int | None = None, **options: int) -> int:
        generation = self.epoch if epoch is None else epoch
        return commit(
            self.client,
            self.group,
            topic,
            offset,
            member_id=self.member_id,
            generation=generation,
            **options,
        )


def partitions_of(answer: ConsumerGroupHeartbeatResponse) -> Owned:
    """Return the assignment that a member is told."""
    assert answer.assignment is not None
    return {
        (topic.topic_id, index)
        for topic in answer.assignment.topic_partitions
        for index in topic.partitions
    }


def _topic_partitions(owned: Owned) -> list[ConsumerGroupHeartbeatRequestTopicPartitions]:
    return [
        ConsumerGroupHeartbeatRequestTopicPartitions(topic_id=topic_id, partitions=[index])
        for topic_id, index in sorted(owned)
    ]


def settle(*members: Consumer, count: int) -> None:
    """Let members beat until they own `count` partitions; nothing is ever owned twice."""

    def step() -> list[int]:
        for member in members:
            member.beat()
            everything = [one for other in members for one in other.owned]
            assert len(everything) == len(set(everything))
        return [len(member.owned) for member in members]

    sizes: list[int] = []

    def done(counts: list[int]) -> bool:
        sizes[:] = counts
        same_epoch = len({member.epoch for member in members}) == 1
        return same_epoch and sum(counts) == count and max(counts) - min(counts) <= 1

    until(step, done)


@pytest.fixture
def group(client: WireClient) -> str:
    """A group id that the broker coordinates."""
    name = unique_name()
    ready(client, name)
    return name


@pytest.fixture
def topic(client: WireClient) -> str:
    """A topic that the group's coordinator knows of."""
    name = new_topic(client)
    tell_coordinator(client)
    return name


@pytest.fixture
def other(address: str) -> Iterator[WireClient]:
    """A second connection."""
    with connected(address) as made:
        yield made


def test_a_member_alone_gets_everything(client: WireClient, group: str, topic: str) -> None:
    member = Consumer(client, group, [topic])
    answer = member.beat()
    assert (answer.member_id, answer.member_epoch) == (member.member_id, FIRST)
    assert answer.heartbeat_interval_ms == 5000
    topic_id = client.metadata(topic).topics[0].topic_id
    assert member.owned == {(topic_id, index) for index in range(3)}
    for _ in range(2):
        again = member.beat()
        assert (again.member_epoch, again.assignment) == (FIRST, None)
    full = member.ask(rebalance_timeout_ms=30_000, subscribed_topic_names=[topic])
    assert full.assignment is not None
    assert member.beat(topic_partitions=None).assignment is None


def test_version_0_makes_the_member_id(client: WireClient, group: str, topic: str) -> None:
    member = Consumer(client, group, [topic])
    answer = client.ask(member.request(member_id=""), 0)
    assert answer.error_code == 0
    assert answer.member_id not in ("", None)
    assert answer.member_epoch == FIRST


def test_joining_again_changes_nothing(client: WireClient, group: str, topic: str) -> None:
    member = Consumer(client, group, [topic])
    member.beat()
    answer = member.ask(
        member_epoch=0,
        rebalance_timeout_ms=30_000,
        subscribed_topic_names=[topic],
        topic_partitions=[],
    )
    assert (answer.error_code, answer.member_epoch) == (0, FIRST)
    assert answer.assignment is not None


def test_members_share_and_reconcile(
    client: WireClient, other: WireClient, group: str, topic: str
) -> None:
    first, second = Consumer(client, group, [topic]), Consumer(other, group, [topic])
    first.beat()
    assert second.beat().assignment is not None
    assert second.owned == set()
    settle(first, second, count=3)
    assert first.epoch == FIRST + 1
    assert second.leave() == 0
    settle(first, count=3)
    assert first.epoch == FIRST + 2
    assert second.code() == UNKNOWN


def test_partitions_are_free_only_when_they_were_given_up(
    client: WireClient, other: WireClient, group: str, topic: str
) -> None:
    first, second = Consumer(client, group, [topic]), Consumer(other, group, [topic])
    first.beat()
    second.beat()
    old = _topic_partitions(first.owned)
    told = until(
        lambda: first.ask(topic_partitions=old), lambda answer: answer.assignment is not None
    )
    assert told.member_epoch == FIRST
    for _ in range(2):
        second.beat()
        assert (second.epoch, second.owned) == (FIRST + 1, set())
        again = first.ask(topic_partitions=old)
        assert (again.member_epoch, again.assignment) == (FIRST, None)
    first.owned = partitions_of(told)
    settle(first, second, count=3)


def test_who_does_not_revoke_in_time_is_removed(
    client: WireClient, other: WireClient, group: str, topic: str
) -> None:
    slow = Consumer(client, group, [topic], rebalance_timeout_ms=1500)
    second = Consumer(other, group, [topic])
    slow.beat()
    second.beat()
    old = _topic_partitions(slow.owned)

    def step() -> int:
        second.beat()
        return slow.code(topic_partitions=old)

    until(step, lambda code: code == UNKNOWN)
    settle(second, count=3)


def test_epochs_that_are_not_the_members(client: WireClient, group: str, topic: str) -> None:
    member = Consumer(client, group, [topic])
    member.beat()
    assert member.code(member_epoch=FIRST + 1) == FENCED_EPOCH
    member.beat(subscribed_topic_names=[topic, "unknown"])
    until(lambda: member.beat().member_epoch, lambda epoch: epoch == FIRST + 1)
    assert member.code(member_epoch=FIRST, topic_partitions=None) == FENCED_EPOCH
    assert member.code(member_epoch=FIRST) == 0
    unknown = ConsumerGroupHeartbeatRequestTopicPartitions(topic_id=b"x" * 16, partitions=[0])
    assert member.code(member_epoch=FIRST, topic_partitions=[unknown]) == FENCED_EPOCH
    assert member.code(member_epoch=FIRST + 1) == 0


def test_who_is_not_a_member(client: WireClient, group: str, topic: str) -> None:
    stranger = Consumer(client, group, [topic])
    assert stranger.code(member_epoch=FIRST) == NOT_FOUND
    assert stranger.leave() == NOT_FOUND
    Consumer(client, group, [topic]).beat()
    assert stranger.code(member_epoch=FIRST) == UNKNOWN
    assert stranger.leave() == UNKNOWN


@pytest.mark.parametrize(
    "changes",
    [
        {"group_id": ""},
        {"group_id": " "},
        {"member_id": ""},
        {"instance_id": ""},
        {"rack_id": ""},
        {"rebalance_timeout_ms": -1},
        {"topic_partitions": None},
        {"subscribed_topic_names": None},
        {"member_epoch": -2},
        {"member_epoch": -3},
        {"topic_partitions": [ConsumerGroupHeartbeatRequestTopicPartitions(partitions=[0])]},
    ],
)
def test_requests_that_make_no_sense(
    client: WireClient, group: str, topic: str, changes: dict[str, object]
) -> None:
    answer = Consumer(client, group, [topic]).ask(**changes)
    assert answer.error_code == INVALID
    assert answer.error_message


def test_assignors(client: WireClient, other: WireClient, group: str) -> None:
    topics = sorted(new_topic(client) for _ in range(2))
    ids = {one: client.metadata(one).topics[0].topic_id for one in topics}
    assert Consumer(client, group, topics, assignor="sticky").code() == (
        errors.UnsupportedAssignor.code
    )
    first = Consumer(client, group, topics, assignor="range")
    second = Consumer(other, group, topics, assignor="range")
    first.member_id, second.member_id = "a", "b"
    first.beat()
    second.beat()

    def step() -> tuple[Owned, Owned]:
        first.beat()
        second.beat()
        return first.owned, second.owned

    expected = (
        {(ids[one], index) for one in topics for index in (0, 1)},
        {(ids[one], 2) for one in topics},
    )
    until(step, lambda answer: answer == expected)


def test_a_subscription_that_changes(client: WireClient, group: str, topic: str) -> None:
    more = new_topic(client)
    member = Consumer(client, group, [topic])
    member.beat()
    member.beat(subscribed_topic_names=[topic, more])
    settle(member, count=6)
    answer = member.ask(subscribed_topic_names=[more])
    assert answer.assignment is not None
    kept = {
        (one.topic_id, tuple(sorted(one.partitions))) for one in answer.assignment.topic_partitions
    }
    assert kept == {(client.metadata(more).topics[0].topic_id, (0, 1, 2))}


def test_topics_that_come_later(client: WireClient, group: str) -> None:
    name = unique_name()
    member = Consumer(client, group, [name])
    member.beat()
    assert (member.epoch, member.owned) == (FIRST, set())
    made = create(client, CreatableTopic(name=name, num_partitions=2, replication_factor=1))
    assert made[0].error_code == 0
    settle(member, count=2)
    assert member.epoch == FIRST + 1


# ---- regular expressions ----


def test_a_subscription_by_regex(client: WireClient, other: WireClient, group: str) -> None:
    prefix = unique_name()
    for suffix in ("a", "b", "x"):
        one = CreatableTopic(name=f"{prefix}-{suffix}", num_partitions=2, replication_factor=1)
        assert create(client, one)[0].error_code == 0
        client.wait_for_topic(one.name)
    member = Consumer(client, group, regex=f"{prefix}-[ab]")
    member.beat()
    assert (member.epoch, member.owned) == (FIRST - 1, set())
    settle(member, count=4)
    assert member.epoch == FIRST
    second = Consumer(other, group, regex=f"{prefix}-[ab]")
    second.beat()
    settle(member, second, count=4)
    assert second.leave() == 0
    member.beat(subscribed_topic_regex="", subscribed_topic_names=[f"{prefix}-x"])
    settle(member, count=2)


@pytest.mark.parametrize(
    ("regex", "taken"),
    [
        ("", True),
        ("a", True),
        ("topic-[0-9]+", True),
        ("(?:a|b)*?", True),
        ("(?P<name>a)", True),
        ("(?i)abc", True),
        (r"\Qa.b\E.*", True),
        (r"a\z", True),
        ("a{2,3}", True),
        ("a{1000}", True),
        (r"[\]]", True),
        ("[a[b]", True),
        ("{", True),
        (r"\d\w\s\.", True),
        ("(", False),
        (")", False),
        ("[", False),
        ("*", False),
        ("a**", False),
        ("a*+", False),
        ("a++", False),
        ("(?=a)", False),
        ("(?!a)", False),
        ("(?<=a)b", False),
        ("(?<!a)b", False),
        ("(?>a)", False),
        ("(?#comment)", False),
        (r"(a)\1", False),
        ("(?P<n>a)(?P=n)", False),
        (r"a\Z", False),
        ("a{1001}", False),
        (r"\N{BULLET}", False),
        (r"\u0041", False),
        ("(?x)a b", False),
        ("[z-a]", False),
        ("\\", False),
        ("[a-]", True),
    ],
)
def test_what_re2_takes(client: WireClient, group: str, regex: str, taken: bool) -> None:
    expected = 0 if taken else errors.InvalidRegularExpression.code
    member = Consumer(client, group, regex=regex)
    assert member.code() == expected
    if taken:
        member.leave()


# ---- static members ----


def test_a_static_member_comes_back(
    client: WireClient, other: WireClient, group: str, topic: str
) -> None:
    member = Consumer(client, group, [topic], instance_id="one")
    member.beat()
    assert Consumer(other, group, [topic], instance_id="one").code() == UNRELEASED
    owned = set(member.owned)
    assert member.leave(-2) == 0
    back = Consumer(other, group, [topic], instance_id="one")
    answer = back.beat()
    assert (answer.member_epoch, back.owned) == (FIRST, owned)
    assert member.code() == FENCED_INSTANCE
    assert member.leave() == FENCED_INSTANCE
    member.instance_id = "two"
    assert member.code() == UNKNOWN
    assert back.leave() == 0
    assert back.code() == UNKNOWN


def test_a_static_member_that_is_away_keeps_its_partitions(
    client: WireClient, other: WireClient, group: str, topic: str
) -> None:
    away = Consumer(client, group, [topic], instance_id="away")
    second = Consumer(other, group, [topic])
    away.beat()
    second.beat()
    settle(away, second, count=3)
    kept, owned = set(second.owned), set(away.owned)
    assert away.leave(-2) == 0
    over = time.monotonic() + 1.2  # longer than the interval between two assignments

    def unchanged() -> bool:
        second.beat()
        assert second.owned == kept
        return time.monotonic() > over

    eventually(unchanged)
    back = Consumer(client, group, [topic], instance_id="away")
    back.beat()
    assert (back.epoch, back.owned) == (second.epoch, owned)


# ---- offsets ----


def test_commits_by_member_epoch(
    client: WireClient, other: WireClient, group: str, topic: str
) -> None:
    member = Consumer(client, group, [topic])
    member.beat()
    assert member.commit(topic, 5) == 0
    assert member.commit(topic, 6, epoch=FIRST + 1) == STALE
    assert member.commit(topic, 6, epoch=0) == STALE
    assert member.commit(topic, 6, version=8) == errors.UnsupportedVersion.code
    stranger = Consumer(client, group, [topic])
    assert stranger.commit(topic, 6, epoch=FIRST) == UNKNOWN
    assert commit(client, group, topic, 6) == UNKNOWN
    second = Consumer(other, group, [topic])
    second.beat()
    settle(member, second, count=3)
    topic_id = client.metadata(topic).topics[0].topic_id
    mine = next(index for _, index in sorted(member.owned))
    theirs = next(index for _, index in sorted(second.owned))
    assert topic_id
    assert member.commit(topic, 7, epoch=FIRST, partition=mine) == 0
    assert member.commit(topic, 7, epoch=FIRST, partition=theirs) == STALE
    assert member.commit(topic, 8, partition=theirs) == 0
    assert second.commit(topic, 7, epoch=FIRST, partition=theirs) == STALE


def test_reading_offsets_by_member_epoch(client: WireClient, group: str, topic: str) -> None:
    member = Consumer(client, group, [topic])
    member.beat()
    member.commit(topic, 5)
    offsets = {(topic, 0): (5, -1, "", 0)}
    mine = member.member_id

    def fetch(member_id: str | None, epoch: int) -> int:
        code, read = fetch_offsets(
            client, group, {topic: [0]}, member_id=member_id, member_epoch=epoch
        )
        assert code or read == offsets
        return code

    assert fetch(mine, FIRST) == 0
    assert fetch(None, -1) == 0
    assert fetch(mine, 0) == fetch(mine, FIRST + 1) == STALE
    assert fetch("stranger", 1) == UNKNOWN
    assert member.leave() == 0
    assert fetch(None, -1) == 0
    assert commit(client, group, topic, 5) == 0


def test_groups_change_their_protocol_when_they_are_empty(
    client: WireClient, other: WireClient, group: str, topic: str
) -> None:
    classic = Member(other, group)
    stable(classic)
    assert classic.commit(topic, 5) == 0
    assert classic.leave() == 0
    member = Consumer(client, group, [topic])
    member.beat()
    assert len(member.owned) == 3
    committed = (0, {(topic, 0): (5, -1, "", 0)})
    assert fetch_offsets(client, group, None) == committed
    assert classic.sync().error_code == UNKNOWN
    assert member.leave() == 0
    again = Member(other, group)
    stable(again)
    assert fetch_offsets(client, group, None) == committed
    assert member.code(member_epoch=FIRST) == NOT_FOUND
