"""An admin client of controllers (KIP-919), before scripted ones."""

from __future__ import annotations

from typing import Any

from kafka_fast.control.admin.operations.cluster import DescribeCluster
from kafka_fast.control.admin.operations.quorum import DescribeMetadataQuorum
from kafka_fast.control.admin.types.cluster import EndpointType
from kafka_fast.control.connections.connection_key import ConnectionKey
from kafka_fast.errors import (
    ErrorCode,
    KafkaError,
    MismatchedEndpointType,
    UnsupportedVersionError,
)
from kafka_fast.protocol.apis.cluster.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from kafka_fast.protocol.apis.cluster.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    DescribeQuorumResponsePartitionData,
    DescribeQuorumResponseTopicData,
)
from kafka_fast.protocol.apis.cluster.metadata import MetadataRequest
from tests.unit.control.admin.scripted_admin import AdminMachine


class Quorum:
    """Three controllers; the first of them is active."""

    def __init__(self) -> None:
        self.active = 1
        self.error = 0
        self.asked: list[int] = []
        handlers = {DescribeClusterRequest: self.describe, DescribeQuorumRequest: self.quorum}
        self.machine = AdminMachine(handlers, **{"bootstrap.controllers": "kafka:9093"})

    def describe(
        self, request: DescribeClusterRequest, key: ConnectionKey
    ) -> DescribeClusterResponse:
        assert request.endpoint_type == EndpointType.CONTROLLER
        return DescribeClusterResponse(
            error_code=self.error,
            endpoint_type=request.endpoint_type,
            cluster_id="c",
            controller_id=self.active,
            brokers=[
                DescribeClusterBroker(broker_id=node_id, host=f"c{node_id}", port=9093)
                for node_id in (1, 2, 3)
            ],
        )

    def quorum(self, request: DescribeQuorumRequest, key: ConnectionKey) -> DescribeQuorumResponse:
        self.asked.append(key.node_id)
        code = 0 if key.node_id == 2 else ErrorCode.NOT_LEADER_OR_FOLLOWER
        self.active = 2
        partition = DescribeQuorumResponsePartitionData(
            partition_index=0, leader_id=2, error_code=code
        )
        topic = DescribeQuorumResponseTopicData(
            topic_name="__cluster_metadata", partitions=[partition]
        )
        return DescribeQuorumResponse(topics=[topic])


def failure(quorum: Quorum) -> KafkaError:
    """Return why nothing can be asked."""
    ended, _ = quorum.machine.start(DescribeMetadataQuorum())
    quorum.machine.run(5.0)
    fatal = quorum.machine.control.fatal
    assert fatal is not None
    assert not ended
    again, _ = quorum.machine.start(DescribeMetadataQuorum())
    assert isinstance(again[0], type(fatal))
    return fatal


def test_controllers_are_described_and_no_broker_is_asked() -> None:
    quorum = Quorum()

    def metadata(request: Any, key: ConnectionKey) -> Any:
        raise AssertionError("controllers have no Metadata")

    quorum.machine.handlers[MetadataRequest] = metadata
    operation = DescribeCluster(
        include_authorized_operations=False,
        include_fenced_brokers=False,
        endpoint_type=EndpointType.CONTROLLER,
    )
    (described,) = quorum.machine.results(operation).values.values()
    assert described.endpoint_type is EndpointType.CONTROLLER
    assert (described.controller, [one.host for one in described.nodes]) == (1, ["c1", "c2", "c3"])
    assert [node.id for node in quorum.machine.control.cluster.nodes] == [1, 2, 3]


def test_the_active_one_is_asked_and_found_again() -> None:
    quorum = Quorum()
    assert not quorum.machine.results(DescribeMetadataQuorum()).errors
    assert (quorum.asked[0], quorum.asked[-1]) == (1, 2)


def test_a_broker_ends_the_client() -> None:
    quorum = Quorum()
    quorum.error = ErrorCode.MISMATCHED_ENDPOINT_TYPE
    error = failure(quorum)
    assert isinstance(error, MismatchedEndpointType)
    assert "is a broker: bootstrap.servers has brokers" in str(error)


def test_what_describes_brokers_only_ends_the_client() -> None:
    quorum = Quorum()
    quorum.machine.max_versions[DescribeClusterRequest.api_key] = 0
    error = failure(quorum)
    assert isinstance(error, UnsupportedVersionError)
    assert "no controller of Kafka 3.7 or later" in str(error)
