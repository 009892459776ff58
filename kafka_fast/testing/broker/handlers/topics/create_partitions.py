"""CreatePartitions: topics get more partitions, each topic by itself."""

from __future__ import annotations

from collections import Counter

from kafka_fast.errors import BrokerError, InvalidReplicaAssignment, InvalidRequest
from kafka_fast.protocol.apis.topics.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)
from kafka_fast.testing.broker.acls import Operation
from kafka_fast.testing.broker.received_request import ReceivedRequest
from kafka_fast.testing.broker.registry import answers


@answers(CreatePartitionsRequest)
def answer(request: ReceivedRequest) -> CreatePartitionsResponse:
    """Return one result for each topic."""
    body: CreatePartitionsRequest = request.body
    named = Counter(topic.name for topic in body.topics)
    topics = {topic.name: topic for topic in body.topics}
    return CreatePartitionsResponse(
        results=[_add(request, topic, twice=named[name] > 1) for name, topic in topics.items()]
    )


def _add(
    request: ReceivedRequest, asked: CreatePartitionsTopic, *, twice: bool
) -> CreatePartitionsTopicResult:
    planned = request.planned_error(asked.name)
    if planned is not None and not planned.applied:
        return CreatePartitionsTopicResult(name=asked.name, error_code=planned.code)
    try:
        if twice:
            raise InvalidRequest("Duplicate topic name.")
        request.check_topic(Operation.ALTER, asked.name)
        replicas = request.state.plan_partitions(asked.name, asked.count, _assignments(asked))
    except BrokerError as error:
        message = str(error.args[0])
        return CreatePartitionsTopicResult(
            name=asked.name, error_code=error.code, error_message=message
        )
    if not request.body.validate_only:
        request.state.add_planned_partitions(asked.name, replicas)
    code = planned.code if planned is not None else 0
    return CreatePartitionsTopicResult(name=asked.name, error_code=code)


def _assignments(asked: CreatePartitionsTopic) -> list[list[int]] | None:
    """Return the nodes of each new partition, None: the cluster chooses."""
    if asked.assignments is None:
        return None
    assignments = [one.broker_ids for one in asked.assignments]
    if not assignments:
        raise InvalidReplicaAssignment("an assignment of no partitions")
    return assignments
