"""Committed offsets: who may commit, what is kept, and how it is read back."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kafka_fast import errors
from kafka_fast.protocol.apis.groups.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from kafka_fast.protocol.apis.topics.delete_topics import DeleteTopicState
from tests.integration.scenarios.groups import (
    Member,
    commit,
    fetch_offsets,
    ready,
    stable,
    until,
)
from tests.integration.scenarios.steps import UNKNOWN_ID, delete, new_topic, unique_name
from tests.integration.scenarios.wire import WireClient, connected

NOTHING = (-1, -1, "", 0)
UNKNOWN_MEMBER = errors.UnknownMemberId.code
ILLEGAL = errors.IllegalGeneration.code


@pytest.fixture
def group(client: WireClient) -> str:
    """A group id that the broker coordinates."""
    name = unique_name()
    ready(client, name)
    return name


@pytest.fixture
def other(address: str) -> Iterator[WireClient]:
    """A second connection."""
    with connected(address) as made:
        yield made


def test_what_was_committed_is_read_back(client: WireClient, group: str, topic: str) -> None:
    assert commit(client, group, topic, 5, metadata="note", leader_epoch=3) == 0
    assert commit(client, group, topic, 7, partition=2, metadata=None) == 0
    everything = {(topic, 0): (5, 3, "note", 0), (topic, 2): (7, -1, "", 0)}
    assert fetch_offsets(client, group, None) == (0, everything)
    asked = fetch_offsets(client, group, {topic: [0, 1, 2, 9], "unknown": [0]})
    assert asked == (
        0,
        {**everything, (topic, 1): NOTHING, (topic, 9): NOTHING, ("unknown", 0): NOTHING},
    )
    assert commit(client, group, topic, 4) == 0
    assert fetch_offsets(client, group, {topic: [0]}) == (0, {(topic, 0): (4, -1, "", 0)})


def test_a_group_that_nobody_knows(client: WireClient, group: str, topic: str) -> None:
    assert fetch_offsets(client, group, None) == (0, {})
    assert fetch_offsets(client, group, {topic: [0]}) == (0, {(topic, 0): NOTHING})


@pytest.mark.parametrize("version", range(2, 10))
def test_every_version_commits(client: WireClient, group: str, topic: str, version: int) -> None:
    assert commit(client, group, topic, 5, version=version) == 0
    assert commit(client, group, topic, 6, partition=3, version=version) == (
        errors.UnknownTopicOrPartition.code
    )
    assert commit(client, group, unique_name(), 6, version=version) == (
        errors.UnknownTopicOrPartition.code
    )
    assert fetch_offsets(client, group, None) == (0, {(topic, 0): (5, -1, "", 0)})


@pytest.mark.parametrize("version", range(1, 8))
def test_every_version_reads(client: WireClient, group: str, topic: str, version: int) -> None:
    commit(client, group, topic, 5, leader_epoch=2)
    topics = [OffsetFetchRequestTopic(name=topic, partition_indexes=[0, 1])]
    answer = client.ask(OffsetFetchRequest(group_id=group, topics=topics), version)
    rows = [
        (one.committed_offset, one.metadata, one.error_code) for one in answer.topics[0].partitions
    ]
    assert (answer.error_code, rows) == (0, [(5, "", 0), (-1, "", 0)])
    epochs = [one.committed_leader_epoch for one in answer.topics[0].partitions]
    assert epochs == ([2, -1] if version >= 5 else [-1, -1])
    if version >= 2:
        everything = client.ask(OffsetFetchRequest(group_id=group, topics=None), version)
        assert [one.name for one in everything.topics] == [topic]


def test_positions_by_topic_id(client: WireClient, group: str, topic: str) -> None:
    topic_id = client.metadata(topic).topics[0].topic_id
    assert commit(client, group, "", 5, version=10, topic_id=topic_id) == 0
    unknown = errors.UnknownTopicId.code
    assert commit(client, group, "", 5, version=10, topic_id=UNKNOWN_ID) == unknown
    topics = [
        OffsetFetchRequestTopics(topic_id=one, partition_indexes=[0])
        for one in (topic_id, UNKNOWN_ID)
    ]
    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=group, topics=topics)])
    answer = client.ask(request, 10).groups[0]
    assert {one.topic_id: one.partitions[0].error_code for one in answer.topics} == {
        topic_id: 0,
        UNKNOWN_ID: unknown,
    }
    request.groups[0].topics = None
    everything = client.ask(request, 10).groups[0].topics
    assert [(one.topic_id, one.partitions[0].committed_offset) for one in everything] == [
        (topic_id, 5)
    ]


def test_positions_of_a_topic_that_was_made_anew(client: WireClient, group: str) -> None:
    name = new_topic(client)
    former = client.metadata(name).topics[0].topic_id
    assert commit(client, group, "", 5, version=10, topic_id=former) == 0
    assert delete(client, DeleteTopicState(name=name))[0].error_code == 0
    client.wait_for_topic(name, gone=True)
    new_topic(client, name=name)
    topic_id = client.metadata(name).topics[0].topic_id
    assert topic_id != former
    unknown = errors.UnknownTopicId.code
    assert by_id(client, group, former, topic_id) == {former: (-1, unknown), topic_id: (-1, 0)}
    assert commit(client, group, "", 6, version=10, topic_id=former) == unknown
    assert commit(client, group, "", 7, version=10, topic_id=topic_id) == 0
    assert by_id(client, group, former, topic_id) == {former: (-1, unknown), topic_id: (7, 0)}
    assert fetch_offsets(client, group, {name: [0]}) == (0, {(name, 0): (7, -1, "", 0)})


def by_id(client: WireClient, group: str, *topic_ids: bytes) -> dict[bytes, tuple[int, int]]:
    """Return the position and the error code of each topic's first partition."""
    topics = [OffsetFetchRequestTopics(topic_id=one, partition_indexes=[0]) for one in topic_ids]
    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=group, topics=topics)])
    answer = client.ask(request, 10).groups[0]
    assert answer.error_code == 0
    return {
        topic.topic_id: (topic.partitions[0].committed_offset, topic.partitions[0].error_code)
        for topic in answer.topics
    }


def test_several_groups_at_once(client: WireClient, group: str, topic: str) -> None:
    commit(client, group, topic, 5)
    groups = [OffsetFetchRequestGroup(group_id=one, topics=None) for one in (group, "nobody's")]
    answer = client.ask(OffsetFetchRequest(groups=groups), 8).groups
    assert {one.group_id: (one.error_code, len(one.topics)) for one in answer} == {
        group: (0, 1),
        "nobody's": (0, 0),
    }


def test_metadata_has_a_limit(client: WireClient, group: str, topic: str) -> None:
    assert commit(client, group, topic, 5, metadata="x" * 4096) == 0
    too_large = errors.OffsetMetadataTooLarge.code
    assert commit(client, group, topic, 6, metadata="x" * 4097) == too_large
    assert fetch_offsets(client, group, None)[1][topic, 0][0] == 5


@pytest.mark.parametrize("version", [8, 9])
def test_members_commit_in_their_generation(
    client: WireClient, other: WireClient, group: str, topic: str, version: int
) -> None:
    member = Member(other, group)
    stable(member)
    assert member.commit(topic, 5, version=version) == 0
    assert commit(client, group, topic, 6, version=version) == UNKNOWN_MEMBER
    stranger = commit(client, group, topic, 6, member_id="stranger", generation=1, version=version)
    assert stranger == UNKNOWN_MEMBER
    member.generation = 0
    assert member.commit(topic, 6, version=version) == ILLEGAL
    member.generation = -1
    assert member.commit(topic, 6, version=version) == ILLEGAL
    assert member.leave() == 0
    assert member.commit(topic, 6, version=version) == 0
    assert fetch_offsets(client, group, None)[1][topic, 0][0] == 6


@pytest.mark.parametrize(("version", "code"), [(8, ILLEGAL), (9, errors.GroupIdNotFound.code)])
def test_a_generation_of_a_group_that_nobody_knows(
    client: WireClient, group: str, topic: str, version: int, code: int
) -> None:
    assert commit(client, group, topic, 5, member_id="x", generation=3, version=version) == code


def test_commits_while_a_group_rebalances(
    client: WireClient, other: WireClient, group: str, topic: str
) -> None:
    first, second = Member(other, group), Member(client, group)
    stable(first)
    second.send_join()
    until(first.heartbeat, lambda code: code == errors.RebalanceInProgress.code)
    assert first.commit(topic, 5) == 0
    first.send_join()
    first.joined()
    second.joined()
    assert first.commit(topic, 6) == errors.RebalanceInProgress.code
    first.sync()
    assert first.commit(topic, 7) == 0


def test_static_members_commit(
    client: WireClient, other: WireClient, group: str, topic: str
) -> None:
    member = Member(other, group, instance_id="one")
    stable(member)
    assert member.commit(topic, 5) == 0
    back = Member(client, group, instance_id="one")
    back.join()
    assert member.commit(topic, 6) == errors.FencedInstanceId.code
    assert back.commit(topic, 7) == 0


def test_the_empty_group_id_has_offsets(client: WireClient, topic: str) -> None:
    ready(client, "")
    assert commit(client, "", topic, 5) == 0
    assert fetch_offsets(client, "", {topic: [0]}) == (0, {(topic, 0): (5, -1, "", 0)})


def test_positions_go_with_their_topic(client: WireClient, group: str, topic: str) -> None:
    gone = new_topic(client)
    commit(client, group, gone, 5)
    commit(client, group, topic, 6)
    assert delete(client, DeleteTopicState(name=gone))[0].error_code == 0
    client.wait_for_topic(gone, gone=True)
    kept = (0, {(topic, 0): (6, -1, "", 0)})
    until(lambda: fetch_offsets(client, group, None), lambda offsets: offsets == kept)


def test_stable_positions(client: WireClient, group: str, topic: str) -> None:
    commit(client, group, topic, 5)
    offsets = fetch_offsets(client, group, {topic: [0]}, require_stable=True)
    assert offsets == (0, {(topic, 0): (5, -1, "", 0)})
