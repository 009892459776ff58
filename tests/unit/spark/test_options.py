"""What a write may be asked for; mistakes show on the driver."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from kafka_fast.errors import ConfigError, UsageError
from kafka_fast.spark import write_partition
from kafka_fast.spark.options import TaskOptions, freeze, task_options

CONFIG = {"bootstrap.servers": "a:1"}


def test_the_order_of_properties_does_not_matter() -> None:
    one = freeze({"acks": "all", "bootstrap.servers": ["a:1", "b:2"]})
    assert one == freeze({"bootstrap.servers": "a:1,b:2", "acks": "all"})
    assert hash(one) == hash(one)


def test_options_survive_as_a_plain_tuple() -> None:
    options = task_options(CONFIG, "t", on_error="report")
    assert TaskOptions(*pickle.loads(pickle.dumps(tuple(options)))) == options


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({}, "bootstrap.servers is required"),
        ({**CONFIG, "lingr.ms": 5}, "linger.ms"),
        ({**CONFIG, "value.serializer": len}, "value.serializer must be a plain value"),
    ],
)
def test_a_wrong_configuration(config: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError) as raised:
        write_partition(config, "t")
    assert said in str(raised.value)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"topic": "t", "on_error": "ignore"}, "on_error must be 'raise' or 'report'"),
        ({"topic": "t", "chunk_records": 0}, "chunk_records must be at least 1"),
    ],
)
def test_wrong_arguments(arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError) as raised:
        write_partition(CONFIG, **arguments)
    assert said in str(raised.value)


DF, RDD = "write_df(df, {config}, {topic})", "write_rdd(rdd, {config}, {topic})"


@pytest.mark.parametrize(
    ("config", "topic", "call", "said"),
    [
        (
            "events",
            CONFIG,
            DF,
            "the configuration comes before the topic: write_df(df, config, 'events')",
        ),
        (None, CONFIG, RDD, "comes before the topic: write_rdd(rdd, config, topic)"),
        (
            "b1:9092,b2:9092",
            "events",
            DF,
            (
                "is a mapping of properties, not 'b1:9092,b2:9092': "
                "write_df(df, {'bootstrap.servers': 'b1:9092,b2:9092'}, 'events')"
            ),
        ),
        ("b1:9092", None, DF, "write_df(df, {'bootstrap.servers': 'b1:9092'}, topic)"),
        (
            "events",
            None,
            DF,
            "not 'events': write_df(df, {'bootstrap.servers': 'localhost:9092'}, 'events')",
        ),
        ("config", "topic", DF, "write_df(df, {'bootstrap.servers': 'localhost:9092'}, 'topic')"),
        ([("acks", 1)], "t", RDD, "not [('acks', 1)]: write_rdd(rdd, "),
        (["x" * 100], "t", RDD, "is a mapping of properties, not list: "),
        (
            CONFIG,
            b"events",
            DF,
            "the topic is a str, not b'events': write_df(df, config, 'events')",
        ),
        (CONFIG, ["events"], DF, "the topic is a str, not ['events']: "),
    ],
)
def test_arguments_in_the_wrong_place(config: Any, topic: Any, call: str, said: str) -> None:
    with pytest.raises(TypeError) as raised:
        task_options(config, topic, call=call)
    assert said in str(raised.value)


def test_the_bare_function_shows_its_own_call() -> None:
    with pytest.raises(TypeError) as raised:
        write_partition("events", CONFIG)  # type: ignore[arg-type]
    assert str(raised.value).endswith(": rdd.mapPartitions(write_partition(config, 'events'))")
