"""Options by Spark's names."""

from __future__ import annotations

import logging

import pytest

from kafka_fast.errors import ConfigError, UsageError
from kafka_fast.spark.format_options import SPARKS_OWN
from kafka_fast.spark.source.options import source_options
from tests.unit.spark.source.fakes import options

LEAST = {"kafka.bootstrap.servers": "a:9092", "subscribe": "t"}


def test_defaults() -> None:
    settings = source_options(LEAST)
    assert settings.subscription.topics == ("t",)
    assert (settings.fail_on_data_loss, settings.headers) == (True, False)
    assert (settings.min_partitions, settings.max_records_per_partition) == (None, None)
    assert (settings.min_offsets, settings.max_offsets, settings.max_delay) == (None, None, 900.0)
    assert (settings.poll_timeout, settings.attempts, settings.attempt_interval) == (120.0, 3, 1.0)
    assert (settings.group, settings.initial_offsets_location) == (None, None)
    assert settings.allow_unsafe_latest is False
    assert settings.config.properties() == {
        "bootstrap.servers": "a:9092",
        "client.id": "spark-kafka-source",
    }


def test_names_have_no_case() -> None:
    settings = source_options(
        {
            "KAFKA.Bootstrap.Servers": "a:9092",
            "SUBSCRIBE": "t",
            "failOnDataLoss": "False",
            "includeheaders": "TRUE",
            "MinPartitions": " 7 ",
            "maxRecordsPerPartition": "8",
            "minOffsetsPerTrigger": "1",
            "maxOffsetsPerTrigger": "1",
            "maxTriggerDelay": "2 min",
            "kafkaConsumer.pollTimeoutMs": "512",
            "fetchOffset.numRetries": "5",
            "fetchOffset.retryIntervalMs": "10",
            "commitOffsetsToGroup": "g",
            "initialOffsetsLocation": "/x",
            "allowUnsafeLatest": "true",
            "groupIdPrefix": "mine",
        }
    )
    assert (settings.fail_on_data_loss, settings.headers) == (False, True)
    assert (settings.min_partitions, settings.max_records_per_partition) == (7, 8)
    assert (settings.min_offsets, settings.max_offsets, settings.max_delay) == (1, 1, 120.0)
    assert (settings.poll_timeout, settings.attempts, settings.attempt_interval) == (0.512, 5, 0.01)
    assert (settings.group, settings.initial_offsets_location) == ("g", "/x")
    assert settings.allow_unsafe_latest is True
    assert settings.config.properties()["client.id"] == "mine"


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("15m", 900), ("30s", 30), ("250", 0.25), ("250ms", 0.25), ("2H", 7200), ("1d", 86400)],
)
def test_times_have_sparks_units(text: str, seconds: float) -> None:
    assert options(maxTriggerDelay=text).max_delay == seconds


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"subscribe": ","}, "No topics to subscribe to"),
        ({"minPartitions": "0"}, "minPartitions must be positive"),
        ({"minPartitions": "many"}, "minPartitions must be a number, not 'many'"),
        ({"maxRecordsPerPartition": "-1"}, "maxRecordsPerPartition must be positive"),
        ({"failOnDataLoss": "no"}, "failOnDataLoss must be 'true' or 'false', not 'no'"),
        ({"maxTriggerDelay": "soon"}, "maxTriggerDelay must be a time such as"),
        ({"initialOffsetsLocation": " "}, "initialOffsetsLocation is empty"),
        (
            {"minOffsetsPerTrigger": "2", "maxOffsetsPerTrigger": "1"},
            r"minOffsetPerTrigger\(2\) is higher than the maxOffsetsPerTrigger\(1\)",
        ),
        ({"kafka.auto.offset.reset": "none"}, "'auto.offset.reset' is not supported. Instead"),
        ({"kafka.key.deserializer": "x"}, "keys are deserialized as byte arrays"),
        ({"kafka.value.deserializer": "x"}, "values are deserialized as byte arrays"),
        ({"kafka.enable.auto.commit": "true"}, "'enable.auto.commit' is not supported"),
        ({"kafka.interceptor.classes": "x"}, "'interceptor.classes' is not supported"),
    ],
)
def test_refusals(given: dict[str, str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        source_options({**LEAST, **given})


def test_brokers_are_required() -> None:
    with pytest.raises(UsageError, match=r"Option 'kafka\.bootstrap\.servers' must be specified"):
        source_options({"subscribe": "t"})


@pytest.mark.parametrize(
    ("name", "value"),
    [("kafka.fetch.min.bytess", "1"), ("kafka.fetch.min.bytes", "x"), ("kafka.metric.group", "x")],
)
def test_kafkas_properties_are_checked(name: str, value: str) -> None:
    with pytest.raises(ConfigError, match=name.removeprefix("kafka.")):
        source_options({**LEAST, name: value})


def test_a_misspelt_option_is_refused_before_what_it_leaves_out() -> None:
    with pytest.raises(UsageError) as raised:
        source_options({"kafka.bootstrap.servers": "a:1", "subscribes": "t"})
    assert str(raised.value) == "unknown option 'subscribes'; did you mean 'subscribe'?"


def test_options_of_a_sink_and_of_spark_mean_nothing(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "kafka_fast"):
        options(path="x", topic="t", dedupeHeaders="true", checkpointLocation="c", queryName="q")
        options(**dict.fromkeys(SPARKS_OWN, "x"))
    assert not caplog.records


def test_a_group_is_not_needed(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "kafka_fast"):
        settings = options(**{"kafka.group.id": "g"})
    assert "group.id" not in settings.config.properties()
    assert "kafka.group.id has no effect" in caplog.text
