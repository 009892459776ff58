"""Pages of topics, which the embedded broker does not offer: what the newest brokers answer here.

This is as Kafka's DescribeTopicPartitionsRequestHandler does it, but for permissions. The pages are
so short that most descriptions take several.
"""

from __future__ import annotations

import zlib

import pytest

from kafka_fast.errors import BrokerError, LeaderNotAvailable, UnknownTopicOrPartition
from kafka_fast.protocol.apis.topics.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponseCursor,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)
from kafka_fast.testing.broker import handlers, registry
from kafka_fast.testing.broker.partitions.cluster_topics import Partition, check_topic_name
from kafka_fast.testing.broker.received_request import ReceivedRequest
from tests.sim.worlds.admins.admin_faults import AdminFaults

PARTITIONS_PER_PAGE = 2
UNSETTLED_ONE_IN = 4
"""Of so many topics in answers, one has to be asked about again."""


def offer_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let brokers without a limit of versions answer DescribeTopicPartitions, and faults strike it.

    Args:
        monkeypatch: ends this with the test.
    """
    key = DescribeTopicPartitionsRequest.api_key
    monkeypatch.setitem(handlers.HANDLERS, key, answer_page)
    for offered in (handlers.OFFERED, registry.OFFERED):
        monkeypatch.setitem(offered, key, (0, 0))
    monkeypatch.setattr(AdminFaults, "apis", (*AdminFaults.apis, key))


def answer_page(request: ReceivedRequest) -> DescribeTopicPartitionsResponse:
    """Return topics in the order of their names, until the page is full."""
    body: DescribeTopicPartitionsRequest = request.body
    first_topic, first = "", 0
    if body.cursor is not None:
        first_topic, first = body.cursor.topic_name, body.cursor.partition_index
    page = DescribeTopicPartitionsResponse(topics=[])
    room = min(PARTITIONS_PER_PAGE, body.response_partition_limit)
    for name in sorted({topic.name for topic in body.topics if topic.name >= first_topic}):
        if not room:
            page.next_cursor = _cursor(name, 0)
            break
        topic = _describe_topic(request, name)
        end = first + room
        page.topics.append(topic)
        if len(topic.partitions) > end:
            page.next_cursor = _cursor(name, end)
        topic.partitions = topic.partitions[first:end]
        if page.next_cursor is not None:
            break
        room -= len(topic.partitions)
        first = 0
    return page


def _cursor(topic: str, partition: int) -> DescribeTopicPartitionsResponseCursor:
    return DescribeTopicPartitionsResponseCursor(topic_name=topic, partition_index=partition)


def _describe_topic(request: ReceivedRequest, name: str) -> DescribeTopicPartitionsResponseTopic:
    topic = request.state.topics.get(name)
    try:
        check_topic_name(name)
        if topic is None:
            raise UnknownTopicOrPartition(f"no topic {name!r}")
        if zlib.crc32(f"{name} {request.now}".encode()) % UNSETTLED_ONE_IN == 0:
            raise LeaderNotAvailable(f"topic {name!r} has no leader yet")
    except BrokerError as error:
        return DescribeTopicPartitionsResponseTopic(error_code=error.code, name=name, partitions=[])
    return DescribeTopicPartitionsResponseTopic(
        name=name,
        topic_id=topic.topic_id,
        is_internal=topic.is_internal,
        partitions=[_partition(one) for one in topic.partitions],
    )


def _partition(partition: Partition) -> DescribeTopicPartitionsResponsePartition:
    return DescribeTopicPartitionsResponsePartition(
        partition_index=partition.index,
        leader_id=partition.leader,
        leader_epoch=partition.leader_epoch,
        replica_nodes=list(partition.replicas),
        isr_nodes=list(partition.isr),
        offline_replicas=[],
    )
