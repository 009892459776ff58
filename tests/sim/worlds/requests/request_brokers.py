"""The brokers of the requester's world: they answer rightly if they are asked what is theirs.

What is theirs moves. Now and then they answer an error that will pass, leave something out, or ask
for a pause.
"""

from __future__ import annotations

import random
from typing import Any

from kafka_fast.errors import ErrorCode
from kafka_fast.protocol.apis import api_keys, request_class
from kafka_fast.protocol.apis.cluster import metadata
from kafka_fast.protocol.apis.cluster.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
)
from kafka_fast.protocol.apis.cluster.find_coordinator import (
    Coordinator as FoundCoordinator,
)
from kafka_fast.protocol.apis.cluster.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from kafka_fast.protocol.apis.configs.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from kafka_fast.protocol.apis.groups import describe_groups
from kafka_fast.protocol.apis.records import list_offsets
from kafka_fast.protocol.apis.topics import create_topics
from kafka_fast.protocol.apis.transactions.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from kafka_fast.protocol.schema import Response
from kafka_fast.types import TopicPartition

BROKER_RESOURCE = 4
TOPICS = {"orders": 6, "payments": 3}
GROUPS = ("billing", "shipping", "audit")
NODE_IDS = (1, 2, (1 << 29) + 3)
"""One of them is as large as ids with a role in their bits would be."""
HOST, FIRST_PORT = "10.0.0.1", 9000


class Brokers:
    """What the brokers know, and who of them is responsible for what."""

    def __init__(self, chance: random.Random) -> None:
        self.random = chance
        self.are_odd = True
        """They answer errors that pass, and ask for pauses."""
        self.up = set(NODE_IDS)
        self.leaders = {
            TopicPartition(topic, i): self.any_id()
            for topic, count in TOPICS.items()
            for i in range(count)
        }
        self.coordinators = {group: self.any_id() for group in GROUPS}
        self.controller = self.any_id()

    def any_id(self) -> int:
        """Return the id of any broker."""
        return self.random.choice(NODE_IDS)

    def is_odd(self, probability: float) -> bool:
        """Tell whether something odd happens now."""
        return self.are_odd and self.random.random() < probability

    def move_something(self) -> None:
        """Give something to another broker."""
        match self.random.randrange(3):
            case 0:
                self.leaders[self.random.choice(sorted(self.leaders))] = self.any_id()
            case 1:
                self.coordinators[self.random.choice(GROUPS)] = self.any_id()
            case _:
                self.controller = self.any_id()

    def answer(self, request: Any, node_id: int) -> Response:
        """Return the answer of a broker."""
        body = self._body(request, node_id)
        is_basic = isinstance(request, ApiVersionsRequest | metadata.MetadataRequest)
        if not is_basic and self.is_odd(0.03):
            longest = self.random.choice([300, 300, 300, 2500])  # or longer than request.timeout.ms
            body.throttle_time_ms = self.random.randrange(10, longest)  # type: ignore[attr-defined]
        return body

    def _body(self, request: Any, node_id: int) -> Response:
        match request:
            case ApiVersionsRequest():
                return _versions()
            case metadata.MetadataRequest():
                return self._metadata()
            case FindCoordinatorRequest():
                return FindCoordinatorResponse(
                    coordinators=[self._found(key) for key in request.coordinator_keys]
                )
            case list_offsets.ListOffsetsRequest():
                return list_offsets.ListOffsetsResponse(
                    topics=[
                        list_offsets.ListOffsetsTopicResponse(
                            name=topic.name,
                            partitions=[
                                self._offset(topic.name, part.partition_index, node_id)
                                for part in topic.partitions
                            ],
                        )
                        for topic in request.topics
                        if not self.is_odd(0.01)
                    ]
                )
            case describe_groups.DescribeGroupsRequest():
                return describe_groups.DescribeGroupsResponse(
                    groups=[
                        describe_groups.DescribedGroup(
                            group_id=group,
                            error_code=self._code(
                                self.coordinators[group] == node_id, ErrorCode.NOT_COORDINATOR
                            ),
                            group_state=str(node_id),
                        )
                        for group in request.groups
                    ]
                )
            case InitProducerIdRequest():
                code = self._code(True, ErrorCode.NONE)
                return InitProducerIdResponse(error_code=code, producer_id=node_id)
            case create_topics.CreateTopicsRequest():
                code = self._code(self.controller == node_id, ErrorCode.NOT_CONTROLLER)
                return create_topics.CreateTopicsResponse(
                    topics=[
                        create_topics.CreatableTopicResult(
                            name=topic.name, error_code=code, num_partitions=node_id
                        )
                        for topic in request.topics
                    ]
                )
            case DescribeConfigsRequest():
                return DescribeConfigsResponse(
                    results=[
                        DescribeConfigsResult(
                            resource_type=BROKER_RESOURCE,
                            resource_name=resource.resource_name,
                            error_code=self._code(True, ErrorCode.NONE),
                            error_message=str(node_id),
                        )
                        for resource in request.resources
                    ]
                )
            case _:
                raise AssertionError(request)

    def _code(self, is_right: bool, wrong: int) -> int:
        """Return the code of an answer: that of the wrong node, a passing one, or none."""
        if not is_right:
            return wrong
        if self.is_odd(0.08):
            return self.random.choice(
                [ErrorCode.REQUEST_TIMED_OUT, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS]
            )
        return 0

    def _offset(self, topic: str, partition: int, node_id: int) -> Any:
        leader = self.leaders[TopicPartition(topic, partition)]
        return list_offsets.ListOffsetsPartitionResponse(
            partition_index=partition,
            error_code=self._code(leader == node_id, ErrorCode.NOT_LEADER_OR_FOLLOWER),
            offset=node_id,
        )

    def _found(self, key: str) -> FoundCoordinator:
        if self.is_odd(0.1):
            return FoundCoordinator(key=key, error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE)
        node_id = self.coordinators[key]
        host, port = address_of(node_id)
        return FoundCoordinator(key=key, node_id=node_id, host=host, port=port)

    def _metadata(self) -> Response:
        brokers = []
        for node_id in sorted(self.up) or list(NODE_IDS):
            host, port = address_of(node_id)
            brokers.append(metadata.MetadataResponseBroker(node_id=node_id, host=host, port=port))
        topics = [
            metadata.MetadataResponseTopic(
                name=topic,
                topic_id=topic.encode().ljust(16, b"-"),
                partitions=[
                    metadata.MetadataResponsePartition(
                        partition_index=i, leader_id=self.leaders[TopicPartition(topic, i)]
                    )
                    for i in range(count)
                ],
            )
            for topic, count in TOPICS.items()
        ]
        return metadata.MetadataResponse(
            brokers=brokers, cluster_id="world", controller_id=self.controller, topics=topics
        )


def address_of(node_id: int) -> tuple[str, int]:
    """Return where a broker listens."""
    return HOST, FIRST_PORT + NODE_IDS.index(node_id)


def _versions() -> ApiVersionsResponse:
    keys = [
        ApiVersion(
            api_key=key,
            min_version=request_class(key).versions[0],
            max_version=request_class(key).versions[-1],
        )
        for key in api_keys()
    ]
    return ApiVersionsResponse(api_keys=keys)
