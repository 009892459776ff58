"""The sink's options by Spark's names."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from kafka_fast.config import producer_settings
from kafka_fast.errors import ConfigError, UsageError
from kafka_fast.spark.sink.options import SinkOptions, sink_options

LEAST = {"kafka.bootstrap.servers": "a:9092"}


def options(*, stream: bool = False, **given: Any) -> SinkOptions:
    return sink_options({**LEAST, **given}, stream=stream)


def test_defaults() -> None:
    settings = options()
    assert (settings.topic, settings.dedupe_headers, settings.job_id) == (None, False, None)
    assert settings.config.properties() == {"bootstrap.servers": "a:9092"}


def test_names_have_no_case() -> None:
    settings = options(TOPIC="t", dedupeheaders="TRUE", JobId="7", **{"Kafka.Linger.Ms": "50"})
    assert (settings.topic, settings.dedupe_headers, settings.job_id) == ("t", True, "7")
    assert producer_settings(settings.config.properties()).linger == 0.05


@pytest.mark.parametrize(
    ("given", "stream", "said"),
    [
        ({"topic": " "}, False, "topic is empty"),
        ({"dedupeHeaders": "1"}, False, "dedupeHeaders must be 'true' or 'false', not '1'"),
        ({"jobId": "1"}, False, "set dedupeHeaders to 'true'"),
        ({"jobId": "1", "dedupeHeaders": "true"}, True, "jobId is for batches"),
        ({"kafka.key.serializer": "x"}, False, "'key.serializer' is not supported as keys are"),
        ({"kafka.value.serializer": "x"}, True, "'value.serializer' is not supported as value"),
    ],
)
def test_refusals(given: dict[str, str], stream: bool, said: str) -> None:
    with pytest.raises(UsageError) as raised:
        options(stream=stream, **given)
    assert said in str(raised.value)


def test_brokers_are_required() -> None:
    with pytest.raises(UsageError, match=r"'kafka\.bootstrap\.servers' must be specified"):
        sink_options({"topic": "t"}, stream=False)


@pytest.mark.parametrize(
    "name", ["lingerms", "linger.ms", "partitioner.class", "interceptor.classes"]
)
def test_kafkas_properties_are_checked(name: str) -> None:
    with pytest.raises(ConfigError, match=name):
        options(**{f"kafka.{name}": "org.example.Mine"})


def test_what_spark_adds_is_known(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "kafka_fast"):
        options(stream=True, path="x", checkpointLocation="/c", queryName="q")
    assert not caplog.records


def test_a_misspelt_option_is_refused() -> None:
    with pytest.raises(UsageError) as raised:
        options(topicc="t")
    assert str(raised.value) == "unknown option 'topicc'; did you mean 'topic'?"


def test_options_of_a_source_mean_nothing(caplog: pytest.LogCaptureFixture) -> None:
    """A mapping that both sides share: includeHeaders is like dedupeHeaders."""
    with caplog.at_level(logging.WARNING, "kafka_fast"):
        options(subscribe="t", includeHeaders="true", startingOffsets="earliest")
    assert not caplog.records
