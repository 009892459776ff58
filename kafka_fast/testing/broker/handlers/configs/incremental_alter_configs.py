"""IncrementalAlterConfigs: single settings of topics change, those of one topic all or none."""

from __future__ import annotations

import enum
from collections.abc import Mapping

from kafka_fast.errors import BrokerError, InvalidConfig, InvalidRequest, UnknownTopicOrPartition
from kafka_fast.protocol.apis.configs.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from kafka_fast.testing.broker.acls import Operation
from kafka_fast.testing.broker.partitions.topic_settings import (
    TOPIC_SETTINGS,
    Kind,
    elements_of,
)
from kafka_fast.testing.broker.received_request import ReceivedRequest
from kafka_fast.testing.broker.registry import answers

_TOPIC = 2


class _Op(enum.IntEnum):
    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


@answers(IncrementalAlterConfigsRequest)
def answer(request: ReceivedRequest) -> IncrementalAlterConfigsResponse:
    """Return one result for each resource."""
    body: IncrementalAlterConfigsRequest = request.body
    return IncrementalAlterConfigsResponse(
        responses=[_alter(request, resource) for resource in body.resources]
    )


def _alter(request: ReceivedRequest, asked: AlterConfigsResource) -> AlterConfigsResourceResponse:
    name = asked.resource_name
    result = AlterConfigsResourceResponse(
        error_code=0, error_message=None, resource_type=asked.resource_type, resource_name=name
    )
    try:
        if asked.resource_type != _TOPIC:
            raise InvalidRequest(f"no settings of resources of type {asked.resource_type}")
        request.check_topic(Operation.ALTER_CONFIGS, name)
        planned = request.planned_error(name)
        if planned is not None and not planned.applied:
            result.error_code = planned.code
            return result
        topic = request.state.topics.get(name)
        if topic is None:
            raise UnknownTopicOrPartition("The topic does not exist.")
        defaults = request.state.settings.topic_config
        texts = _changed(topic.config.texts, asked.configs, defaults)
        request.state.set_topic_config(topic, texts, validate_only=request.body.validate_only)
    except BrokerError as error:
        result.error_code, result.error_message = error.code, str(error.args[0])
        return result
    if planned is not None:
        result.error_code = planned.code
    return result


def _changed(
    texts: Mapping[str, str], changes: list[AlterableConfig], defaults: Mapping[str, str | None]
) -> dict[str, str]:
    """Return the settings with the changes.

    Args:
        texts: the topic's.
        changes: in the order in which they are made.
        defaults: the cluster's own, over Kafka's.

    Raises:
        BrokerError: Kafka refuses one.
    """
    names = [change.name for change in changes]
    if len(set(names)) < len(names):
        raise InvalidRequest("Error due to duplicate config keys")
    changed = dict(texts)
    for change in changes:
        name, op = change.name, change.config_operation
        if op not in _Op.__members__.values():
            raise InvalidRequest(f"Unknown operation type {op} for the config {name}")
        if op != _Op.DELETE and change.value is None:
            raise InvalidRequest(f"Null value not supported for : {name}")
        setting = TOPIC_SETTINGS.get(name)
        if setting is None:
            raise InvalidConfig(f"Unknown topic config name: {name}")
        if op == _Op.SET:
            changed[name] = change.value or ""
        elif op == _Op.DELETE:
            changed[name] = defaults.get(name) or setting.default
        elif setting.kind is not Kind.LIST:
            raise InvalidConfig(f"Can't {_Op(op).name} to key {name} because its type is not LIST.")
        else:
            changed[name] = ",".join(_with(elements_of(changed[name]), change))
    return changed


def _with(elements: list[str], change: AlterableConfig) -> list[str]:
    named = elements_of(change.value or "")
    if change.config_operation == _Op.SUBTRACT:
        return [one for one in elements if one not in named]
    return [*elements, *(one for one in named if one not in elements)]
