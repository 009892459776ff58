"""What a write may be asked for; mistakes show on the driver."""

from __future__ import annotations

import pickle
import sys
import types
from typing import Any

import pytest

from kafka_fast.config import producer_settings
from kafka_fast.errors import ConfigError, UsageError
from kafka_fast.spark import write_df, write_partition, write_rdd
from kafka_fast.spark.options import arrived, freeze, task_options
from tests.unit.canary import CANARY, traces

CONFIG = {"bootstrap.servers": "a:1"}


def test_the_order_of_properties_does_not_matter() -> None:
    one = freeze({"acks": "all", "bootstrap.servers": ["a:1", "b:2"]})
    assert one == freeze({"bootstrap.servers": "a:1,b:2", "acks": "all"})
    assert hash(one) == hash(one)


def test_options_survive_as_a_plain_tuple() -> None:
    options = task_options(CONFIG, "t", on_error="report")
    assert arrived(pickle.loads(pickle.dumps(options.shipped()))) == options


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({}, "bootstrap.servers is required"),
        ({**CONFIG, "lingr.ms": 5}, "linger.ms"),
        ({**CONFIG, "value.serializer": len}, "value.serializer must be a plain value"),
        ({**CONFIG, "transactional.id": "t"}, "a Spark job writes without transactions"),
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
        ([("acks", 1)], "t", RDD, "not list: write_rdd(rdd, "),
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


SECURE = {
    **CONFIG,
    "security.protocol": "SASL_SSL",
    "sasl.mechanism": "PLAIN",
    "sasl.username": "u",
    "sasl.password": CANARY,
}


@pytest.mark.parametrize("name", ["sasl_oauth_token_provider", "sasl.password", "ssl_context"])
def test_what_is_no_plain_value_comes_from_a_function(name: str) -> None:
    with pytest.raises(ConfigError, match="give a function that returns the whole configuration"):
        write_partition({**CONFIG, name: object}, "t")


def test_secrets_travel_in_plain_text_and_are_not_shown() -> None:
    options = task_options(SECURE, "t")
    assert CANARY not in repr(options)
    assert CANARY in repr(options.shipped())  # Spark carries it as it is
    properties = arrived(options.shipped()).config.properties()
    assert CANARY not in repr(properties)
    sasl = producer_settings(properties).sasl
    assert sasl is not None
    assert sasl.password is not None
    assert sasl.password.reveal() == CANARY


def secure_config() -> dict[str, str]:
    return SECURE


def no_config() -> str:
    return CANARY


@pytest.fixture
def cloudpickle(monkeypatch: pytest.MonkeyPatch) -> None:
    pyspark = types.ModuleType("pyspark")
    pyspark.cloudpickle = pickle  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "pyspark", pyspark)


@pytest.mark.usefixtures("cloudpickle")
def test_a_function_is_called_by_the_task() -> None:
    options = task_options(secure_config, "t")
    assert options == task_options(secure_config, "t")  # so that tasks share a producer
    assert CANARY not in repr(options.shipped())
    properties = arrived(options.shipped()).config.properties()
    assert properties["sasl.username"] == "u"
    assert CANARY not in repr(properties)


@pytest.mark.usefixtures("cloudpickle")
def test_a_function_that_returns_something_else() -> None:
    job = task_options(no_config, "t").config  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="returned str, not a mapping") as caught:
        job.properties()
    assert traces(caught.value) == []


@pytest.mark.parametrize(
    ("config", "topic"),
    [
        ({**SECURE, "lingr.ms": 5}, "t"),
        ({**SECURE, "value.serializer": len}, "t"),
        ({**SECURE, "sasl.password": [CANARY], "sasl.plain.password": "x"}, "t"),
        ([("sasl.password", CANARY)], "t"),
        (SECURE, 5),
    ],
)
def test_mistakes_show_no_secret(config: Any, topic: Any) -> None:
    for call in (
        lambda: write_partition(config, topic),
        lambda: write_rdd(types.SimpleNamespace(mapPartitions=None), config, topic),
        lambda: write_df(types.SimpleNamespace(mapInArrow=None), config, topic),
    ):
        with pytest.raises((ConfigError, TypeError)) as caught:
            call()
        assert traces(caught.value) == []
