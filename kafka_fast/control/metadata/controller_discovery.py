"""Keeps the picture of a quorum of controllers fresh, for a client that asks no broker (KIP-919).

Controllers have no Metadata. They describe themselves in DescribeCluster, which is read here as
metadata without topics: the nodes are the controllers, and the controller is the active one.

Thread: control.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from kafka_fast.control.metadata.discovery import Discovery
from kafka_fast.control.metadata.metadata import ClusterChanges
from kafka_fast.control.requests.call import AnswerSource
from kafka_fast.control.requests.meanings import Meaning, Refused
from kafka_fast.errors import (
    ErrorCode,
    KafkaError,
    MismatchedEndpointType,
    UnsupportedVersionError,
)
from kafka_fast.protocol.apis.cluster.describe_cluster import (
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from kafka_fast.protocol.apis.cluster.metadata import MetadataResponse, MetadataResponseBroker
from kafka_fast.protocol.schema import Request

CONTROLLERS = 2
"""The type of endpoints that DescribeCluster is to describe."""

FIRST_VERSION_WITH_TYPES = 1


class ControllerDiscovery(Discovery):
    """The controllers of one client's cluster. Control thread only."""

    request_class = DescribeClusterRequest
    response_class = DescribeClusterResponse
    read_later = None

    def unsupported(self, item: str, version: int) -> KafkaError | None:
        """Refuse a node that describes brokers only."""
        if version >= FIRST_VERSION_WITH_TYPES:
            return None
        return UnsupportedVersionError(
            "the node in bootstrap.controllers is no controller of Kafka 3.7 or later (KIP-919)"
        )

    def build(self, items: Sequence[str], version: int) -> Request:
        """Ask for the controllers."""
        return DescribeClusterRequest(endpoint_type=CONTROLLERS)

    def read(
        self, answer: Any, items: Sequence[str], source: AnswerSource
    ) -> Iterator[tuple[str, Meaning[ClusterChanges]]]:
        """Return what the answer changes; a broker's is fatal."""
        if answer.error_code != ErrorCode.MISMATCHED_ENDPOINT_TYPE:
            yield from super().read(answer, items, source)
            return
        error = MismatchedEndpointType(
            f"{source.node} in bootstrap.controllers is a broker: bootstrap.servers has brokers"
        )
        for item in items:
            yield item, Refused(error)

    def _metadata_of(self, answer: DescribeClusterResponse) -> MetadataResponse:
        return MetadataResponse(
            error_code=answer.error_code,
            cluster_id=answer.cluster_id,
            controller_id=answer.controller_id,
            brokers=[
                MetadataResponseBroker(node_id=one.broker_id, host=one.host, port=one.port)
                for one in answer.brokers
            ],
            topics=[],
        )

    def handle_failed(self, item: str, error: KafkaError, now: float) -> None:
        """Do as for brokers; no node of another kind will ever be a controller."""
        super().handle_failed(item, error, now)
        if isinstance(error, MismatchedEndpointType):
            self._on_fatal(error)
