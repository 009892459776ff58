"""DescribeProducers: which producers a partition knows, and their open transactions."""

from __future__ import annotations

from kafka_fast.errors import (
    BrokerError,
    NotLeaderOrFollower,
    UnknownTopicOrPartition,
)
from kafka_fast.protocol.apis.transactions.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)
from kafka_fast.testing.broker.acls import Operation
from kafka_fast.testing.broker.partitions.cluster_topics import Partition, check_topic_name
from kafka_fast.testing.broker.received_request import ReceivedRequest
from kafka_fast.testing.broker.registry import answers


@answers(DescribeProducersRequest)
def answer(request: ReceivedRequest) -> DescribeProducersResponse:
    """Describe the producers of partitions that the broker has a replica of."""
    body: DescribeProducersRequest = request.body
    return DescribeProducersResponse(
        topics=[
            TopicResponse(
                name=topic.name,
                partitions=[
                    _describe(request, topic.name, index) for index in topic.partition_indexes
                ],
            )
            for topic in body.topics
        ]
    )


def _describe(request: ReceivedRequest, topic: str, index: int) -> PartitionResponse:
    try:
        planned = request.planned_error(topic, index)
        if planned is not None:
            return PartitionResponse(partition_index=index, error_code=planned.code)
        check_topic_name(topic)
        request.check_topic(Operation.READ, topic)
        if topic not in request.state.topics:
            raise UnknownTopicOrPartition("This server does not host this topic-partition.")
        partition = request.state.partition(topic, index)
        if request.node_id not in partition.replicas:
            raise NotLeaderOrFollower(f"no replica of {topic}-{index} is here")
    except BrokerError as error:
        message = str(error.args[0])
        return PartitionResponse(
            partition_index=index, error_code=error.code, error_message=message
        )
    return PartitionResponse(partition_index=index, active_producers=_producers(partition))


def _producers(partition: Partition) -> list[ProducerState]:
    return [
        ProducerState(
            producer_id=one.producer_id,
            producer_epoch=one.epoch,
            last_sequence=one.last_sequence,
            last_timestamp=one.last_timestamp,
            coordinator_epoch=one.coordinator_epoch,
            current_txn_start_offset=partition.log.transactions.first_offset(one.producer_id),
        )
        for one in partition.producers
    ]
