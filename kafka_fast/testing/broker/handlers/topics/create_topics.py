"""CreateTopics: each topic by itself; `validate_only` stops before anything is made."""

from __future__ import annotations

from collections import Counter

from kafka_fast.errors import (
    BrokerError,
    InvalidReplicaAssignment,
    InvalidRequest,
    TopicAuthorizationFailed,
)
from kafka_fast.protocol.apis.topics.create_topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from kafka_fast.testing.broker.acls import CLUSTER_NAME, Operation, ResourceType
from kafka_fast.testing.broker.partitions.cluster_topics import Topic
from kafka_fast.testing.broker.partitions.topic_settings import config_source
from kafka_fast.testing.broker.received_request import ReceivedRequest
from kafka_fast.testing.broker.registry import answers

_UNSET = -1


@answers(CreateTopicsRequest)
def answer(request: ReceivedRequest) -> CreateTopicsResponse:
    """Return one result for each name."""
    body: CreateTopicsRequest = request.body
    named = Counter(topic.name for topic in body.topics)
    results = [_create(request, topic) for topic in body.topics if named[topic.name] == 1]
    results += [
        _refused(name, InvalidRequest(f"{name!r} is named {count} times"))
        for name, count in named.items()
        if count > 1
    ]
    return CreateTopicsResponse(topics=results)


def _create(request: ReceivedRequest, new_topic: CreatableTopic) -> CreatableTopicResult:
    planned = request.planned_error(new_topic.name)
    if planned is not None and not planned.applied:
        return CreatableTopicResult(name=new_topic.name, error_code=planned.code)
    try:
        if not request.allows(Operation.CREATE, ResourceType.CLUSTER, CLUSTER_NAME):
            request.check_topic(Operation.CREATE, new_topic.name)
        topic = _plan(request, new_topic)
    except BrokerError as error:
        return _refused(new_topic.name, error)
    if not request.body.validate_only:
        request.state.add_topic(topic)
    if planned is not None:
        return CreatableTopicResult(name=new_topic.name, error_code=planned.code)
    if not request.allows(Operation.DESCRIBE_CONFIGS, ResourceType.TOPIC, topic.name):
        return CreatableTopicResult(
            name=topic.name,
            topic_id=topic.topic_id,
            error_code=0,
            topic_config_error_code=TopicAuthorizationFailed.code,
        )
    return CreatableTopicResult(
        name=topic.name,
        topic_id=topic.topic_id,
        error_code=0,
        num_partitions=len(topic.partitions),
        replication_factor=len(topic.partitions[0].replicas),
        configs=_configs(topic),
    )


def _plan(request: ReceivedRequest, new_topic: CreatableTopic) -> Topic:
    assignment = {one.partition_index: one.broker_ids for one in new_topic.assignments}
    if len(assignment) != len(new_topic.assignments):
        raise InvalidReplicaAssignment("a partition is assigned twice")
    if assignment and (
        new_topic.num_partitions != _UNSET or new_topic.replication_factor != _UNSET
    ):
        raise InvalidRequest("counts and an assignment exclude each other")
    config = {one.name: one.value for one in new_topic.configs}
    return request.state.plan_topic(
        new_topic.name, new_topic.num_partitions, new_topic.replication_factor, assignment, config
    )


def _configs(topic: Topic) -> list[CreatableTopicConfigs]:
    return [
        CreatableTopicConfigs(
            name=name,
            value=value,
            read_only=False,
            config_source=config_source(name, value),
            is_sensitive=False,
        )
        for name, value in sorted(topic.config.texts.items())
    ]


def _refused(name: str, error: BrokerError) -> CreatableTopicResult:
    message = str(error.args[0]) if error.args and error.args[0] else None
    return CreatableTopicResult(name=name, error_code=error.code, error_message=message)
