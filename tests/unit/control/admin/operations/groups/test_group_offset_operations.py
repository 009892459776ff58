"""Operations on offsets of groups: what is asked in each version, and what answers mean."""

from __future__ import annotations

import pytest

from kafka_fast import OffsetAndMetadata, TopicPartition
from kafka_fast.admin import ShareGroupOffset
from kafka_fast.control.admin.operation import OperationResults
from kafka_fast.control.admin.operations.groups.committed import (
    AlterGroupOffsets,
    DeleteGroupOffsets,
    ListGroupOffsets,
)
from kafka_fast.control.admin.operations.groups.shared import (
    AlterShareGroupOffsets,
    DeleteShareGroupOffsets,
    ListShareGroupOffsets,
)
from kafka_fast.control.requests.call import AnswerSource
from kafka_fast.control.requests.meanings import Done, FindAgain, Refused, Retry
from kafka_fast.errors import (
    ErrorCode,
    GroupSubscribedToTopic,
    NonEmptyGroup,
    TopicAuthorizationFailed,
    UnknownMemberId,
    UnknownTopicOrPartition,
    UnsupportedVersionError,
    UsageError,
)
from kafka_fast.protocol.apis.groups import offset_commit as commit
from kafka_fast.protocol.apis.groups import offset_delete as delete
from kafka_fast.protocol.apis.groups import offset_fetch as fetch
from kafka_fast.protocol.apis.share_groups import alter_share_group_offsets as alter_share
from kafka_fast.protocol.apis.share_groups import delete_share_group_offsets as delete_share
from kafka_fast.protocol.apis.share_groups import describe_share_group_offsets as describe_share

SOURCE = AnswerSource(9, "node 1", 0.0, node_id=1)
OLD = AnswerSource(7, "node 1", 0.0, node_id=1)
HERE, THERE, OTHER = TopicPartition("t", 0), TopicPartition("t", 3), TopicPartition("u", 1)


# ---- what groups of consumers have committed ----


@pytest.mark.parametrize("version", range(2, 10))
def test_offsets_are_asked_for_in_each_version(version: int) -> None:
    stable = version >= 7
    operation = ListGroupOffsets({"a": [OTHER, HERE, THERE], "b": None}, require_stable=stable)
    assert operation.unsupported("a", version) is None
    most = operation.max_items(version)
    groups = [["a", "b"]] if most > 1 else [["a"], ["b"]]
    asked = {}
    for items in groups:
        sent = operation.build(items, version).encode(version)
        request = fetch.OffsetFetchRequest.decode(sent, version)
        assert request.require_stable == stable
        if version < 8:
            asked[request.group_id] = request.topics
        else:
            asked |= {group.group_id: group.topics for group in request.groups}  # type: ignore[dict-item]
    assert asked["b"] is None
    assert asked["a"] is not None
    assert [(one.name, one.partition_indexes) for one in asked["a"]] == [("u", [1]), ("t", [0, 3])]


def test_no_partitions_are_not_all_partitions() -> None:
    operation = ListGroupOffsets({"a": []}, require_stable=False)
    assert operation.build(["a"], 9).groups[0].topics == []
    assert operation.build(["a"], 7).topics == []


def test_an_old_broker_does_not_wait_for_transactions() -> None:
    error = ListGroupOffsets({"a": None}, require_stable=True).unsupported("a", 6)
    assert isinstance(error, UnsupportedVersionError)
    assert "since Kafka 2.5" in str(error)


def fetched(offset: int, index: int = 0, code: int = 0) -> fetch.OffsetFetchResponsePartitions:
    return fetch.OffsetFetchResponsePartitions(
        partition_index=index,
        committed_offset=offset,
        committed_leader_epoch=4 if offset >= 0 else -1,
        metadata="note",
        error_code=code,
    )


def answered(
    *partitions: fetch.OffsetFetchResponsePartitions, code: int = 0
) -> fetch.OffsetFetchResponse:
    topic = fetch.OffsetFetchResponseTopics(name="t", partitions=list(partitions))
    group = fetch.OffsetFetchResponseGroup(group_id="a", topics=[topic], error_code=code)
    return fetch.OffsetFetchResponse(groups=[group])


def test_partitions_keep_their_errors() -> None:
    beyond = TopicPartition("t", 5)
    operation = ListGroupOffsets({"a": [THERE, HERE, beyond]}, require_stable=False)
    answer = answered(
        fetched(7), fetched(-1, 3), fetched(-1, 5, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    )
    ((group_id, meaning),) = operation.outcomes(answer, ["a"], SOURCE)
    assert group_id == "a"
    assert isinstance(meaning, Done)
    results: OperationResults[TopicPartition, OffsetAndMetadata | None] = meaning.value
    assert results.keys == [THERE, HERE, beyond]
    assert results.values == {HERE: OffsetAndMetadata(7, 4, "note"), THERE: None}
    error = results.errors[beyond]
    assert isinstance(error, TopicAuthorizationFailed)
    assert "OffsetFetch of t-5 in group 'a': " in str(error)
    assert "(needs DESCRIBE on the topic)" in str(error)


def test_an_old_answer_is_about_one_group() -> None:
    part = fetch.OffsetFetchResponsePartition(
        partition_index=0, committed_offset=7, committed_leader_epoch=4, metadata=None
    )
    topic = fetch.OffsetFetchResponseTopic(name="t", partitions=[part])
    operation = ListGroupOffsets({"a": None}, require_stable=False)
    answer = fetch.OffsetFetchResponse(topics=[topic])
    ((_, meaning),) = operation.outcomes(answer, ["a"], OLD)
    assert isinstance(meaning, Done)
    assert meaning.value.values == {HERE: OffsetAndMetadata(7, 4, "")}
    answer = fetch.OffsetFetchResponse(error_code=ErrorCode.NOT_COORDINATOR)
    ((_, moved),) = operation.outcomes(answer, ["a"], OLD)
    assert isinstance(moved, FindAgain)


def test_open_transactions_and_gaps_are_asked_about_again() -> None:
    operation = ListGroupOffsets({"a": [HERE, THERE]}, require_stable=True)
    answer = answered(fetched(7), fetched(-1, 3, ErrorCode.UNSTABLE_OFFSET_COMMIT))
    ((_, meaning),) = operation.outcomes(answer, ["a"], SOURCE)
    assert isinstance(meaning, Retry)
    assert "t-3" in str(meaning.error)
    ((_, meaning),) = operation.outcomes(answered(fetched(7)), ["a"], SOURCE)
    assert isinstance(meaning, Retry)
    assert "leaves t-3 out" in str(meaning.error)
    denied = answered(code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
    ((_, refused),) = operation.outcomes(denied, ["a"], SOURCE)
    assert isinstance(refused, Refused)
    assert "(needs DESCRIBE on the group)" in str(refused.error)
    foreign = fetch.OffsetFetchResponse(groups=[fetch.OffsetFetchResponseGroup(group_id="z")])
    assert list(operation.outcomes(foreign, ["a"], SOURCE)) == []


@pytest.mark.parametrize("version", range(2, 10))
def test_offsets_are_committed_in_each_version(version: int) -> None:
    operation = AlterGroupOffsets("g", {HERE: OffsetAndMetadata(7, 4, "note"), OTHER: 0})
    sent = operation.build([HERE, OTHER], version).encode(version)
    request = commit.OffsetCommitRequest.decode(sent, version)
    assert (request.group_id, request.member_id) == ("g", "")
    assert request.generation_id_or_member_epoch == -1
    first, second = request.topics
    (part,) = first.partitions
    assert (first.name, part.partition_index, part.committed_offset) == ("t", 0, 7)
    assert part.committed_metadata == "note"
    assert part.committed_leader_epoch == (4 if version >= 6 else -1)
    assert (second.name, second.partitions[0].committed_offset) == ("u", 0)


@pytest.mark.parametrize("offset", [-1, OffsetAndMetadata(-1)])
def test_no_offset_is_negative(offset: int | OffsetAndMetadata) -> None:
    with pytest.raises(UsageError, match="an offset of t-0 cannot be -1"):
        AlterGroupOffsets("g", {HERE: offset})
    with pytest.raises(UsageError, match="an offset of t-0 cannot be -1"):
        AlterShareGroupOffsets("g", {HERE: -1})


def test_no_offset_is_text() -> None:
    with pytest.raises(TypeError, match="an offset of t-0 is an int, not 'latest'"):
        AlterGroupOffsets("g", {HERE: "latest"})  # type: ignore[dict-item]


def test_a_note_beside_an_offset_can_be_sent() -> None:
    with pytest.raises(UsageError, match=r"the note beside an offset of t-0: .* UTF-8"):
        AlterGroupOffsets("g", {HERE: OffsetAndMetadata(1, -1, "\udcff")})


def test_commits_are_told_apart() -> None:
    def part(index: int, code: int = 0) -> commit.OffsetCommitResponsePartition:
        return commit.OffsetCommitResponsePartition(partition_index=index, error_code=code)

    codes = (0, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    topic = commit.OffsetCommitResponseTopic(
        name="t", partitions=[part(index, code) for index, code in enumerate(codes)]
    )
    partitions = [TopicPartition("t", index) for index in range(3)]
    operation = AlterGroupOffsets("g", dict.fromkeys(partitions, 1))
    answer = commit.OffsetCommitResponse(topics=[topic])
    done, active, absent = dict(operation.outcomes(answer, partitions, SOURCE)).values()
    assert done == Done(None)
    assert isinstance(active, Refused)
    assert isinstance(active.error, UnknownMemberId)
    assert "OffsetCommit of t-1 in group 'g': the group has members" in str(active.error)
    assert isinstance(absent, Refused)
    assert isinstance(absent.error, UnknownTopicOrPartition)


def test_offsets_are_deleted() -> None:
    operation = DeleteGroupOffsets("g", [HERE, OTHER, THERE])
    sent = operation.build([HERE, OTHER, THERE], 0).encode(0)
    request = delete.OffsetDeleteRequest.decode(sent, 0)
    assert request.group_id == "g"
    assert [
        (topic.name, [one.partition_index for one in topic.partitions]) for topic in request.topics
    ] == [("t", [0, 3]), ("u", [1])]
    parts = [
        delete.OffsetDeleteResponsePartition(partition_index=0),
        delete.OffsetDeleteResponsePartition(
            partition_index=3, error_code=ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
        ),
    ]
    topic = delete.OffsetDeleteResponseTopic(name="t", partitions=parts)
    answer = delete.OffsetDeleteResponse(topics=[topic])
    outcomes = dict(operation.outcomes(answer, [HERE, THERE], SOURCE))
    assert outcomes[HERE] == Done(None)
    refused = outcomes[THERE]
    assert isinstance(refused, Refused)
    assert isinstance(refused.error, GroupSubscribedToTopic)
    answer = delete.OffsetDeleteResponse(error_code=ErrorCode.NON_EMPTY_GROUP)
    outcomes = dict(operation.outcomes(answer, [HERE, THERE], SOURCE))
    assert list(outcomes) == [HERE, THERE]
    assert all(isinstance(one, Refused) for one in outcomes.values())


# ---- where share groups go on ----


@pytest.mark.parametrize("version", range(2))
def test_share_offsets_are_listed(version: int) -> None:
    operation = ListShareGroupOffsets({"a": [HERE], "b": None})
    sent = operation.build(["a", "b"], version).encode(version)
    request = describe_share.DescribeShareGroupOffsetsRequest.decode(sent, version)
    first, second = request.groups
    assert first.topics is not None
    assert [(one.topic_name, one.partitions) for one in first.topics] == [("t", [0])]
    assert second.topics is None

    def part(
        index: int, offset: int, code: int = 0, lag: int = -1
    ) -> describe_share.DescribeShareGroupOffsetsResponsePartition:
        return describe_share.DescribeShareGroupOffsetsResponsePartition(
            partition_index=index, start_offset=offset, leader_epoch=2, lag=lag, error_code=code
        )

    topic = describe_share.DescribeShareGroupOffsetsResponseTopic(
        topic_name="t",
        partitions=[
            part(0, 7, lag=3 if version else -1),
            part(1, -1),
            part(3, 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ],
    )
    groups = [
        describe_share.DescribeShareGroupOffsetsResponseGroup(
            group_id="a", error_code=ErrorCode.GROUP_ID_NOT_FOUND
        ),
        describe_share.DescribeShareGroupOffsetsResponseGroup(group_id="b", topics=[topic]),
    ]
    answer = describe_share.DescribeShareGroupOffsetsResponse(groups=groups)
    outcomes = dict(operation.outcomes(answer, ["a", "b"], SOURCE))
    assert isinstance(outcomes["a"], Refused)
    told = outcomes["b"]
    assert isinstance(told, Done)
    assert told.value.values == {
        HERE: ShareGroupOffset(7, 2, 3 if version else None),
        TopicPartition("t", 1): None,
    }
    assert isinstance(told.value.errors[THERE], UnknownTopicOrPartition)


def test_share_offsets_are_altered() -> None:
    operation = AlterShareGroupOffsets("g", {HERE: 5, THERE: 6})
    sent = operation.build([HERE, THERE], 0).encode(0)
    request = alter_share.AlterShareGroupOffsetsRequest.decode(sent, 0)
    (topic,) = request.topics
    assert [(one.partition_index, one.start_offset) for one in topic.partitions] == [(0, 5), (3, 6)]
    parts = [
        alter_share.AlterShareGroupOffsetsResponsePartition(partition_index=0),
        alter_share.AlterShareGroupOffsetsResponsePartition(
            partition_index=3, error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        ),
    ]
    told = alter_share.AlterShareGroupOffsetsResponseTopic(topic_name="t", partitions=parts)
    answer = alter_share.AlterShareGroupOffsetsResponse(responses=[told])
    outcomes = dict(operation.outcomes(answer, [HERE, THERE], SOURCE))
    assert outcomes[HERE] == Done(None)
    assert isinstance(outcomes[THERE], Refused)
    answer = alter_share.AlterShareGroupOffsetsResponse(error_code=ErrorCode.NON_EMPTY_GROUP)
    refused = dict(operation.outcomes(answer, [HERE, THERE], SOURCE))[THERE]
    assert isinstance(refused, Refused)
    assert isinstance(refused.error, NonEmptyGroup)
    assert "t-3 in group 'g'" in str(refused.error)


def test_share_offsets_are_deleted() -> None:
    operation = DeleteShareGroupOffsets("g", ["t", "u"])
    sent = operation.build(["t", "u"], 0).encode(0)
    request = delete_share.DeleteShareGroupOffsetsRequest.decode(sent, 0)
    assert [one.topic_name for one in request.topics] == ["t", "u"]
    topics = [
        delete_share.DeleteShareGroupOffsetsResponseTopic(topic_name="t"),
        delete_share.DeleteShareGroupOffsetsResponseTopic(
            topic_name="u", error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        ),
    ]
    answer = delete_share.DeleteShareGroupOffsetsResponse(responses=topics)
    outcomes = dict(operation.outcomes(answer, ["t", "u"], SOURCE))
    assert outcomes["t"] == Done(None)
    assert isinstance(outcomes["u"], Refused)
    answer = delete_share.DeleteShareGroupOffsetsResponse(error_code=ErrorCode.NON_EMPTY_GROUP)
    assert list(dict(operation.outcomes(answer, ["t", "u"], SOURCE))) == ["t", "u"]
