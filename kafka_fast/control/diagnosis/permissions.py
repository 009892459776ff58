"""Which permission a refused request lacks, for the text of the error.

A broker only says what it refuses: a topic, a group, the cluster. Whoever has to add the rule needs
the operation as well. The table is that of Kafka's documentation, "Operations and Resources on
Protocols", for the APIs that this client asks.
"""

from __future__ import annotations

from collections.abc import Mapping

from kafka_fast.errors import ErrorCode, error_description

__all__ = ["described"]

_TOPIC = ErrorCode.TOPIC_AUTHORIZATION_FAILED
_GROUP = ErrorCode.GROUP_AUTHORIZATION_FAILED
_CLUSTER = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
_TRANSACTIONAL_ID = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED

_NEEDED: Mapping[tuple[int, str], str] = {
    (_TOPIC, "Metadata"): "DESCRIBE on the topic",
    (_TOPIC, "Produce"): "WRITE on the topic",
    (_TOPIC, "Fetch"): "READ on the topic",
    (_TOPIC, "ListOffsets"): "DESCRIBE on the topic",
    (_TOPIC, "OffsetForLeaderEpoch"): "DESCRIBE on the topic",
    (_TOPIC, "OffsetFetch"): "DESCRIBE on the topic",
    (_TOPIC, "OffsetCommit"): "READ on the topic",
    (_TOPIC, "ConsumerGroupHeartbeat"): "DESCRIBE on the topics",
    (_TOPIC, "AddPartitionsToTxn"): "WRITE on the topic",
    (_TOPIC, "TxnOffsetCommit"): "READ on the topic",
    (_TOPIC, "DescribeConfigs"): "DESCRIBE_CONFIGS on the topic",
    (_GROUP, "FindCoordinator"): "DESCRIBE on the group, and READ to be a member",
    (_GROUP, "OffsetFetch"): "DESCRIBE on the group",
    (_GROUP, "OffsetCommit"): "READ on the group",
    (_GROUP, "AddOffsetsToTxn"): "READ on the group",
    (_GROUP, "TxnOffsetCommit"): "READ on the group",
    (_GROUP, "JoinGroup"): "READ on the group",
    (_GROUP, "SyncGroup"): "READ on the group",
    (_GROUP, "Heartbeat"): "READ on the group",
    (_GROUP, "LeaveGroup"): "READ on the group",
    (_GROUP, "ConsumerGroupHeartbeat"): "READ on the group",
    (_GROUP, "DescribeGroups"): "DESCRIBE on the group",
    (_GROUP, "ConsumerGroupDescribe"): "DESCRIBE on the group",
    (_CLUSTER, "InitProducerId"): "WRITE on a topic, or IDEMPOTENT_WRITE on the cluster",
    (_CLUSTER, "Produce"): "IDEMPOTENT_WRITE on the cluster",
    (_TRANSACTIONAL_ID, "InitProducerId"): "WRITE on the transactional id",
    (_TRANSACTIONAL_ID, "FindCoordinator"): "DESCRIBE on the transactional id",
    (_TRANSACTIONAL_ID, "AddPartitionsToTxn"): "WRITE on the transactional id",
    (_TRANSACTIONAL_ID, "AddOffsetsToTxn"): "WRITE on the transactional id",
    (_TRANSACTIONAL_ID, "TxnOffsetCommit"): "WRITE on the transactional id",
    (_TRANSACTIONAL_ID, "EndTxn"): "WRITE on the transactional id",
    (_TRANSACTIONAL_ID, "Produce"): "WRITE on the transactional id",
}


def described(code: int, api: str, said: str | None = None) -> str:
    """Return what an error code means, and the permission that would help.

    Args:
        code: of the error.
        api: the API that answered with it, as "Fetch".
        said: the broker's own words, if it has any.
    """
    text = said or error_description(code)
    needed = _NEEDED.get((code, api))
    return text if needed is None else f"{text} (needs {needed})"
