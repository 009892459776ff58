"""DescribeConfigs: the settings of topics. Brokers have none that anybody could set here."""

from __future__ import annotations

from kafka_fast.errors import (
    BrokerError,
    ClusterAuthorizationFailed,
    InvalidRequest,
    UnknownTopicOrPartition,
    broker_error,
)
from kafka_fast.protocol.apis.configs.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from kafka_fast.testing.broker.acls import CLUSTER_NAME, Operation, ResourceType
from kafka_fast.testing.broker.partitions.cluster_topics import check_topic_name
from kafka_fast.testing.broker.partitions.topic_settings import TOPIC_SETTINGS, config_source
from kafka_fast.testing.broker.received_request import ReceivedRequest
from kafka_fast.testing.broker.registry import answers

_TOPIC, _BROKER = 2, 4


@answers(DescribeConfigsRequest)
def answer(request: ReceivedRequest) -> DescribeConfigsResponse:
    """Return the settings of each resource, or those of them that were asked for."""
    body: DescribeConfigsRequest = request.body
    return DescribeConfigsResponse(results=[_result(request, one) for one in body.resources])


def _result(request: ReceivedRequest, asked: DescribeConfigsResource) -> DescribeConfigsResult:
    result = DescribeConfigsResult(
        resource_type=asked.resource_type, resource_name=asked.resource_name
    )
    try:
        settings = _settings(request, asked)
    except BrokerError as error:
        result.error_code, result.error_message = error.code, error.args[0]
        return result
    keys = asked.configuration_keys
    result.configs = [
        DescribeConfigsResourceResult(
            name=name,
            value=value,
            config_source=config_source(name, value),
            config_type=TOPIC_SETTINGS[name].kind,
            documentation=None,
        )
        for name, value in settings.items()
        if keys is None or name in keys
    ]
    return result


def _settings(request: ReceivedRequest, asked: DescribeConfigsResource) -> dict[str, str]:
    """Return what a resource is set to.

    Raises:
        BrokerError: there is no such resource, or a fault was planned for it.
    """
    if asked.resource_type == _BROKER:
        if not request.allows(Operation.DESCRIBE_CONFIGS, ResourceType.CLUSTER, CLUSTER_NAME):
            raise ClusterAuthorizationFailed("Cluster authorization failed.")
        return {}
    if asked.resource_type != _TOPIC:
        raise InvalidRequest(f"no settings of resources of type {asked.resource_type}")
    request.check_topic(Operation.DESCRIBE_CONFIGS, asked.resource_name)
    planned = request.planned_error(asked.resource_name)
    if planned is not None:
        raise broker_error(planned.code)
    topic = request.state.topics.get(asked.resource_name)
    if topic is None:
        check_topic_name(asked.resource_name)
        raise UnknownTopicOrPartition(f"no topic {asked.resource_name!r}")
    return dict(topic.config.texts)
