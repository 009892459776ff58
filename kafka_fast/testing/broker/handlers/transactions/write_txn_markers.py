"""WriteTxnMarkers: the ends of transactions, from a coordinator or an administrator (KIP-664)."""

from __future__ import annotations

from kafka_fast.errors import (
    BrokerError,
    ClusterAuthorizationFailed,
    NotLeaderOrFollower,
    UnknownServerError,
)
from kafka_fast.protocol.apis.transactions.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from kafka_fast.testing.broker.acls import CLUSTER_NAME, Operation, ResourceType
from kafka_fast.testing.broker.groups.settings import OFFSETS_TOPIC
from kafka_fast.testing.broker.partitions.markers import Marker, write_marker
from kafka_fast.testing.broker.received_request import ReceivedRequest
from kafka_fast.testing.broker.registry import answers
from kafka_fast.testing.broker.transactions.offsets import end_offsets

_VERSION_FROM_VERSION = 2  # before, the request does not say which version of transactions
_REFUSED = (Operation.ALTER, Operation.CLUSTER_ACTION)


@answers(WriteTxnMarkersRequest)
def answer(request: ReceivedRequest) -> WriteTxnMarkersResponse:
    """Write each marker into each of its partitions."""
    body: WriteTxnMarkersRequest = request.body
    allowed = any(
        request.allows(operation, ResourceType.CLUSTER, CLUSTER_NAME) for operation in _REFUSED
    )
    return WriteTxnMarkersResponse(
        markers=[
            WritableTxnMarkerResult(
                producer_id=marker.producer_id,
                topics=[
                    WritableTxnMarkerTopicResult(
                        name=topic.name,
                        partitions=[
                            WritableTxnMarkerPartitionResult(
                                partition_index=index,
                                error_code=_write(request, marker, topic.name, index)
                                if allowed
                                else ClusterAuthorizationFailed.code,
                            )
                            for index in topic.partition_indexes
                        ],
                    )
                    for topic in marker.topics
                ],
            )
            for marker in body.markers
        ]
    )


def _write(request: ReceivedRequest, marker: WritableTxnMarker, topic: str, index: int) -> int:
    """Write a marker into one partition; return the error code."""
    planned = request.planned_error(topic, index)
    if planned is not None and not planned.applied:
        return planned.code
    try:
        partition = request.state.partition(topic, index)
        if partition.leader != request.node_id:
            raise NotLeaderOrFollower(f"node {partition.leader} leads {topic}-{index}")
        if marker.producer_id < 0 or marker.producer_epoch < 0:
            raise UnknownServerError("Kafka did not expect a marker of nobody")
        end = Marker(
            marker.producer_id,
            marker.producer_epoch,
            marker.transaction_result,
            marker.coordinator_epoch,
            marker.transaction_version if request.version >= _VERSION_FROM_VERSION else 0,
        )
        if topic == OFFSETS_TOPIC:
            end_offsets(request.state, partition, end, request.now)
        else:
            write_marker(partition, end, request.state.unix_ms(request.now))
    except BrokerError as error:
        return error.code
    request.state.changes += 1
    return 0 if planned is None else planned.code
