"""Settings by the admin client, on real Kafka."""

from __future__ import annotations

import uuid

import pytest

from kafka_fast import Admin
from kafka_fast.admin import (
    AlterConfigOp,
    AlterConfigOpType,
    ConfigResource,
    ConfigResourceType,
    ConfigSource,
    ConfigType,
    NewTopic,
)
from kafka_fast.errors import InvalidConfig, InvalidRequest, UnknownTopicOrPartition
from kafka_fast.testing._kafka.real_kafka import RealKafka
from tests.integration.admin.admin_clients import admin
from tests.waiting import eventually

__all__ = ["admin"]

pytestmark = pytest.mark.broker

DEFAULT = ConfigResource(ConfigResourceType.BROKER, "")
BROKER = ConfigResource(ConfigResourceType.BROKER, "1")
LOGGER = ConfigResource(ConfigResourceType.BROKER_LOGGER, "1")
DELETE, APPEND, SUBTRACT = (
    AlterConfigOpType.DELETE,
    AlterConfigOpType.APPEND,
    AlterConfigOpType.SUBTRACT,
)


@pytest.fixture
def topic(admin: Admin) -> ConfigResource:
    name = f"admin-configs-{uuid.uuid4().hex}"
    admin.create_topics([NewTopic(name, 1, 1, configs={"retention.ms": "1000"})]).raise_first()
    return ConfigResource(ConfigResourceType.TOPIC, name)


def value(admin: Admin, resource: ConfigResource, name: str) -> str | None:
    return admin.describe_configs([resource])[resource][name].value


@pytest.mark.needs_kafka("2.6", "types and documentation (KIP-569)")
def test_settings_are_described(admin: Admin, topic: ConfigResource) -> None:
    result = admin.describe_configs(
        [topic, BROKER, LOGGER, DEFAULT], include_synonyms=True, include_documentation=True
    )
    retention = result[topic]["retention.ms"]
    assert (retention.value, retention.source) == ("1000", ConfigSource.DYNAMIC_TOPIC_CONFIG)
    assert retention.type == ConfigType.LONG
    assert retention.synonyms[0].value == "1000"
    assert retention.documentation is not None
    assert retention.documentation.startswith("This configuration")
    assert result[topic]["segment.bytes"].is_default
    broker_id = result[BROKER]["broker.id"]
    assert (broker_id.value, broker_id.is_read_only) == ("1", True)
    secret = result[BROKER]["ssl.keystore.password"]
    assert (secret.is_sensitive, secret.value) == (True, None)
    assert result[LOGGER]["root"].source == ConfigSource.DYNAMIC_BROKER_LOGGER_CONFIG
    assert result.errors == {}
    plain = admin.describe_configs([topic])[topic]["retention.ms"]
    assert (plain.synonyms, plain.documentation) == ((), None)


def test_what_cannot_be_described_says_why(admin: Admin, topic: ConfigResource) -> None:
    nowhere = ConfigResource(ConfigResourceType.TOPIC, "nowhere")
    result = admin.describe_configs([nowhere, topic])
    assert isinstance(result.errors[nowhere], UnknownTopicOrPartition)
    assert list(result.succeeded) == [topic]


@pytest.mark.needs_kafka("2.3", "changes of single settings (KIP-339)")
def test_single_settings_change_and_others_stay(admin: Admin, topic: ConfigResource) -> None:
    ops = [
        AlterConfigOp("segment.ms", "7000"),
        AlterConfigOp("cleanup.policy", "compact", APPEND),
    ]
    assert admin.incremental_alter_configs({topic: ops}, validate_only=True)[topic] is None
    assert value(admin, topic, "segment.ms") != "7000"
    admin.incremental_alter_configs({topic: ops}).raise_first()
    eventually(lambda: value(admin, topic, "segment.ms") == "7000")
    policy = value(admin, topic, "cleanup.policy")
    assert policy is not None
    assert set(policy.split(",")) == {"delete", "compact"}
    assert value(admin, topic, "retention.ms") == "1000"
    ops = [
        AlterConfigOp("segment.ms", op=DELETE),
        AlterConfigOp("cleanup.policy", "delete", SUBTRACT),
    ]
    admin.incremental_alter_configs({topic: ops}).raise_first()
    eventually(lambda: value(admin, topic, "cleanup.policy") == "compact")
    assert value(admin, topic, "segment.ms") == "604800000"


@pytest.mark.needs_kafka("2.3", "changes of single settings (KIP-339)")
def test_each_resource_is_refused_by_itself(admin: Admin, topic: ConfigResource) -> None:
    nowhere = ConfigResource(ConfigResourceType.TOPIC, "nowhere")
    result = admin.incremental_alter_configs(
        {
            topic: [AlterConfigOp("no.such.setting", "1")],
            nowhere: [AlterConfigOp("retention.ms", "1")],
            BROKER: [AlterConfigOp("broker.id", "7")],
        }
    )
    assert isinstance(result.errors[topic], InvalidConfig)
    assert isinstance(result.errors[nowhere], UnknownTopicOrPartition)
    assert isinstance(result.errors[BROKER], InvalidRequest)


@pytest.mark.needs_kafka("2.3", "changes of single settings (KIP-339)")
def test_brokers_and_their_loggers_change(admin: Admin) -> None:
    name = "log.cleaner.backoff.ms"
    loggers = sorted(admin.describe_configs([LOGGER])[LOGGER])
    logger = next(one for one in loggers if one.startswith("org.apache.kafka"))
    admin.incremental_alter_configs(
        {
            DEFAULT: [AlterConfigOp(name, "15001")],
            BROKER: [AlterConfigOp(name, "15002")],
            LOGGER: [AlterConfigOp(logger, "WARN")],
        }
    ).raise_first()
    try:
        eventually(lambda: value(admin, BROKER, name) == "15002")
        entry = admin.describe_configs([BROKER], include_synonyms=True)[BROKER][name]
        assert entry.source == ConfigSource.DYNAMIC_BROKER_CONFIG
        assert [one.value for one in entry.synonyms][:2] == ["15002", "15001"]
        assert value(admin, DEFAULT, name) == "15001"
        assert value(admin, LOGGER, logger) == "WARN"
    finally:
        changes = {
            resource: [AlterConfigOp(setting, op=DELETE)]
            for resource, setting in ((DEFAULT, name), (BROKER, name), (LOGGER, logger))
        }
        admin.incremental_alter_configs(changes).raise_first()
    eventually(lambda: value(admin, BROKER, name) == "15000")


def test_all_settings_are_replaced(admin: Admin, topic: ConfigResource) -> None:
    admin.alter_configs({topic: {"segment.ms": "7000"}}).raise_first()
    eventually(lambda: value(admin, topic, "segment.ms") == "7000")
    assert admin.describe_configs([topic])[topic]["retention.ms"].source in (
        ConfigSource.STATIC_BROKER_CONFIG,
        ConfigSource.DEFAULT_CONFIG,
    )


@pytest.mark.needs_kafka("4.1", "a list of all resources (KIP-1142)")
def test_what_has_settings_is_listed(admin: Admin, topic: ConfigResource) -> None:
    metrics = ConfigResource(ConfigResourceType.CLIENT_METRICS, f"m-{uuid.uuid4().hex}")
    group = ConfigResource(ConfigResourceType.GROUP, f"g-{uuid.uuid4().hex}")
    admin.incremental_alter_configs(
        {
            metrics: [AlterConfigOp("interval.ms", "60000")],
            group: [AlterConfigOp("consumer.session.timeout.ms", "50000")],
        }
    ).raise_first()
    eventually(lambda: {metrics, group, topic, BROKER} <= {*admin.list_config_resources()})
    types = [ConfigResourceType.CLIENT_METRICS]
    assert metrics in admin.list_config_resources(types)
    assert {one.type for one in admin.list_config_resources(types)} == {*types}
    assert value(admin, group, "consumer.session.timeout.ms") == "50000"
    entry = admin.describe_configs([metrics])[metrics]["interval.ms"]
    assert entry.source == ConfigSource.DYNAMIC_CLIENT_METRICS_CONFIG


@pytest.mark.needs_kafka("2.3", "changes of single settings (KIP-339)")
def test_each_broker_answers_for_itself(real_kafka_cluster: RealKafka) -> None:
    brokers = [ConfigResource(ConfigResourceType.BROKER, str(number)) for number in (1, 2, 3)]
    loggers = [ConfigResource(ConfigResourceType.BROKER_LOGGER, one.name) for one in brokers]
    nobody = ConfigResource(ConfigResourceType.BROKER, "9")
    with Admin(bootstrap_servers=real_kafka_cluster.bootstrap) as admin:
        result = admin.describe_configs([*brokers, *loggers, DEFAULT])
        assert [result[one]["broker.id"].value for one in brokers] == ["1", "2", "3"]
        assert all("root" in result[one] for one in loggers)
        ops = [AlterConfigOp("log.cleaner.backoff.ms", "15003")]
        admin.incremental_alter_configs(dict.fromkeys(brokers, ops)).raise_first()
        eventually(lambda: {value(admin, one, ops[0].name) for one in brokers} == {"15003"})
        undone = [AlterConfigOp(ops[0].name, op=DELETE)]
        admin.incremental_alter_configs(dict.fromkeys(brokers, undone)).raise_first()
        error = admin.describe_configs([nobody], timeout=1.0).errors[nobody]
        assert "the metadata name no broker 9" in str(error)
