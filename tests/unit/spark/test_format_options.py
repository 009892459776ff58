"""Options as texts: values, properties, and names that nobody knows."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest

from kafka_fast.errors import UsageError
from kafka_fast.spark.format_options import (
    FormatOptions,
    boolean,
    milliseconds,
    number,
    positive,
    seconds,
    text_of,
)


def test_names_have_no_case_and_values_no_spaces_around() -> None:
    options = FormatOptions({"SomeNumber": " 7 "})
    assert options.find("someNumber", number) == 7
    assert options.find("other", number) is None
    assert options.take("other", number, 3) == 3


@pytest.mark.parametrize(
    ("read", "text", "value"),
    [
        (text_of, "x", "x"),
        (number, "-1", -1),
        (positive, "1", 1),
        (milliseconds, "1500", 1.5),
        (boolean, "True", True),
        (boolean, "false", False),
        (seconds, "15m", 900),
        (seconds, "2 min", 120),
        (seconds, "250", 0.25),
    ],
)
def test_values(read: Callable[[str, str], Any], text: str, value: object) -> None:
    assert FormatOptions({"it": text}).find("it", read) == value


@pytest.mark.parametrize(
    ("read", "text", "said"),
    [
        (text_of, "", "it is empty"),
        (number, "many", "it must be a number, not 'many'"),
        (positive, "0", "it must be positive"),
        (boolean, "yes", "it must be 'true' or 'false', not 'yes'"),
        (seconds, "soon", "it must be a time such as '30s', '15m' or '2h', not 'soon'"),
    ],
)
def test_what_is_no_value(read: Callable[[str, str], Any], text: str, said: str) -> None:
    with pytest.raises(UsageError) as raised:
        FormatOptions({"it": text}).find("it", read)
    assert str(raised.value) == said


def test_properties() -> None:
    given = {"Kafka.Bootstrap.Servers": "a:1", "kafka.linger.ms": "5", "topic": "t"}
    options = FormatOptions(given)
    assert options.properties("producer", {}) == {"bootstrap.servers": "a:1", "linger.ms": "5"}
    with pytest.raises(UsageError, match="not here"):
        options.properties("producer", {"linger.ms": "not here"})
    with pytest.raises(UsageError, match="must be specified for configuring Kafka producer"):
        FormatOptions({"topic": "t"}).properties("producer", {})


def test_a_name_that_nobody_knows_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "kafka_fast"):
        for _ in range(2):
            options = FormatOptions({"topik": "t", "zzzzz": "1", "path": "x"}, ["path"])
            options.find("topic", text_of)
            options.warn_of_unknown()
    assert [record.getMessage() for record in caplog.records] == [
        "the option 'topik' is not known and is ignored; did you mean 'topic'?",
        "the option 'zzzzz' is not known and is ignored",
    ]
