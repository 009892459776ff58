"""A cluster of two scripted brokers, and a consumer's control plane before it."""

from __future__ import annotations

from typing import Any

from kafka_fast.config import consumer_settings
from kafka_fast.control.connections.connection_key import ConnectionKey, Role
from kafka_fast.control.consumer.consumer_control import ConsumerControl
from kafka_fast.control.consumer.consumer_messages import (
    FetchPunt,
    StartStream,
    StreamRow,
)
from kafka_fast.protocol import frame
from kafka_fast.protocol.apis.cluster.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from kafka_fast.protocol.apis.cluster.metadata import MetadataRequest, MetadataResponse
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
    PartitionData,
)
from kafka_fast.protocol.apis.records.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from kafka_fast.protocol.apis.records.offset_for_leader_epoch import (
    EpochEndOffset as EpochEnd,
)
from kafka_fast.protocol.apis.records.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderTopicResult,
)
from kafka_fast.types import TopicPartition
from tests.unit.control.fake_machine import FakeMachine
from tests.unit.control.metadata.metadata_answers import answer, broker, make_topic_id, topic

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
NOT_LEADER = 6
OUT_OF_RANGE = 1
WALL_MS = 1_700_000_000_000


class Cluster:
    """Two scripted brokers."""

    def __init__(self) -> None:
        self.leaders = [(1, 5), (2, 7)]
        self.topic_id = make_topic_id(1)
        self.topic_error = 0
        self.offsets: dict[int, int] = {-2: 100, -1: 900}  # by timestamp
        self.offset_errors: list[int] = []  # for the next answers
        self.epoch_ends: dict[int, tuple[int, int]] = {}  # epoch -> (epoch, end offset)
        self.committed: dict[int, tuple[int, int]] = {}  # partition -> (offset, epoch)
        self.commit_errors: list[int] = []  # for the next answers to OffsetFetch
        self.coordinator = 2
        self.nodes = [1, 2]

    def metadata(self, request: MetadataRequest, key: ConnectionKey) -> MetadataResponse:
        return answer(
            topic("t", self.leaders, topic_id=self.topic_id, error=self.topic_error),
            brokers=[broker(node_id) for node_id in self.nodes],
        )

    def list_offsets(self, request: ListOffsetsRequest, key: ConnectionKey) -> ListOffsetsResponse:
        def one(part: Any) -> ListOffsetsPartitionResponse:
            leader = self.leaders[part.partition_index][0]
            code = self.offset_errors.pop(0) if self.offset_errors else 0
            return ListOffsetsPartitionResponse(
                partition_index=part.partition_index,
                error_code=code or (0 if leader == key.node_id else NOT_LEADER),
                offset=self.offsets.get(part.timestamp, -1),
            )

        return ListOffsetsResponse(
            topics=[
                ListOffsetsTopicResponse(name=t.name, partitions=[one(p) for p in t.partitions])
                for t in request.topics
            ]
        )

    def epoch_end(
        self, request: OffsetForLeaderEpochRequest, key: ConnectionKey
    ) -> OffsetForLeaderEpochResponse:
        def one(part: Any) -> EpochEnd:
            epoch, end = self.epoch_ends.get(part.leader_epoch, (-1, -1))
            return EpochEnd(partition=part.partition, leader_epoch=epoch, end_offset=end)

        return OffsetForLeaderEpochResponse(
            topics=[
                OffsetForLeaderTopicResult(topic=t.topic, partitions=[one(p) for p in t.partitions])
                for t in request.topics
            ]
        )

    def find_coordinator(
        self, request: FindCoordinatorRequest, key: ConnectionKey
    ) -> FindCoordinatorResponse:
        coordinator = Coordinator(key="g", node_id=self.coordinator, host="kafka", port=9092)
        return FindCoordinatorResponse(coordinators=[coordinator])

    def offset_fetch(self, request: OffsetFetchRequest, key: ConnectionKey) -> OffsetFetchResponse:
        assert key == ConnectionKey(Role.COORDINATOR, self.coordinator)
        code = self.commit_errors.pop(0) if self.commit_errors else 0

        def one(partition: int) -> OffsetFetchResponsePartitions:
            offset, epoch = self.committed.get(partition, (-1, -1))
            return OffsetFetchResponsePartitions(
                partition_index=partition,
                committed_offset=offset,
                committed_leader_epoch=epoch,
                metadata="",
                error_code=code,
            )

        (group,) = request.groups
        return OffsetFetchResponse(
            groups=[
                OffsetFetchResponseGroup(
                    group_id=group.group_id,
                    topics=[
                        OffsetFetchResponseTopics(
                            name=topic.name,
                            topic_id=topic.topic_id,
                            partitions=[one(p) for p in topic.partition_indexes],
                        )
                        for topic in group.topics or ()
                    ],
                )
            ]
        )


def make(cluster: Cluster, **given: object) -> FakeMachine:
    settings = consumer_settings({"bootstrap.servers": "kafka:9092"}, given)
    control = ConsumerControl(settings, "test", lambda: 0.5, lambda: WALL_MS)
    return FakeMachine(
        control,
        {
            MetadataRequest: cluster.metadata,
            ListOffsetsRequest: cluster.list_offsets,
            OffsetForLeaderEpochRequest: cluster.epoch_end,
            FindCoordinatorRequest: cluster.find_coordinator,
            OffsetFetchRequest: cluster.offset_fetch,
        },
    )


def assigned(cluster: Cluster, **given: object) -> FakeMachine:
    """Return a consumer to which both partitions are assigned, and whose streams run."""
    machine = make(cluster, **{"auto_offset_reset": "earliest", **given})
    machine.control.assign([(T0, 0), (T1, 1)], machine.now, committed=False)
    machine.run(1.0)
    return machine


def starts(machine: FakeMachine) -> dict[int, StartStream]:
    return {start.stream_id: start for start in machine.take(StartStream)}


def asked(machine: FakeMachine, kind: type[Any]) -> list[ConnectionKey]:
    """Return over which connections such requests went since the last call."""
    keys = [key for body, key in machine.asked if isinstance(body, kind)]
    machine.asked = [request for request in machine.asked if not isinstance(request[0], kind)]
    return keys


def punt(machine: FakeMachine, stream: StartStream, at: int, code: int = 0, **data: Any) -> None:
    """Let the data plane punt an answer for partition 0 or 1."""
    nodes = data.pop("node_endpoints", [])
    body = FetchResponse(
        responses=[
            FetchableTopicResponse(
                topic_id=make_topic_id(1),
                partitions=[
                    PartitionData(partition_index=stream.stream_id, error_code=code, **data)
                ],
            )
        ],
        node_endpoints=nodes,
    )
    row = StreamRow(stream.stream_id, stream.generation, code, at, -1)
    event = FetchPunt(stream.link_id, 17, frame.encode_response(body, 17, 0)[4:], (row,))
    machine.event(event)
