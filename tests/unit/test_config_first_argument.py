"""What stands where a mapping of properties belongs: the error shows the call that was meant."""

from __future__ import annotations

from typing import Any

import pytest

from kafka_fast import Consumer, Producer, read_range
from kafka_fast.config import producer_settings
from kafka_fast.spark import write_df, write_partition, write_rdd

CONFIG = {"bootstrap.servers": "localhost:9092"}


class Frame:
    """As far as it matters here, a DataFrame and an RDD."""

    mapInArrow = mapPartitions = None  # noqa: N815  Spark's names


@pytest.mark.parametrize(
    ("given", "right"),
    [
        ("localhost:9092", "Producer(bootstrap_servers='localhost:9092')"),
        ("broker", "Producer({'bootstrap.servers': 'broker'})"),
        (["a:1", "b:2"], "Producer(bootstrap_servers='a:1,b:2')"),
        (5, "Producer(bootstrap_servers='localhost:9092')"),
        ([("acks", 1)], "Producer({'bootstrap.servers': 'localhost:9092'})"),
    ],
)
def test_a_producers(given: Any, right: str) -> None:
    with pytest.raises(TypeError) as caught:
        Producer(given)
    said = str(caught.value)
    # Pairs may have a password among them.
    shown = "list" if given == [("acks", 1)] else repr(given)
    assert said.startswith(
        f"the first argument of Producer is a mapping of properties, not {shown}"
    )
    assert right in said


@pytest.mark.parametrize(
    ("given", "right"),
    [
        ("orders", "consumer.subscribe(['orders'])"),
        (["orders", "payments"], "consumer.subscribe(['orders', 'payments'])"),
        ("localhost:9092", "Consumer(bootstrap_servers='localhost:9092')"),
        (None.__class__, "Consumer(bootstrap_servers='localhost:9092')"),
    ],
)
def test_a_consumers(given: Any, right: str) -> None:
    with pytest.raises(TypeError) as caught:
        Consumer(given, group_id="g")
    assert str(caught.value).startswith("the first argument of Consumer is a mapping of properties")
    assert right in str(caught.value)


def test_what_is_long_is_not_shown() -> None:
    with pytest.raises(TypeError) as caught:
        Producer("x" * 1000)  # type: ignore[arg-type]
    assert "properties, not str: " in str(caught.value)


@pytest.mark.parametrize(
    ("arguments", "config", "said"),
    [
        (("orders",), "localhost:9092", "read_range('topic', bootstrap_servers="),
        ((CONFIG, "orders"), None, "takes topics first: read_range('topic', config={...})"),
        (("orders", CONFIG), None, "start is a point of the log"),
    ],
)
def test_a_ranges(arguments: Any, config: Any, said: str) -> None:
    with pytest.raises(TypeError) as caught:
        read_range(*arguments, config=config)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: write_df(Frame(), "orders", CONFIG), "write_df(df, config, 'orders')"),
        (lambda: write_rdd(Frame(), "orders", CONFIG), "write_rdd(rdd, config, 'orders')"),
        (
            lambda: write_partition("orders", CONFIG),
            "rdd.mapPartitions(write_partition(config, 'orders'))",
        ),
        (
            lambda: write_df(Frame(), "localhost:9092", "orders"),
            "not 'localhost:9092': write_df(df, {'bootstrap.servers': 'localhost:9092'}, 'orders')",
        ),
        (lambda: write_partition(iter([b"1"]), "t"), "is a mapping of properties, not list_it"),
        (lambda: write_df("orders", CONFIG), "a DataFrame of Spark's, not str: write_df(df, "),
        (lambda: write_rdd([b"1"], CONFIG), "an RDD, not list: write_rdd(rdd, "),
    ],
)
def test_sparks(call: Any, said: str) -> None:
    with pytest.raises(TypeError) as caught:
        call()
    assert said in str(caught.value)


def test_none_is_no_properties() -> None:
    assert producer_settings(None, CONFIG) == producer_settings(CONFIG, {})
