"""A scripted cluster of as many topics and partitions as wanted, for what depends on their number.

`bench/micro/micro_control.py` uses it, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from kafka_fast.control.connections.connection_key import ConnectionKey
from kafka_fast.control.consumer.consumer_messages import FetchPunt, StreamRow
from kafka_fast.control.consumer.partition import AssignedPartition
from kafka_fast.protocol import frame
from kafka_fast.protocol.apis.cluster.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from kafka_fast.protocol.apis.cluster.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kafka_fast.protocol.apis.groups.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from kafka_fast.protocol.apis.groups.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from kafka_fast.protocol.apis.records.fetch import (
    FetchableTopicResponse,
    FetchResponse,
    LeaderIdAndEpoch,
    PartitionData,
)
from kafka_fast.protocol.apis.records.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from kafka_fast.protocol.apis.records.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderTopicResult,
)
from kafka_fast.protocol.schema import Request, Response
from kafka_fast.types import TopicPartition

NODES = (1, 2, 3)
UNKNOWN_TOPIC = 3
NOT_LEADER = 6
COMMITTED = 7
FIRST = 10


class LargeCluster:
    """Three nodes; topics with the same number of partitions, which they lead in turn."""

    def __init__(self, topics: int, partitions: int) -> None:
        self.topics = [f"topic-{number:06}" for number in range(topics)]
        self.count = partitions
        self.turn = 0  # leaders move on with it, and get the next epoch
        self.incarnation = 0  # topics are recreated when it grows
        self.are_gone = False
        self._numbers = {name: number for number, name in enumerate(self.topics)}

    def partitions(self) -> list[TopicPartition]:
        """Return all partitions."""
        return [TopicPartition(name, n) for name in self.topics for n in range(self.count)]

    def leader(self, partition: int) -> int:
        """Return the node that leads the partitions of this number."""
        return NODES[(partition + self.turn) % len(NODES)]

    @property
    def epoch(self) -> int:
        """The leader epoch of all partitions."""
        return 5 + self.turn

    def topic_id(self, name: str) -> bytes:
        """Return a topic's id."""
        return (self.incarnation << 64 | self._numbers[name] + 1).to_bytes(16, "big")

    @property
    def handlers(self) -> dict[type[Request], Callable[[Any, ConnectionKey], Response | None]]:
        """What answers a `FakeMachine`."""
        return {
            MetadataRequest: lambda request, key: self._metadata(request),
            ListOffsetsRequest: lambda request, key: _offsets(request),
            OffsetForLeaderEpochRequest: lambda request, key: _epoch_ends(request),
            FindCoordinatorRequest: lambda request, key: _coordinator(request),
            OffsetFetchRequest: lambda request, key: _committed(request),
            OffsetCommitRequest: lambda request, key: _commit(request),
        }

    def refuse_as_not_leader(self, streams: Iterable[AssignedPartition], link_id: int) -> FetchPunt:
        """Return a Fetch answer over a link: these partitions have the leaders of this turn."""
        rows = []
        by_topic: dict[str, list[PartitionData]] = {}
        for stream in streams:
            topic, number = stream.partition
            now = LeaderIdAndEpoch(leader_id=self.leader(number), leader_epoch=self.epoch)
            by_topic.setdefault(topic, []).append(
                PartitionData(partition_index=number, error_code=NOT_LEADER, current_leader=now)
            )
            rows.append(StreamRow(stream.stream_id, stream.generation, NOT_LEADER, 50, -1))
        body = FetchResponse(
            responses=[
                FetchableTopicResponse(topic_id=self.topic_id(topic), partitions=partitions)
                for topic, partitions in by_topic.items()
            ]
        )
        return FetchPunt(link_id, 17, frame.encode_response(body, 17, 0)[4:], tuple(rows))

    def _metadata(self, request: MetadataRequest) -> MetadataResponse:
        asked = request.topics
        names = (
            self.topics
            if asked is None
            else [topic.name for topic in asked if topic.name is not None]
        )
        return MetadataResponse(
            brokers=[
                MetadataResponseBroker(node_id=node, host="kafka", port=9000 + node)
                for node in NODES
            ],
            cluster_id="c",
            controller_id=1,
            topics=[self._topic(name) for name in names],
        )

    def _topic(self, name: str) -> MetadataResponseTopic:
        if self.are_gone or name not in self._numbers:
            return MetadataResponseTopic(name=name, error_code=UNKNOWN_TOPIC)
        return MetadataResponseTopic(
            name=name,
            topic_id=self.topic_id(name),
            partitions=[
                MetadataResponsePartition(
                    partition_index=number,
                    leader_id=self.leader(number),
                    leader_epoch=self.epoch,
                    replica_nodes=list(NODES),
                    isr_nodes=list(NODES),
                )
                for number in range(self.count)
            ],
        )


def _offsets(request: ListOffsetsRequest) -> ListOffsetsResponse:
    return ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(
                name=topic.name,
                partitions=[
                    ListOffsetsPartitionResponse(
                        partition_index=partition.partition_index, offset=FIRST
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def _epoch_ends(request: OffsetForLeaderEpochRequest) -> OffsetForLeaderEpochResponse:
    return OffsetForLeaderEpochResponse(
        topics=[
            OffsetForLeaderTopicResult(
                topic=topic.topic,
                partitions=[
                    EpochEndOffset(
                        partition=partition.partition,
                        leader_epoch=partition.leader_epoch,
                        end_offset=1000,
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def _coordinator(request: FindCoordinatorRequest) -> FindCoordinatorResponse:
    return FindCoordinatorResponse(
        coordinators=[
            Coordinator(key=key, node_id=2, host="kafka", port=9002)
            for key in request.coordinator_keys
        ]
    )


def _committed(request: OffsetFetchRequest) -> OffsetFetchResponse:
    return OffsetFetchResponse(
        groups=[
            OffsetFetchResponseGroup(
                group_id=group.group_id,
                topics=[
                    OffsetFetchResponseTopics(
                        name=topic.name,
                        topic_id=topic.topic_id,
                        partitions=[
                            OffsetFetchResponsePartitions(
                                partition_index=number,
                                committed_offset=COMMITTED,
                                committed_leader_epoch=5,
                                metadata="",
                            )
                            for number in topic.partition_indexes
                        ],
                    )
                    for topic in group.topics or ()
                ],
            )
            for group in request.groups
        ]
    )


def _commit(request: OffsetCommitRequest) -> OffsetCommitResponse:
    return OffsetCommitResponse(
        topics=[
            OffsetCommitResponseTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=[
                    OffsetCommitResponsePartition(partition_index=partition.partition_index)
                    for partition in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )
