"""Settings: what is asked, of which broker, and what is made of the answers."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from kafka_fast.control.admin.operation import ONLY
from kafka_fast.control.admin.operations.configs import (
    AlterConfigs,
    DescribeConfigs,
    IncrementalAlterConfigs,
    ListConfigResources,
)
from kafka_fast.control.admin.types.configs import (
    AlterConfigOp,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigResourceType,
    ConfigSource,
    ConfigSynonym,
    ConfigType,
)
from kafka_fast.errors import (
    ErrorCode,
    KafkaTimeoutError,
    UnsupportedVersionError,
    UsageError,
)
from kafka_fast.protocol.apis.configs import (
    alter_configs,
    describe_configs,
    incremental_alter_configs,
    list_config_resources,
)
from kafka_fast.secret import Secret
from tests.unit.control.admin.operations.rounds import (
    ScriptedAdmin,
    all_versions_of,
    meanings,
    refusals,
    sent,
)

TOPIC = ConfigResource(ConfigResourceType.TOPIC, "orders")
BROKER = ConfigResource(ConfigResourceType.BROKER, "2")
LOGGER = ConfigResource(ConfigResourceType.BROKER_LOGGER, "1")
ALL_BROKERS = ConfigResource(ConfigResourceType.BROKER, "")
METRICS = ConfigResource(ConfigResourceType.CLIENT_METRICS, "m")


def describe(*resources: ConfigResource, **options: bool) -> DescribeConfigs:
    options = {"include_synonyms": False, "include_documentation": False, **options}
    return DescribeConfigs(resources, **options)


def alter(ops: dict[ConfigResource, list[AlterConfigOp]]) -> IncrementalAlterConfigs:
    return IncrementalAlterConfigs(ops, validate_only=False)


def result(resource: ConfigResource, code: int = 0, said: str | None = None) -> Any:
    return describe_configs.DescribeConfigsResult(
        error_code=code,
        error_message=said,
        resource_type=resource.type,
        resource_name=resource.name,
        configs=[],
    )


# ---- what is asked ----


@pytest.mark.parametrize("version", all_versions_of(DescribeConfigs))
def test_all_settings_are_asked_for(version: int) -> None:
    request = sent(describe(TOPIC, BROKER, TOPIC, include_synonyms=True), version)
    asked = [(one.resource_type, one.resource_name) for one in request.resources]
    assert asked == [(2, "orders"), (4, "2")]
    assert [one.configuration_keys for one in request.resources] == [None, None]
    assert request.include_synonyms


def test_documentation_needs_a_broker_that_has_some() -> None:
    operation = describe(TOPIC, include_documentation=True)
    error = operation.unsupported(TOPIC, 2)
    assert isinstance(error, UnsupportedVersionError)
    assert "since Kafka 2.6" in str(error)
    assert operation.unsupported(TOPIC, 3) is None
    assert sent(operation, 3).include_documentation
    assert describe(TOPIC).unsupported(TOPIC, 1) is None


@pytest.mark.parametrize("version", all_versions_of(IncrementalAlterConfigs))
def test_single_settings_are_changed(version: int) -> None:
    ops = [
        AlterConfigOp("retention.ms", "1000"),
        AlterConfigOp("segment.ms", op=AlterConfigOpType.DELETE),
        AlterConfigOp("cleanup.policy", "compact", AlterConfigOpType.APPEND),
        AlterConfigOp("ssl.keystore.password", Secret("hunter2"), AlterConfigOpType.SET),
    ]
    request = sent(IncrementalAlterConfigs({TOPIC: ops}, validate_only=True), version)
    (resource,) = request.resources
    assert (resource.resource_type, resource.resource_name) == (2, "orders")
    assert [(one.name, one.config_operation, one.value) for one in resource.configs] == [
        ("retention.ms", 0, "1000"),
        ("segment.ms", 1, None),
        ("cleanup.policy", 2, "compact"),
        ("ssl.keystore.password", 0, "hunter2"),
    ]
    assert request.validate_only


@pytest.mark.parametrize("version", all_versions_of(AlterConfigs))
def test_all_settings_are_replaced(version: int) -> None:
    settings: dict[str, str | Secret | None] = {
        "retention.ms": "1000",
        "ssl.keystore.password": Secret("hunter2"),
    }
    request = sent(AlterConfigs({TOPIC: settings}, validate_only=False), version)
    (resource,) = request.resources
    assert [(one.name, one.value) for one in resource.configs] == [
        ("retention.ms", "1000"),
        ("ssl.keystore.password", "hunter2"),
    ]
    assert not request.validate_only


def test_types_are_listed_where_brokers_know_them() -> None:
    types = [ConfigResourceType.TOPIC, ConfigResourceType.GROUP]
    assert sent(ListConfigResources(types), 1).resource_types == [2, 32]
    assert sent(ListConfigResources(()), 1).resource_types == []
    assert "older than Kafka 4.1" in str(ListConfigResources(()).unsupported(ONLY, 0))
    assert ListConfigResources(types).unsupported(ONLY, 1) is None
    old = ListConfigResources([ConfigResourceType.CLIENT_METRICS])
    assert old.unsupported(ONLY, 0) is None
    sent(old, 0)
    with pytest.raises(UsageError):
        ListConfigResources([ConfigResourceType.UNKNOWN])


@pytest.mark.parametrize(
    ("resource", "text"),
    [
        (ConfigResource(ConfigResourceType.BROKER, "one"), "is its id"),
        (ConfigResource(ConfigResourceType.BROKER, "-1"), "is its id"),
        (ConfigResource(ConfigResourceType.BROKER_LOGGER, ""), "is its id"),
        (ConfigResource(ConfigResourceType.UNKNOWN, "a"), "must be known"),
        (ConfigResource(2, "a"), "a ConfigResourceType and a text"),  # type: ignore[arg-type]
        (ConfigResource(ConfigResourceType.BROKER, 1), "and a text"),  # type: ignore[arg-type]
        ("orders", "not 'orders'"),
    ],
)
def test_what_is_no_resource_is_refused(resource: Any, text: str) -> None:
    with pytest.raises(UsageError, match=text):
        describe(resource)
    with pytest.raises(UsageError, match=text):
        alter({resource: []})
    with pytest.raises(UsageError, match=text):
        AlterConfigs({resource: {}}, validate_only=False)


def test_a_change_has_its_value() -> None:
    with pytest.raises(UsageError, match=r"topic 'orders': SET of 'a' needs a value"):
        alter({TOPIC: [AlterConfigOp("a")]})
    with pytest.raises(UsageError, match="DELETE of 'a' takes no value"):
        alter({TOPIC: [AlterConfigOp("a", "1", AlterConfigOpType.DELETE)]})
    with pytest.raises(UsageError, match="not tuple"):
        alter({TOPIC: [("a", "1")]})  # type: ignore[list-item]
    with pytest.raises(UsageError, match="topic 'orders': the value of 'a' is a text, not int"):
        alter({TOPIC: [AlterConfigOp("a", 4711)]})  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="the value of 'a' is a text, not int"):
        AlterConfigs({TOPIC: {"a": 4711}}, validate_only=False)  # type: ignore[dict-item]


def test_the_value_of_a_change_is_not_shown() -> None:
    op = AlterConfigOp("ssl.keystore.password", "hunter2")
    assert repr(op) == (
        "AlterConfigOp(name='ssl.keystore.password', value=****, op=<AlterConfigOpType.SET: 0>)"
    )
    assert pickle.loads(pickle.dumps(op)) == op
    assert "value=None" in repr(AlterConfigOp("a", op=AlterConfigOpType.DELETE))


# ---- what is made of answers ----


@pytest.mark.parametrize("version", all_versions_of(DescribeConfigs))
def test_settings_come_by_name(version: int) -> None:
    told = result(TOPIC)
    told.configs = [
        describe_configs.DescribeConfigsResourceResult(
            name="retention.ms",
            value="1000",
            config_source=1,
            synonyms=[
                describe_configs.DescribeConfigsSynonym(
                    name="log.retention.ms", value="7", source=4
                )
            ],
            config_type=5,
            documentation="for how long",
        ),
        describe_configs.DescribeConfigsResourceResult(
            name="key", value="hunter2", config_source=99, is_sensitive=True, read_only=True
        ),
    ]
    answer = describe_configs.DescribeConfigsResponse(results=[told])
    entries = meanings(describe(TOPIC), answer, version)[TOPIC]
    has_types = version >= 3
    assert entries["retention.ms"] == ConfigEntry(
        "retention.ms",
        "1000",
        ConfigSource.DYNAMIC_TOPIC_CONFIG,
        False,
        False,
        (ConfigSynonym("log.retention.ms", "7", ConfigSource.STATIC_BROKER_CONFIG),),
        ConfigType.LONG if has_types else ConfigType.UNKNOWN,
        "for how long" if has_types else None,
    )
    key = entries["key"]
    assert (key.value, key.source, key.is_read_only) == (None, ConfigSource.UNKNOWN, True)
    assert not key.is_default
    assert pickle.loads(pickle.dumps(entries)) == entries


def test_each_resource_has_its_own_error() -> None:
    broker_said = "Unexpected broker id"
    answer = describe_configs.DescribeConfigsResponse(
        results=[
            result(TOPIC, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
            result(BROKER, ErrorCode.INVALID_REQUEST, broker_said),
            result(METRICS, ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
            result(ConfigResource(ConfigResourceType.TOPIC, "not asked for")),
        ]
    )
    texts = refusals(describe(TOPIC, BROKER, METRICS), answer, 4)
    assert texts[TOPIC].endswith("DescribeConfigs of topic 'orders': there is no such topic")
    assert texts[BROKER].endswith(f"DescribeConfigs of broker '2': {broker_said}")
    assert "needs DESCRIBE_CONFIGS on the topic or group, or else on the cluster" in texts[METRICS]


def test_brokers_may_not_know_the_type_that_they_answer_about() -> None:
    """Kafka 2.1 answers so about loggers."""
    code = ErrorCode.INVALID_REQUEST
    mine = ConfigResource(ConfigResourceType.BROKER, "1")
    unknown = ConfigResource(ConfigResourceType.UNKNOWN, "1")
    answer = describe_configs.DescribeConfigsResponse(
        results=[result(mine), result(unknown, code, "no such type")]
    )
    outcome = meanings(describe(mine, LOGGER), answer, 2)
    assert outcome[mine] == {}
    assert "of broker logger '1': no such type" in str(outcome[LOGGER].error)
    assert meanings(describe(TOPIC), answer, 2).keys() == {mine, unknown}


def test_changes_are_answered_by_resource() -> None:
    module: Any
    for module, operation in (
        (incremental_alter_configs, alter({TOPIC: [AlterConfigOp("a", "1")], ALL_BROKERS: []})),
        (alter_configs, AlterConfigs({TOPIC: {}, ALL_BROKERS: {}}, validate_only=False)),
    ):
        one = module.AlterConfigsResourceResponse
        response: Any = operation.response_class
        answer = response(
            responses=[
                one(
                    error_code=ErrorCode.INVALID_CONFIG,
                    error_message="Unknown topic config name: a",
                    resource_type=2,
                    resource_name="orders",
                ),
                one(resource_type=4, resource_name=""),
            ]
        )
        outcome = meanings(operation, answer, 1)
        assert outcome[ALL_BROKERS] is None
        assert "of topic 'orders': Unknown topic config name: a" in str(outcome[TOPIC].error)


def test_resources_are_listed_in_order() -> None:
    listed = list_config_resources.ConfigResource
    answer = list_config_resources.ListConfigResourcesResponse(
        config_resources=[
            listed(resource_name="b", resource_type=32),
            listed(resource_name="z", resource_type=2),
            listed(resource_name="a", resource_type=32),
            listed(resource_name="odd", resource_type=77),
        ]
    )
    resources = meanings(ListConfigResources(()), answer, 1)[ONLY]
    assert [(one.type.name, one.name) for one in resources] == [
        ("UNKNOWN", "odd"),
        ("TOPIC", "z"),
        ("GROUP", "a"),
        ("GROUP", "b"),
    ]
    old = list_config_resources.ListConfigResourcesResponse(
        config_resources=[listed(resource_name="m")]
    )
    types = [ConfigResourceType.CLIENT_METRICS]
    assert meanings(ListConfigResources(types), old, 0)[ONLY] == [METRICS]
    refused = list_config_resources.ListConfigResourcesResponse(
        error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    )
    assert "needs DESCRIBE_CONFIGS" in refusals(ListConfigResources(()), refused, 1)[ONLY]


# ---- where requests go ----


def test_many_resources_are_asked_about_in_pieces() -> None:
    admin = ScriptedAdmin({describe_configs.DescribeConfigsRequest: answered})
    topics = [ConfigResource(ConfigResourceType.TOPIC, f"t{number}") for number in range(250)]
    assert len(admin.run(describe(*topics)).values) == 250
    sizes = [
        len(request.resources)
        for request, _ in admin.machine.asked
        if isinstance(request, describe_configs.DescribeConfigsRequest)
    ]
    assert sizes == [100, 100, 50]


def answered(request: Any, key: Any) -> Any:
    return describe_configs.DescribeConfigsResponse(
        results=[
            describe_configs.DescribeConfigsResult(
                resource_type=one.resource_type, resource_name=one.resource_name
            )
            for one in request.resources
        ]
    )


def asked_by_node(admin: ScriptedAdmin) -> dict[int, list[str]]:
    return {
        key.node_id: [one.resource_name for one in request.resources]
        for request, key in admin.machine.asked
        if isinstance(request, describe_configs.DescribeConfigsRequest)
    }


def test_what_is_of_one_broker_is_asked_there() -> None:
    admin = ScriptedAdmin({describe_configs.DescribeConfigsRequest: answered})
    results = admin.run(describe(TOPIC, BROKER, LOGGER, ALL_BROKERS))
    assert dict(results.errors) == {}
    assert list(results.keys) == [TOPIC, BROKER, LOGGER, ALL_BROKERS]
    assert asked_by_node(admin) == {1: ["1"], 2: ["2"], 3: ["orders", ""]}


def test_any_broker_answers_for_all_else() -> None:
    admin = ScriptedAdmin({describe_configs.DescribeConfigsRequest: answered})
    results = admin.run(describe(TOPIC, ALL_BROKERS, METRICS))
    assert dict(results.errors) == {}
    assert list(asked_by_node(admin).values()) == [["orders", "", "m"]]


def test_a_broker_that_is_not_there_is_named() -> None:
    admin = ScriptedAdmin({describe_configs.DescribeConfigsRequest: answered})
    nobody = ConfigResource(ConfigResourceType.BROKER, "9")
    results = admin.run(describe(nobody, TOPIC))
    assert list(results.values) == [TOPIC]
    error = results.errors[nobody]
    assert isinstance(error, KafkaTimeoutError)
    assert "broker '9'" in str(error)
    assert "the metadata name no broker 9" in str(error)
