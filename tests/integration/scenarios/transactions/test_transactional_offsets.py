"""Offsets of groups in transactions: when they count, and who may commit them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kafka_fast import errors
from kafka_fast.protocol.apis.groups.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
)
from tests.integration.scenarios.groups import Member, commit, fetch_offsets, ready, until
from tests.integration.scenarios.steps import UNKNOWN_ID, tell_coordinator, unique_name
from tests.integration.scenarios.transactions.conftest import Site
from tests.integration.scenarios.transactions.producers import (
    ABORTABLE,
    BAD_STATE,
    STALE_EPOCH,
    TransactionalProducer,
    settled,
)
from tests.integration.scenarios.transactions.producers import UNKNOWN_ID as UNMAPPED

UNSTABLE = errors.UnstableOffsetCommit.code
STALE_MEMBER = errors.StaleMemberEpoch.code
ILLEGAL = errors.IllegalGeneration.code
UNKNOWN_MEMBER = errors.UnknownMemberId.code
NOTHING = (-1, -1, "", 0)


@pytest.fixture
def group(site: Site, topic: str) -> str:
    """A group that is coordinated, and whose coordinator knows the topic."""
    name = unique_name()
    ready(site.client, name)
    tell_coordinator(site.client)
    return name


def position(site: Site, group: str, topic: str, *, stable: bool = True) -> tuple[int, int]:
    """Return the committed offset, and the error code, of the first partition."""
    code, offsets = fetch_offsets(site.client, group, {topic: [0]}, require_stable=stable)
    assert code == 0
    offset, _, _, error = offsets[topic, 0]
    return offset, error


def ended(site: Site, producer: TransactionalProducer, group: str, topic: str, commit: bool) -> int:
    """End a transaction and return the group's position when it is stable."""
    producer.end(commit=commit)
    return until(lambda: position(site, group, topic), lambda one: one[1] != UNSTABLE)[0]


def test_offsets_count_when_the_transaction_commits(site: Site, topic: str, group: str) -> None:
    producer = site.producer()
    producer.offsets_sent(group, {(topic, 0): 5})
    assert position(site, group, topic) == (-1, UNSTABLE)
    assert position(site, group, topic, stable=False) == (-1, 0)
    _, others = fetch_offsets(site.client, group, {topic: [1]}, require_stable=True)
    assert others == {(topic, 1): NOTHING}
    assert fetch_offsets(site.client, group, None, require_stable=True) == (0, {})
    assert ended(site, producer, group, topic, True) == 5
    producer.offsets_sent(group, {(topic, 0): 8})
    unstable = {(topic, 0): (-1, -1, "", UNSTABLE)}
    assert fetch_offsets(site.client, group, None, require_stable=True) == (0, unstable)
    assert position(site, group, topic, stable=False) == (5, 0)
    assert ended(site, producer, group, topic, False) == 5


def test_the_last_commit_counts_whenever_it_ends(site: Site, topic: str, group: str) -> None:
    first, second = site.producer(), site.producer()
    first.offsets_sent(group, {(topic, 0): 7})
    assert commit(site.client, group, topic, 6) == 0
    assert position(site, group, topic, stable=False) == (6, 0)
    assert ended(site, first, group, topic, True) == 6
    first.offsets_sent(group, {(topic, 0): 10})
    second.offsets_sent(group, {(topic, 0): 11})
    second.end(commit=True)
    until(lambda: position(site, group, topic, stable=False), lambda one: one[0] == 11)
    assert position(site, group, topic) == (-1, UNSTABLE)
    assert ended(site, first, group, topic, True) == 11


@pytest.mark.parametrize("of_commit", range(5))
def test_a_group_that_was_not_added(site: Site, topic: str, group: str, of_commit: int) -> None:
    producer = site.producer()
    refused = BAD_STATE if of_commit < 4 else ABORTABLE
    assert producer.commit_offsets(group, {(topic, 0): 1}, version=of_commit) == [refused]
    assert producer.described().transaction_state == "Empty"


def test_a_commit_of_version_2_adds_the_group(site: Site, topic: str, group: str) -> None:
    producer = site.producer()
    codes = producer.commit_offsets(group, {(topic, 0): 1}, version=5)
    if site.version == 0:
        assert codes == [errors.UnsupportedVersion.code]
        return
    assert codes == [0]
    state = producer.described()
    assert state.transaction_state == "Ongoing"
    assert [one.topic for one in state.topics] == ["__consumer_offsets"]


def test_a_commit_after_the_end(site: Site, topic: str, group: str) -> None:
    """In version 2 its epoch is over; version 1 takes it for the next transaction's."""
    producer = site.producer()
    late = producer.copy()
    producer.offsets_sent(group, {(topic, 0): 5})
    ended(site, producer, group, topic, True)
    codes = [late.commit_offsets(group, {(topic, 0): 9}, version=one)[0] for one in (2, 4)]
    if site.version == 2:
        assert codes == [STALE_EPOCH, STALE_EPOCH]
        assert late.commit_offsets(group, {(topic, 0): 9}, version=5) == [STALE_EPOCH]
    else:
        assert codes == [BAD_STATE, ABORTABLE]


def test_what_cannot_be_committed(site: Site, topic: str, group: str) -> None:
    producer = site.producer()
    nowhere = unique_name()
    asked = {(nowhere, 0): 1, (topic, 77): 1, (topic, 1): 1}
    unknown = errors.UnknownTopicOrPartition.code
    assert producer.commit_offsets(group, asked, version=4) == [unknown, unknown, ABORTABLE]
    if site.protocol == 1:
        assert settled(lambda: producer.add_offsets(group)) == 0
    assert producer.commit_offsets(group, asked) == [unknown, unknown, 0]
    too_large = producer.commit_offsets(group, {(topic, 0): 1}, metadata="x" * 5000)
    assert too_large == [errors.OffsetMetadataTooLarge.code]
    assert producer.commit_offsets("", {(topic, 0): 1}) == [errors.InvalidGroupId.code]


def test_a_transactional_id_that_nobody_knows(site: Site, topic: str, group: str) -> None:
    producer = site.producer()
    for name, code in [("nobody", UNMAPPED), ("", errors.InvalidRequest.code)]:
        producer.transactional_id = name
        assert producer.commit_offsets(group, {(topic, 0): 1}, version=4) == [code]
        if site.version:
            assert producer.commit_offsets(group, {(topic, 0): 1}, version=5) == [code]


def test_topics_by_id(site: Site, topic: str, group: str) -> None:
    producer = site.producer()
    topic_id = site.client.metadata(topic).topics[0].topic_id

    def send(one: bytes) -> list[int]:
        return producer.commit_offsets(group, {(topic, 0): 3}, version=6, topic_ids={topic: one})

    assert send(topic_id) == [0 if site.version else errors.UnsupportedVersion.code]
    assert send(UNKNOWN_ID) == [errors.UnknownTopicId.code]
    assert send(bytes(16)) == [errors.UnknownTopicId.code]


# ---- members: KIP-447 ----


@pytest.fixture
def send(site: Site, topic: str, group: str) -> Callable[..., int]:
    """Commit an offset of the group in a transaction; return the error code."""
    producer = site.producer()
    if site.protocol == 1:
        assert settled(lambda: producer.add_offsets(group)) == 0

    def commit_offset(**options: object) -> int:
        (code,) = producer.commit_offsets(group, {(topic, 0): 1}, **options)  # type: ignore[arg-type]
        return code

    return commit_offset


def test_a_group_without_members(send: Callable[..., int]) -> None:
    assert send(generation=3) == ILLEGAL
    assert send(generation=3, member_id="x") == ILLEGAL
    assert send(member_id="x") == 0
    assert send() == 0


def test_members_of_a_classic_group(site: Site, group: str, send: Callable[..., int]) -> None:
    member = Member(site.client, group)
    member.join()
    right = {"member_id": member.member_id, "generation": member.generation}
    assert (send(), send(**right)) == (0, 0)
    member.sync({member.member_id: b"x"})
    assert (send(), send(**right)) == (0, 0)
    assert send(**{**right, "generation": member.generation - 1}) == ILLEGAL
    assert send(**{**right, "member_id": "other"}) == UNKNOWN_MEMBER
    assert send(generation=member.generation) == UNKNOWN_MEMBER
    assert send(member_id=member.member_id) == ILLEGAL
    assert send(instance_id="i") == UNKNOWN_MEMBER
    assert send(**right, instance_id="i") == UNKNOWN_MEMBER


def test_members_of_a_consumer_group(
    site: Site, topic: str, group: str, send: Callable[..., int]
) -> None:
    """Versions that know topics by name tell of a stale epoch in the words of classic groups."""
    member_id = unique_name()
    joining = ConsumerGroupHeartbeatRequest(
        group_id=group,
        member_id=member_id,
        member_epoch=0,
        rebalance_timeout_ms=30_000,
        subscribed_topic_names=[topic],
        topic_partitions=[],
    )
    joined = until(lambda: site.client.ask(joining, 1), lambda one: one.error_code == 0)
    epoch = joined.member_epoch
    assert send() == 0
    assert send(member_id=member_id, generation=epoch) == 0
    for stale in (epoch - 1, epoch + 1, -1):
        assert send(member_id=member_id, generation=stale) == ILLEGAL
    assert send(member_id="other", generation=epoch) == UNKNOWN_MEMBER
    assert send(generation=epoch) == UNKNOWN_MEMBER
    if site.version:
        ids = {topic: site.client.metadata(topic).topics[0].topic_id}
        options = {"member_id": member_id, "version": 6, "topic_ids": ids}
        assert send(**options, generation=epoch) == 0
        assert send(**options, generation=epoch + 1) == STALE_MEMBER
        assert send(**options, generation=epoch - 1) == STALE_MEMBER
